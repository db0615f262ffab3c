"""The head fold: what a list of sessions needs, from as little of the log as tells it."""

from __future__ import annotations

import re
from pathlib import PurePath

from sessionref_server.adapters.sessions.formats.dsh.activity import Activity
from sessionref_server.adapters.sessions.formats.dsh.fold import NO_MESSAGE, status_detail, surface_fold_of
from sessionref_server.adapters.sessions.formats.dsh.header import Header, read_header, usable_header
from sessionref_server.adapters.sessions.formats.dsh.names import native_id_of, parse_log_name
from sessionref_server.adapters.sessions.formats.dsh.strict import FRAME_ENDS_INSIDE_ROW
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import NEWEST_VERSION, LogFault
from sessionref_server.adapters.sessions.json_line import parse_json_line
from sessionref_server.adapters.sessions.log_format import LogEnd, LogFile, NativeHead
from sessionref_server.domain.session import SessionStatus

MARKER = re.compile(rb'"session/title"|"subagent/descriptor"')
_TITLE_LITERAL, _DESCRIPTOR_LITERAL = MARKER.pattern.split(b"|")
_MESSAGE_LITERAL = b'/message"'
_CONTEXT_LITERAL = b'"request/context"'
_EXACT_BYTES = 64 * 1024
"""A log up to this size is read in full for its head too, so that its state in a list is the one a reference will meet."""
_MAX_ROWS_BEFORE_HEADER = 1000
_MAX_ROWS_BEFORE_EXCHANGE = 1000


class HeadFold:
    """Takes the rows up to the first answer, then those with a title or a descriptor, and the end of the log."""

    def __init__(self, file: LogFile) -> None:
        self._path = file.path
        self._name = parse_log_name(PurePath(file.path).name)
        self._exact = surface_fold_of(file.path) if file.size <= _EXACT_BYTES else None
        self._fed_bytes = 0
        self._rows = 0
        self._header: Header | None = None
        self._fault: LogFault | None = None
        self._detail = ""
        self._activity = Activity()
        self._past_beginning = False
        self.marker = MARKER

    @property
    def settled(self) -> bool:
        """Whether the beginning told what only it tells, and the log is too large to be read in full."""
        if self._exact is not None:
            return False
        if self._header is None:
            return self._rows >= _MAX_ROWS_BEFORE_HEADER
        activity = self._activity
        return activity.has_message and (activity.has_exchange or self._rows >= _MAX_ROWS_BEFORE_EXCHANGE)

    def line_skipped(self) -> None:
        """A row was dropped before it came here."""
        if (skip := getattr(self._exact, "line_skipped", None)) is not None:
            skip()

    def feed(self, line: bytes) -> None:
        """Take one row."""
        self._rows += 1
        if self._exact is not None:
            self._exact.feed(line)
            self._fed_bytes += len(line)
            if self._fed_bytes > _EXACT_BYTES:
                self._exact = None
        if self._header is None and self._rows <= _MAX_ROWS_BEFORE_HEADER:
            self._feed_header(line)
            return
        is_message = _MESSAGE_LITERAL in line
        if is_message or _TITLE_LITERAL in line or _DESCRIPTOR_LITERAL in line or _CONTEXT_LITERAL in line:
            self._activity.feed(line)
        if self._past_beginning:
            self._activity.feed_late(line, is_message=is_message)
        else:
            self._past_beginning = self.settled

    def _feed_header(self, line: bytes) -> None:
        if self._name is not None and self._rows == 1:
            reading = read_header(line, self._name.version)
            self._header, self._fault, self._detail = reading.header, reading.fault, reading.detail
            return
        row = parse_json_line(line) if self._name is None else None
        self._header = usable_header(row) if row is not None else None
        if self._header is None:
            self._activity.feed(line)

    def head(self, end: LogEnd) -> NativeHead:
        """The head as of now."""
        header, activity = self._header, self._activity
        if self._name is None and end.tail and not end.torn_frame:
            header, activity = self._with_tail(end.tail)
        status, detail = self._state(header, activity, end)
        readable = status is not SessionStatus.TOO_NEW
        updated_at_ms, route = activity.last_message() if readable else (None, None)
        return NativeHead(
            native_id=(header.native_id if header else None) or native_id_of(self._path),
            title=activity.title if readable else None,
            subagent_label=activity.subagent_label if readable else None,
            cwd=header.cwd if header else None,
            created_at_ms=header.created_at_ms if header else None,
            updated_at_ms=updated_at_ms,
            parent_native_id=header.parent_native_id if header else None,
            is_subagent=header.is_subagent if header else False,
            route=route,
            status=status,
            status_detail=detail,
        )

    def _with_tail(self, tail: bytes) -> tuple[Header | None, Activity]:
        """Header and facts with a last record whose newline is not there yet."""
        activity = self._activity.copy()
        activity.feed(tail)
        if self._header is not None:
            return self._header, activity
        row = parse_json_line(tail)
        return (usable_header(row) if row is not None else None), activity

    def _state(self, header: Header | None, activity: Activity, end: LogEnd) -> tuple[SessionStatus, str]:
        if self._exact is not None:
            facts = self._exact.surface(end).reading
            return facts.status, status_detail(facts)
        if self._fault is LogFault.UNSUPPORTED or (header is not None and header.version > NEWEST_VERSION):
            return SessionStatus.TOO_NEW, self._detail or str(header.version if header else "")
        damage = self._detail or end.damage or self._split_frame(end)
        if header is None and not damage:
            return SessionStatus.NOT_A_SESSION, "the log has no header"
        if damage:
            return SessionStatus.DAMAGED, damage
        torn = end.torn_frame or (bool(end.tail) and (self._name is not None or parse_json_line(end.tail) is None))
        if not activity.has_message:
            return (SessionStatus.DAMAGED if end.skipped_lines else SessionStatus.EMPTY), NO_MESSAGE
        return (SessionStatus.PARTIAL if torn or end.skipped_lines else SessionStatus.OK), ""

    def _split_frame(self, end: LogEnd) -> str:
        if self._name is None or not self._name.compressed:
            return ""
        return FRAME_ENDS_INSIDE_ROW if end.split_frame or (end.tail and not end.torn_frame) else ""
