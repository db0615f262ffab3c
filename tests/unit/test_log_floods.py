"""Logs of nothing but tiny lines: given up early, since each line would cost as much as a record."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessionref_server.adapters.sessions.line_feed import FLOOD_FROM_LINES, FLOOD_LINE_BYTES
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.adapters.sessions.log_reader import FoldReader
from unit.log_reader_rig import Heads, Lines, frame

RECORD = b'{"type":"user","text":"hello"}'
MANY = 4 * FLOOD_FROM_LINES
ENOUGH = 2 * FLOOD_FROM_LINES + 256 * 1024 // 2
"""Lines that may be fed before a flood is noticed: those counted before, and those of one chunk."""


def read(path: Path, fold: Lines, *, is_head: bool = False) -> LogEnd:
    return FoldReader(str(path), fold, is_head=is_head).read()


@pytest.mark.parametrize("line", [b"a", b"{}", b'"', b"\0", b"[1,2]"])
def test_plain_log_of_tiny_lines_is_damaged_and_not_read_to_its_end(tmp_path: Path, line: bytes) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(RECORD + b"\n" + (line + b"\n") * MANY)
    fold = Lines()
    end = read(log, fold)
    assert end.damage == "the log holds far too many lines for its size"
    assert fold.seen[0] == RECORD
    assert len(fold.seen) < ENOUGH


class UnsettledHeads(Heads):
    @property
    def settled(self) -> bool:
        return False


def test_head_of_a_log_of_tiny_lines_is_damaged(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"a\n" * MANY)
    fold = UnsettledHeads()
    assert read(log, fold, is_head=True).damage == "the log holds far too many lines for its size"
    assert len(fold.seen) < ENOUGH


def test_few_compressed_bytes_that_make_very_many_lines_are_a_bomb(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl.zst"
    log.write_bytes(frame((RECORD + b"\n") * MANY))
    fold = Lines()
    assert read(log, fold).damage == "the log expands to far too many lines"
    assert fold.seen[0] == RECORD
    assert len(fold.seen) < ENOUGH


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("is_head", [False, True])
def test_any_number_of_blank_lines_is_nothing(tmp_path: Path, ending: bytes, *, is_head: bool) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(RECORD + ending * MANY + RECORD + ending * MANY + RECORD + b"\n")
    fold = UnsettledHeads() if is_head else Lines()
    end = read(log, fold, is_head=is_head)
    assert (end.damage, end.skipped_lines, fold.seen) == ("", 0, [RECORD] * 3)


def test_short_records_are_no_flood(tmp_path: Path) -> None:
    short = b'{"type":"mode"}'
    assert len(short) + 1 == FLOOD_LINE_BYTES
    log = tmp_path / "log.jsonl"
    log.write_bytes((short + b"\n") * MANY)
    fold = Lines()
    assert (read(log, fold).damage, len(fold.seen)) == ("", MANY)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\rb\r\nc\n", [b"a\rb", b"c"]),
        (b"a\r\r\nb\r\n", [b"a\r", b"b"]),
        (b"\r\n\r\na\r\n \r\n\t\r\nb", [b"a"]),
    ],
)
def test_only_a_carriage_return_before_a_line_feed_belongs_to_the_line_end(
    tmp_path: Path, content: bytes, lines: list[bytes]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(content)
    fold = Lines()
    read(log, fold)
    assert fold.seen == lines
