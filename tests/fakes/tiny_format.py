"""A log format of five keys, for tests of what is around formats: ``{"id", "title", "cwd", "at", "user"|"assistant"}`` a line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sessionref_server.adapters.sessions.log_format import LogEnd, LogFile, NativeHead, Surface
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.session import ReadingFacts, SessionStatus

TITLES_FILE = "titles.json"


class TinyFold:
    settled = False
    marker = re.compile(rb'"title"')

    def __init__(self, file: LogFile) -> None:
        self._fields: dict[str, Any] = {"id": Path(file.path).stem}
        self._messages: list[Message] = []
        self._first_at: int | None = None
        self._last_at: int | None = None
        self._damaged = 0

    def feed(self, line: bytes) -> None:
        try:
            record = json.loads(line)
        except ValueError:
            self._damaged += 1
            return
        if record.get("crash"):
            os._exit(3)
        self._fields.update(record)
        if "at" in record:
            self._first_at = record["at"] if self._first_at is None else self._first_at
            self._last_at = record["at"]
        for role in Role:
            if text := record.get(role.value):
                self._messages.append(Message(role, text))

    def head(self, end: LogEnd) -> NativeHead:
        del end
        return NativeHead(
            native_id=self._fields["id"],
            title=self._fields.get("title"),
            subagent_label=self._fields.get("label"),
            cwd=self._fields.get("cwd"),
            created_at_ms=self._first_at,
            updated_at_ms=self._last_at,
            status=self._status(),
            status_detail=self._fields.get("version", ""),
        )

    def surface(self, end: LogEnd) -> Surface:
        return Surface(
            native_id=self._fields["id"],
            messages=tuple(self._messages),
            cwd=self._fields.get("cwd"),
            through_seq=len(self._messages) or None,
            reading=ReadingFacts(status=self._status(), damaged_records=self._damaged, torn_tail=bool(end.tail)),
        )

    def _status(self) -> SessionStatus:
        if "status" in self._fields:
            return SessionStatus(self._fields["status"])
        if not self._messages:
            return SessionStatus.EMPTY
        return SessionStatus.PARTIAL if self._damaged else SessionStatus.OK


class TinyFormat:
    name = "tiny"
    version = 1
    prefixed_ids = True
    lists_subagents = False

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        del environment
        return [home / ".tiny"]

    def discover(self, root: Path) -> Iterator[LogFile]:
        with os.scandir(root) as entries:
            yield from _logs(sorted(entries, key=lambda entry: entry.name))

    def head_fold(self, file: LogFile) -> TinyFold:
        return TinyFold(file)

    def surface_fold(self, file: LogFile) -> TinyFold:
        return TinyFold(file)

    def titles(self, root: Path) -> Mapping[str, str]:
        try:
            return json.loads((root / TITLES_FILE).read_bytes())
        except (OSError, ValueError):
            return {}

    def title_files(self, root: Path) -> Sequence[Path]:
        return [root / TITLES_FILE]


def _logs(entries: Sequence[os.DirEntry[str]]) -> Iterator[LogFile]:
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            with os.scandir(entry.path) as below:
                yield from _logs(list(below))
        elif entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
            found = entry.stat(follow_symlinks=False)
            yield LogFile(
                path=entry.path,
                device=found.st_dev,
                inode=found.st_ino,
                size=found.st_size,
                mtime_ns=found.st_mtime_ns,
                archived="archived" in entry.path,
            )
