"""The rows nearly every log consists of, judged and applied together.

Most rows only count: a step of the interpreter for each of them would cost as much as parsing it.
"""

from __future__ import annotations

from itertools import compress
from operator import itemgetter
from typing import Any

import orjson

from sessionref_server.adapters.sessions.formats.dsh.labels import Labels
from sessionref_server.adapters.sessions.formats.dsh.projection import shown_by_assistant, shown_by_user
from sessionref_server.adapters.sessions.formats.dsh.surface import SurfaceNodes
from sessionref_server.adapters.sessions.formats.dsh.turns import OpenTurn
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import (
    ASSISTANT_MESSAGE,
    DESCRIPTOR,
    STEERING_MESSAGE,
    STEP_END,
    STEP_START,
    TITLE,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    USER_MESSAGE,
    log_only_types,
    surface_types,
)

_PLAIN_EVENT_FIELDS = 4
_APPENDED_EVENT_FIELDS = 5
_TYPE, _SEQ, _TIME, _DATA = map(itemgetter, ("type", "seq", "time", "data"))
_SURFACE_OPERATION = itemgetter("surfaceOp")
_APPENDS = frozenset({"append"})
_LABELS = frozenset({TITLE, DESCRIPTOR})
_TURN_BRACKETS = frozenset({TURN_START, TURN_END})
_STEP_BRACKETS = frozenset({STEP_START, STEP_END})
_USER_TYPES = frozenset({USER_MESSAGE, STEERING_MESSAGE})


def parsed_together(block: bytes) -> list[dict[str, Any]] | None:
    """All lines in one go, which costs less than one by one; ``None`` when any of them needs a closer look.

    The newlines stay in, so that what they add to the length tells how many lines there are: a line that is half a row, or
    holds two, is never taken for one.
    """
    joined = block.replace(b"\n", b",\n")
    try:
        rows = orjson.loads(b"".join((b"[", joined, b"]")))
    except orjson.JSONDecodeError:
        return None
    return rows if len(rows) == len(joined) - len(block) + 1 else None


class UsualRows:
    """What one version's usual rows look like, and what they do."""

    def __init__(self, version: int, nodes: SurfaceNodes, turn: OpenTurn, labels: Labels) -> None:
        self._nodes = nodes
        self._turn = turn
        self._labels = labels
        self._surface_types = surface_types(version)
        self._field_counts = {
            **dict.fromkeys(log_only_types(), _PLAIN_EVENT_FIELDS),
            **dict.fromkeys(self._surface_types, _APPENDED_EVENT_FIELDS),
        }

    def is_known(self, kind: str) -> bool:
        """Whether events of this type may occur."""
        return kind in self._field_counts

    def is_on_surface(self, kind: str) -> bool:
        """Whether events of this type stand on the surface."""
        return kind in self._surface_types

    def is_plain(self, row: dict[str, Any], next_seq: int) -> bool:
        """Whether a row is a usual one that does not touch the surface."""
        kind = row.get("type")
        return (
            len(row) == _PLAIN_EVENT_FIELDS
            and row.get("seq") == next_seq
            and type(row.get("time")) is int
            and "data" in row
            and type(kind) is str
            and self._field_counts.get(kind) == _PLAIN_EVENT_FIELDS
        )

    def note(self, kind: str, row: dict[str, Any]) -> None:
        """Take a row that does not touch the surface."""
        if kind in _LABELS:
            self._labels.note(kind, row)
        else:
            self._turn.bracket(kind)

    def types_of(self, rows: list[dict[str, Any]], next_seq: int) -> list[str] | None:
        """Types of the rows when every one is known, has the fields of an event that is merely added, and follows in number."""
        try:
            types = list(map(_TYPE, rows))
            expected = list(map(self._field_counts.__getitem__, types))
            on_surface = compress(rows, map(_APPENDED_EVENT_FIELDS.__eq__, expected))
            usual = (
                expected == list(map(len, rows))
                and list(map(_SEQ, rows)) == list(range(next_seq, next_seq + len(rows)))
                and set(map(type, map(_TIME, rows))) == {int}
                and len(list(map(_DATA, rows))) == len(rows)
                and set(map(_SURFACE_OPERATION, on_surface)) <= _APPENDS
            )
        except (KeyError, TypeError):
            return None
        return types if usual else None

    def act(self, types: list[str], rows: list[dict[str, Any]]) -> None:
        """Do what rows judged by ``types_of`` do."""
        open_turn_seq = self._follow_brackets(types) + rows[0]["seq"]
        for row in compress(rows, map(_LABELS.__contains__, types)):
            self._labels.note(row["type"], row)
        on_surface = list(compress(rows, map(self._surface_types.__contains__, types)))
        self._nodes.extend(list(map(_SEQ, on_surface)), list(map(_TYPE, on_surface)))
        show, turn = self._nodes.show, self._turn
        for row in on_surface:
            kind, seq = row["type"], row["seq"]
            if kind == ASSISTANT_MESSAGE:
                shown = shown_by_assistant(row)
                show(seq, shown)
                if seq >= open_turn_seq:
                    turn.advertise(shown[1])
            elif kind == TOOL_RESULT:
                if seq >= open_turn_seq:
                    turn.resolve(row)
            elif kind in _USER_TYPES:
                show(seq, shown_by_user(row))

    def _follow_brackets(self, types: list[str]) -> int:
        """Follow the last turn and step; returns where the rows begin that concern the last turn.

        Whatever a turn owes is forgotten when the next one starts.
        """
        turn_index = _last_index(types, _TURN_BRACKETS, 0)
        if turn_index >= 0:
            self._turn.bracket(types[turn_index])
        step_index = _last_index(types, _STEP_BRACKETS, turn_index + 1)
        if step_index >= 0:
            self._turn.bracket(types[step_index])
        return max(turn_index, 0)


def _last_index(types: list[str], wanted: frozenset[str], first: int) -> int:
    """Index of the last of the wanted types from ``first`` on, -1 when there is none."""
    return next((index for index in range(len(types) - 1, first - 1, -1) if types[index] in wanted), -1)
