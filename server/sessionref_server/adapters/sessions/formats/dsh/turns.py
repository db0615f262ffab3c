"""What an interrupted turn still owes.

A log whose last turn is open is read as if the turn had been closed: an error result for each tool call without one, the end of
the step, the end of the turn. Those events exist in memory only, but they count in the sequence numbers.
"""

from __future__ import annotations

from typing import Any

from sessionref_server.adapters.sessions.formats.dsh.json_fields import fields_of
from sessionref_server.adapters.sessions.formats.dsh.surface import blocks_of, message_object
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import STEP_END, STEP_START, TURN_START

BRACKETS = frozenset({TURN_START, "turn/end", STEP_START, STEP_END})


class OpenTurn:
    """The state of the last turn."""

    __slots__ = ("_calls", "_open", "_step_open")

    def __init__(self) -> None:
        self._open = False
        self._step_open = False
        self._calls: dict[str, None] = {}

    def bracket(self, kind: str) -> None:
        """A turn or step starts or ends."""
        if kind in {STEP_START, STEP_END}:
            self._step_open = kind == STEP_START
            return
        self._open = kind == TURN_START
        self._step_open = False
        self._calls.clear()

    def advertise(self, event: dict[str, Any]) -> None:
        """An assistant message may ask for tools."""
        if not self._open:
            return
        for block in blocks_of(message_object(event)):
            if block.get("type") == "tool-call" and type(call_id := block.get("id")) is str:
                self._calls[call_id] = None

    def resolve(self, event: dict[str, Any]) -> None:
        """A tool result answers a call."""
        if self._calls:
            for call_id in _answered(message_object(event)):
                self._calls.pop(call_id, None)

    @property
    def owed_results(self) -> int:
        """Tool calls without a result."""
        return len(self._calls) if self._open else 0

    @property
    def owed_events(self) -> int:
        """Events that would close the turn."""
        return self.owed_results + self._step_open + 1 if self._open else 0


def _answered(message: dict[str, Any]) -> list[str]:
    candidates: list[object] = [message.get("toolCallId"), fields_of(message.get("source")).get("callId")]
    candidates += [block.get("toolCallId") for block in blocks_of(message)]
    return [candidate for candidate in candidates if type(candidate) is str]
