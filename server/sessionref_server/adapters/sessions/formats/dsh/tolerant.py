"""Replacements over a surface that is not all there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice

from sessionref_server.adapters.sessions.formats.dsh.surface import SurfaceNodes

_MAX_FRUITLESS_LOOKUPS = 1_000_000
"""In one log. Past it only the two ends of a range are looked up, so that forged ranges cost nothing."""


class TolerantReplacer:
    """Replaces whatever of a range exists."""

    __slots__ = ("_fruitless",)

    def __init__(self) -> None:
        self._fruitless = 0

    def removed(self, nodes: SurfaceNodes, bounds: tuple[int, int], further: Iterable[int]) -> list[int]:
        """The nodes a replacement of this range takes away.

        A range whose ends both exist is taken in surface order, whichever comes first; otherwise by number, with ``further``
        nodes that the row names.
        """
        start, end = bounds
        if start in nodes and end in nodes:
            return nodes.span(start, end)[0]
        return self._existing(nodes, chain((start, end), range(start, end + 1), further))

    def _existing(self, nodes: SurfaceNodes, numbers: Iterable[int]) -> list[int]:
        looked_up = list(dict.fromkeys(islice(numbers, max(2, _MAX_FRUITLESS_LOOKUPS - self._fruitless))))
        found = [number for number in looked_up if number in nodes]
        self._fruitless += len(looked_up) - len(found)
        return found
