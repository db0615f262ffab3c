"""Folds that keep what they are fed, and ways to make logs."""

from __future__ import annotations

import re
from pathlib import Path

import zstandard
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.adapters.sessions.log_reader import FoldReader, ReadLimits


class Lines:
    """Keeps what it is fed."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def feed(self, line: bytes) -> None:
        self.seen.append(line)


class SkippingLines(Lines):
    def line_skipped(self) -> None:
        self.seen.append(b"(skipped)")


class Heads(Lines):
    marker = re.compile(rb'"title"|"name"')

    @property
    def settled(self) -> bool:
        return bool(self.seen)


def frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def read(path: Path, limits: ReadLimits | None = None) -> tuple[list[bytes], LogEnd]:
    fold = Lines()
    end = FoldReader(str(path), fold, is_head=False, limits=limits).read()
    return fold.seen, end
