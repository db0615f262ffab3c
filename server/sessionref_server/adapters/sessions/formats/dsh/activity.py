"""Titles, first prompt, last message and model route, from the rows a head fold is fed."""

from __future__ import annotations

from typing import Any

from sessionref_server.adapters.sessions.formats.dsh.json_fields import fields_of
from sessionref_server.adapters.sessions.formats.dsh.labels import Labels
from sessionref_server.adapters.sessions.formats.dsh.projection import is_person, message_of_event, source_of, text_of
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import (
    ASSISTANT_MESSAGE,
    REQUEST_CONTEXT,
    STEERING_MESSAGE,
    USER_MESSAGE,
)
from sessionref_server.adapters.sessions.json_line import epoch_ms, parse_json_line
from sessionref_server.domain.session import ModelRoute

_ASSISTANT_PREFIX = b'{"type":"assistant/message"'
_TURN_TYPES = (b'"assistant/', b'"step/', b'"tool/', b'"turn/')
_TYPE_WITHIN_BYTES = 48
_USER_TYPES = frozenset({USER_MESSAGE, STEERING_MESSAGE})
_TITLE_CHARACTERS = 400
_MAX_INJECTED_TEXTS = 16
_CUT_MARKS = "….  "


class Activity:
    """Rows in file order in, facts out."""

    def __init__(self) -> None:
        self._labels = Labels()
        self._first_text: str | None = None
        self._injected: list[str] = []
        self._has_message = False
        self._last_user_ms: int | None = None
        self._last_assistant_line = b""
        self._has_late_message = False
        self._late_turn_line = b""
        self._context_route: ModelRoute | None = None

    def copy(self) -> Activity:
        """An independent copy."""
        twin = Activity()
        twin.__dict__.update(self.__dict__)
        twin._labels = self._labels.copy()
        twin._injected = self._injected.copy()
        return twin

    @property
    def has_message(self) -> bool:
        """Whether any visible message was seen."""
        return self._has_message

    @property
    def has_exchange(self) -> bool:
        """Whether the first prompt and an answer were seen."""
        return self._first_text is not None and bool(self._last_assistant_line)

    @property
    def title(self) -> str | None:
        """The latest title, else the beginning of the first prompt; never text that no person and no model wrote for a title."""
        title = self._labels.title
        if title is not None and not (self._labels.title_is_fallback and self._is_injected(title)):
            return title
        return self._first_text

    @property
    def subagent_label(self) -> str | None:
        """Label the subagent was created with."""
        return self._labels.subagent.label if self._labels.subagent else None

    def feed(self, line: bytes) -> None:
        """Take one row. Of assistant messages only the last one is parsed, when it is asked for."""
        if self._has_message and line.startswith(_ASSISTANT_PREFIX):
            self._last_assistant_line = line
            return
        row = parse_json_line(line)
        kind = row.get("type") if row is not None else None
        if row is None or type(kind) is not str:
            return
        if kind == ASSISTANT_MESSAGE:
            self._last_assistant_line = line
            self._has_message = self._has_message or message_of_event(row) is not None
        elif kind in _USER_TYPES:
            self._take_user(row)
        elif kind == REQUEST_CONTEXT:
            self._context_route = _route(fields_of(row.get("data"))) or self._context_route
        else:
            self._labels.note(kind, row)

    def feed_late(self, line: bytes, *, is_message: bool) -> None:
        """Take a row after which rows may be missing.

        When a long run of tool output hides the last message, the last row of its turn tells the time nearly as well.
        """
        if is_message:
            self._has_late_message = True
            return
        beginning = line[:_TYPE_WITHIN_BYTES]
        if any(kind in beginning for kind in _TURN_TYPES):
            self._late_turn_line = line

    def last_message(self) -> tuple[int | None, ModelRoute | None]:
        """Time of the last message in milliseconds, and the model route last used."""
        row = parse_json_line(self._last_assistant_line) if self._last_assistant_line else None
        turn_row = parse_json_line(self._late_turn_line) if self._late_turn_line and not self._has_late_message else None
        times = [self._last_user_ms, *(_time_ms(found.get("time")) for found in (row, turn_row) if found)]
        route = _route(source_of(row)) if row else None
        return max((time for time in times if time is not None), default=None), route or self._context_route

    def _take_user(self, row: dict[str, Any]) -> None:
        message = message_of_event(row)
        self._has_message = self._has_message or message is not None
        if is_person(row):
            self._last_user_ms = _time_ms(row.get("time"))
            if self._first_text is None and message is not None and message.text.strip():
                self._first_text = message.text.strip()[:_TITLE_CHARACTERS]
        elif message is None and len(self._injected) < _MAX_INJECTED_TEXTS:
            self._injected.append(_one_line(text_of(row)))

    def _is_injected(self, title: str) -> bool:
        beginning = _one_line(title).rstrip(_CUT_MARKS)
        return bool(beginning) and any(text.startswith(beginning) for text in self._injected)


def _one_line(text: str) -> str:
    return " ".join(text[: 2 * _TITLE_CHARACTERS].split())


def _time_ms(value: object) -> int | None:
    """Times of this format are milliseconds already; other spellings come from other tools."""
    if type(value) is int or type(value) is float:
        return int(value) if 0 <= value < 2**53 else None
    return epoch_ms(value)


def _route(fields: dict[str, Any]) -> ModelRoute | None:
    provider, model = (value if type(value) is str else None for value in (fields.get("provider"), fields.get("model")))
    return ModelRoute(provider=provider, model=model) if provider or model else None
