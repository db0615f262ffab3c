"""Finds a head fold's marker in large buffers at memory speed."""

from __future__ import annotations

import re
from typing import Protocol

_ESCAPED = re.compile(rb"\\([^A-Za-z0-9])")
_SPECIAL = frozenset(b"\\.^$*+?[]()|")


class MarkerFinder(Protocol):
    """Looks for a head fold's marker in a buffer."""

    def start(self, buffer: bytearray, stop: int) -> None:
        """Search ``buffer`` up to ``stop`` from now on."""
        ...

    def find(self, position: int) -> int:
        """The first hit at or after ``position``, -1 when there is none. Positions never go back."""
        ...


class _LiteralFinder:
    """Finds the nearest of several literals; each literal's next place is remembered, so the text is passed once per literal."""

    def __init__(self, literals: list[bytes]) -> None:
        self._literals = literals
        self._hits: list[int] = []
        self._buffer = bytearray()
        self._stop = 0

    def start(self, buffer: bytearray, stop: int) -> None:
        self._buffer, self._stop = buffer, stop
        self._hits = [-2] * len(self._literals)

    def find(self, position: int) -> int:
        nearest = -1
        for index, hit in enumerate(self._hits):
            if hit != -1 and hit < position:
                hit = self._buffer.find(self._literals[index], position, self._stop)  # noqa: PLW2901
                self._hits[index] = hit
            if hit >= 0 and (nearest < 0 or hit < nearest):
                nearest = hit
        return nearest


class _PatternFinder:
    """Finds with the pattern itself, for markers that are no plain alternation."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self._buffer = bytearray()
        self._stop = 0

    def start(self, buffer: bytearray, stop: int) -> None:
        self._buffer, self._stop = buffer, stop

    def find(self, position: int) -> int:
        match = self._pattern.search(self._buffer, position, self._stop)
        return match.start() if match else -1


def marker_finder(pattern: re.Pattern[bytes]) -> MarkerFinder:
    """The fastest finder for a marker."""
    literals = marker_literals(pattern)
    return _LiteralFinder(literals) if literals else _PatternFinder(pattern)


def marker_literals(pattern: re.Pattern[bytes]) -> list[bytes] | None:
    """The literals of an alternation, since searching them one by one is several times faster; ``None`` for any other pattern."""
    if pattern.flags & re.IGNORECASE:
        return None
    literals: list[bytes] = []
    for branch in pattern.pattern.split(b"|"):
        literal = _ESCAPED.sub(rb"\1", branch)
        if not literal or _SPECIAL.intersection(_ESCAPED.sub(b"", branch)) or not re.fullmatch(branch, literal):
            return None
        literals.append(literal)
    return literals
