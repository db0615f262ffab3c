"""Replacements over a surface that is not all there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from typing import Any

from sessionref_server.adapters.sessions.formats.dsh.surface import SurfaceNodes

_MAX_FRUITLESS_LOOKUPS = 1_000_000
"""In one log. Past it only the two ends of a range are looked up, so that forged ranges cost nothing."""


class TolerantReplacer:
    """Replaces whatever of a range exists."""

    __slots__ = ("_fruitless",)

    def __init__(self) -> None:
        self._fruitless = 0

    def replace(
        self, nodes: SurfaceNodes, bounds: tuple[int, int], further: Iterable[int], node: int, row: dict[str, Any]
    ) -> None:
        """Put ``row`` in the place of what exists of a range, or at the end.

        A range whose ends both exist is taken in surface order, whichever comes first; otherwise by number, with ``further``
        nodes that the row names.
        """
        start, end = bounds
        if start in nodes and end in nodes:
            removed, _ = nodes.span(start, end)
        else:
            removed = self._existing(nodes, chain((start, end), range(start, end + 1), further))
        nodes.replace([gone for gone in removed if gone != node], node, row)

    def _existing(self, nodes: SurfaceNodes, numbers: Iterable[int]) -> list[int]:
        looked_up = list(dict.fromkeys(islice(numbers, max(2, _MAX_FRUITLESS_LOOKUPS - self._fruitless))))
        found = [number for number in looked_up if number in nodes]
        self._fruitless += len(looked_up) - len(found)
        return found
