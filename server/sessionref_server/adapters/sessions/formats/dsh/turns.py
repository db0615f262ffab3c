"""What an interrupted turn still owes.

A log whose last turn is open is read as if the turn had been closed: an error result for each tool call without one, the end of
the step, the end of the turn. Those events exist in memory only, but they count in the sequence numbers.
"""

from __future__ import annotations

from typing import Any

from sessionref_server.adapters.sessions.formats.dsh.projection import answered_calls
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import STEP_END, STEP_START, TURN_END, TURN_START

_UNKNOWN = object()
_TURNS = frozenset({TURN_START, TURN_END})
_STEPS = frozenset({STEP_START, STEP_END})


class OpenTurn:
    """The state of the last turn."""

    __slots__ = ("_calls", "_open", "_step_open")

    def __init__(self) -> None:
        self._open = False
        self._step_open = False
        self._calls: dict[str, object] = {}

    def bracket(self, kind: str) -> None:
        """A turn or step starts or ends; rows of any other type mean nothing here."""
        if kind in _STEPS:
            self._step_open = kind == STEP_START
        elif kind in _TURNS:
            self._open = kind == TURN_START
            self._step_open = False
            self._calls.clear()

    def advertise(self, calls: list[str]) -> None:
        """An assistant message asks for tools."""
        if self._open:
            for call_id in calls:
                if type(call_id) is str:
                    self._calls[call_id] = None

    def resolve(self, event: dict[str, Any]) -> None:
        """A tool result answers a call."""
        calls = self._calls
        if not calls:
            return
        try:
            call_id = event["data"]["message"]["source"]["callId"]
            if calls.pop(call_id, _UNKNOWN) is not _UNKNOWN:
                return
        except (KeyError, TypeError):
            pass
        for call_id in answered_calls(event):
            calls.pop(call_id, None)

    @property
    def owed_results(self) -> int:
        """Tool calls without a result."""
        return len(self._calls) if self._open else 0

    @property
    def owed_events(self) -> int:
        """Events that would close the turn."""
        return self.owed_results + self._step_open + 1 if self._open else 0
