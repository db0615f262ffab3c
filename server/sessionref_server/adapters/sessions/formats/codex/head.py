"""The head of a rollout."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass, field

from sessionref_server.adapters.sessions.formats.codex.identity import Identity
from sessionref_server.adapters.sessions.formats.codex.records import (
    ITEM,
    MODEL,
    Payload,
    Record,
    Said,
    Tally,
    said_in_event,
    said_in_item,
)
from sessionref_server.adapters.sessions.formats.codex.skim import ORDINAL, TURN_START, is_silent, recognise
from sessionref_server.adapters.sessions.formats.codex.status import judge, whole_tail
from sessionref_server.adapters.sessions.json_line import epoch_ms
from sessionref_server.adapters.sessions.log_format import LogEnd, LogFile, NativeHead

_MARKER = re.compile(rb'"thread_name_updated"|"turn_context"|"replacement_history"')
"""What can change a head in the middle of a log: the name, the model, whether earlier turns matter. Each costs a search."""

_COMPACTED = b'"type":"compacted"'
_ENVELOPE_BYTES = 160
"""A line's own type stands within its first bytes; further on the word may be somebody's text."""

_NO_REPLACEMENT = b'"replacement_history":null'
_ITEM = b'"response_item"'
_TIME_PART = 3
"""Where the time stands in ``{"timestamp":"…"`` when it is split at quotes."""

_SILENT = (None, ORDINAL, TURN_START)
_TITLE_CHARACTERS = 4096
_TITLE_SEARCH_BYTES = 8 * 1024 * 1024
"""A log whose first bytes hold no prompt of a person (a guardian's, a subagent's) has no title worth reading it whole for."""


@dataclass(slots=True)
class _Title:
    """The name given to the session, else its first prompt."""

    name: str | None = None
    prompt: str | None = None
    is_final: bool = False

    def take(self, said: Said) -> None:
        """The first user text of an event is the first prompt. One that only an item tells is, once it was answered."""
        if self.is_final:
            return
        role, channel, text = said
        if role is MODEL:
            self.is_final = self.prompt is not None
        elif channel != ITEM or self.prompt is None:
            self.prompt = text[:_TITLE_CHARACTERS]
            self.is_final = channel != ITEM

    @property
    def text(self) -> str | None:
        return self.name or self.prompt


@dataclass(slots=True)
class _State:
    tally: Tally = field(default_factory=Tally)
    identity: Identity = field(default_factory=Identity)
    title: _Title = field(default_factory=_Title)
    updated_at_ms: int | None = None
    spoken: bool = False
    compacted: bool = False
    fed_bytes: int = 0

    def copy(self) -> _State:
        return _State(
            copy(self.tally),
            copy(self.identity),
            copy(self.title),
            self.updated_at_ms,
            self.spoken,
            self.compacted,
            self.fed_bytes,
        )

    def feed(self, line: bytes) -> None:
        self.fed_bytes += len(line)
        if _COMPACTED in line[:_ENVELOPE_BYTES]:
            # Its replacement history can be the whole conversation, and tells a head nothing.
            self.tally.recognised = True
            self.compacted |= b'"replacement_history"' in line and _NO_REPLACEMENT not in line
            return
        if is_silent(line) or ((start := recognise(line)) is not None and start.lastindex in _SILENT):
            self._take_silent(line[:_ENVELOPE_BYTES])
            return
        record = self.tally.read(line)
        if record is not None:
            self._take(record)

    def _take_silent(self, beginning: bytes) -> None:
        self.tally.silent += 1
        parts = beginning.split(b'"', _TIME_PART + 1)
        if _ITEM in beginning and len(parts) > _TIME_PART:
            self._see_activity(parts[_TIME_PART].decode("ascii", "replace"))

    def _take(self, record: Record) -> None:
        kind, payload, fields = record
        self.identity.take(kind, payload, fields)
        said = said_in_item(payload) if kind == "response_item" else None
        if kind == "event_msg":
            said = said_in_event(payload)
            if payload.get("type") == "thread_name_updated":
                self._take_name(payload)
        if said is not None:
            self.spoken = True
            if not self._is_inherited(fields):
                self.title.take(said)
        if said is not None or kind == "response_item":
            self._see_activity(fields.get("timestamp"))

    def _see_activity(self, time: object) -> None:
        """Somebody spoke or a tool ran; a name given later, a token count and the like are no activity.

        The end of a log is always fed, so its last such line is seen.
        """
        self.updated_at_ms = epoch_ms(time) or self.updated_at_ms

    def _is_inherited(self, record: Payload) -> bool:
        """Whether the line is a copy of the parent's, at the beginning of a subagent's log."""
        start, ordinal = self.identity.own_start_ordinal, record.get("ordinal")
        return start is not None and type(ordinal) is int and ordinal < start

    def _take_name(self, payload: Payload) -> None:
        # A fork replays its parent's renames.
        if payload.get("thread_id") in (None, self.identity.native_id):
            name = payload.get("thread_name")
            self.title.name = name[:_TITLE_CHARACTERS] if isinstance(name, str) and not name.isspace() else None


class CodexHeadFold:
    """Folds the beginning, the marked lines and the end of a rollout into its head."""

    __slots__ = ("_file", "_state")

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._state = _State()

    @property
    def settled(self) -> bool:
        """Whether identity and first prompt are known."""
        state = self._state
        return state.title.is_final or (state.spoken and state.fed_bytes > _TITLE_SEARCH_BYTES)

    @property
    def marker(self) -> re.Pattern[bytes]:
        """What a line holds that can still change the head."""
        return _MARKER

    def feed(self, line: bytes) -> None:
        """Take one complete line, without its newline."""
        self._state.feed(line)

    def head(self, end: LogEnd) -> NativeHead:
        """The head as of now, without changing the fold."""
        state = self._state
        tail = whole_tail(end)
        if tail is not None:
            state = state.copy()
            state.feed(tail)
        identity = state.identity
        lacks_history = identity.history_base is not None and not state.compacted
        status, detail = judge(self._file, state.tally, end, spoken=state.spoken, lacks_history=lacks_history)
        return NativeHead(
            native_id=identity.named(self._file),
            title=state.title.text or identity.nickname,
            cwd=identity.cwd,
            created_at_ms=identity.created_at_ms,
            updated_at_ms=state.updated_at_ms,
            parent_native_id=identity.parent,
            is_subagent=identity.is_subagent,
            route=identity.route,
            status=status,
            status_detail=detail,
        )
