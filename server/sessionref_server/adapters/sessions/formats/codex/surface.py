"""The surface of a rollout."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from sessionref_server.adapters.sessions.formats.codex.identity import Identity
from sessionref_server.adapters.sessions.formats.codex.records import (
    HEADER,
    Payload,
    Record,
    Tally,
    said_in_event,
    said_in_item,
    said_in_text,
    word,
)
from sessionref_server.adapters.sessions.formats.codex.skim import (
    ITEM_TEXT,
    ORDINAL,
    RETOLD,
    TURN_CONTEXT,
    TURN_START,
    event_of_item,
    is_silent,
    item_text,
    recognise,
)
from sessionref_server.adapters.sessions.formats.codex.status import is_torn, judge, whole_tail
from sessionref_server.adapters.sessions.formats.codex.transcript import Transcript
from sessionref_server.adapters.sessions.log_format import LogEnd, LogFile, Surface
from sessionref_server.domain.session import ReadingFacts, SessionStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

_THREAD_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What an id looks like that a sentence of ours may name: it stands outside the quoted data, where no words of a log may."""

_TURN_STARTS = frozenset({"task_started", "turn_started"})


class CodexSurfaceFold:
    """Folds all lines of a rollout into what its model sees now."""

    __slots__ = ("_awaited", "_file", "_identity", "_tally", "_transcript")

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._tally = Tally()
        self._identity = Identity()
        self._transcript = Transcript()
        self._awaited = b""
        """How the line would go on that tells the newest text again."""

    def feed(self, line: bytes) -> None:
        """Take one complete line, without its newline."""
        if is_silent(line):
            self._tally.silent += 1
            return
        start = recognise(line)
        if start is not None:
            what = start.lastindex
            if what is None or self._skim(what, start, line):
                self._tally.silent += 1
                return
        record = self._tally.read(line)
        if record is not None:
            self._take(record)

    def surface(self, end: LogEnd) -> Surface:
        """The surface as of now, without changing the fold."""
        tail = whole_tail(end)
        if tail is not None:
            return self._with(tail).surface(replace(end, tail=b""))
        messages, notes = self._transcript.shown()
        return Surface(
            native_id=self._identity.named(self._file),
            messages=messages,
            cwd=self._identity.cwd,
            through_seq=_through(self._tally, end),
            reading=self._facts(end, notes, is_blank=not messages),
        )

    def _with(self, line: bytes) -> CodexSurfaceFold:
        """This fold as it would be after one more line."""
        other = CodexSurfaceFold(self._file)
        other._tally, other._identity, other._transcript = copy(self._tally), copy(self._identity), self._transcript.copy()
        other._awaited = self._awaited
        other.feed(line)
        return other

    def _skim(self, what: int, start: re.Match[bytes], line: bytes) -> bool:
        """Take a line of which the beginning tells enough; whether it is one."""
        if start[ORDINAL] is not None:
            self._tally.see_ordinal(int(start[ORDINAL]))
        if what == ITEM_TEXT:
            return self._identity.cwd is not None and self._take_text(start, line)
        if what == RETOLD:
            if not self._awaited or not line.startswith(self._awaited, start.start(RETOLD)):
                return False
            self._awaited = b""
            self._transcript.retell()
        elif what == TURN_START:
            self._transcript.start_turn()
        return what != TURN_CONTEXT or self._identity.cwd is not None

    def _take_text(self, start: re.Match[bytes], line: bytes) -> bool:
        """Take a message item of one text, and expect the event that tells it again."""
        item = item_text(line, start)
        if item is None:
            return False
        role, written, text = item
        self._awaited = b""
        said = said_in_text(role, text)
        if said is not None and self._transcript.say(said):
            self._awaited = event_of_item(role, written)
        return True

    def _take(self, record: Record) -> None:
        kind, payload, fields = record
        self._awaited = b""
        if kind == "response_item":
            if self._identity.cwd is None:
                self._identity.take(kind, payload, fields)
            said = said_in_item(payload)
            if said is not None:
                self._transcript.say(said)
        elif kind == "event_msg":
            self._take_event(payload)
        elif kind == "compacted":
            self._transcript.compact(word(payload.get("message")), payload.get("replacement_history"))
        elif kind in ("session_meta", "turn_context", HEADER):
            self._identity.take(kind, payload, fields)

    def _take_event(self, payload: Payload) -> None:
        said = said_in_event(payload)
        if said is not None:
            self._transcript.say(said)
            return
        event = payload["type"]
        if event in _TURN_STARTS:
            self._transcript.start_turn()
        elif event == "thread_rolled_back":
            turns = payload.get("num_turns")
            self._transcript.roll_back(turns if type(turns) is int else 0)

    def _facts(self, end: LogEnd, notes: list[str], *, is_blank: bool) -> ReadingFacts:
        transcript = self._transcript
        base = self._identity.history_base if transcript.needs_earlier_history else None
        status, detail = judge(self._file, self._tally, end, spoken=transcript.spoken, lacks_history=base is not None)
        if base is not None:
            notes.insert(0, f"earlier turns are in {base if _THREAD_ID.fullmatch(base) else 'another session'}")
        if status in (SessionStatus.OK, SessionStatus.PARTIAL) and is_blank:
            status, detail = _judge_nothing_left(notes)
        return ReadingFacts(
            status=status,
            damaged_records=self._tally.damaged + end.skipped_lines,
            unknown_records=self._tally.unknown,
            torn_tail=is_torn(end) or end.torn_frame,
            notes=tuple(_with_detail(notes, status, detail)),
        )


def _judge_nothing_left(notes: Sequence[str]) -> tuple[SessionStatus, str]:
    """Messages were said, and none is left to show."""
    if notes:
        return SessionStatus.PARTIAL, ""
    return SessionStatus.EMPTY, "every turn was rolled back"


def _with_detail(notes: Sequence[str], status: SessionStatus, detail: str) -> list[str]:
    """A refusal's reason is a note too; skipped damage is told by the counts."""
    return [*notes, detail] if detail and status not in (SessionStatus.OK, SessionStatus.PARTIAL) else list(notes)


def _through(tally: Tally, end: LogEnd) -> int | None:
    """The newest record captured: its ordinal where the log has ordinals, else its number, counted from 0."""
    if tally.ordinal is not None:
        return tally.ordinal
    lines = tally.lines + tally.silent + end.skipped_lines
    return lines - 1 if lines else None
