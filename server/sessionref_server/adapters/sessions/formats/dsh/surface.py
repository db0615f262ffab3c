"""The surface: events in the order the model sees them, which replacements cut into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from sessionref_server.adapters.sessions.formats.dsh.projection import SHOWS_NOTHING, Shown, message_of_event
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import SYSTEM_MESSAGE, TOOL_RESULT
from sessionref_server.domain.message import Message

__all__ = ["InvalidSurfaceError", "SurfaceNodes", "message_of_event"]

_EDGE = -1


class InvalidSurfaceError(Exception):
    """A row breaks the surface; the message is one sentence of ours."""


class SurfaceNodes:
    """Nodes in surface order.

    A plain list for as long as nothing is replaced, which is most logs; then linked both ways, so that a replacement costs what
    it removes, however long the surface is.
    """

    def __init__(self) -> None:
        self._order: list[int] | None = []
        self._next: dict[int, int] = {}
        self._previous: dict[int, int] = {}
        self._kinds: dict[int, str] = {}
        self._messages: dict[int, Message] = {}
        self._images: dict[int, list[str]] = {}

    def copy(self) -> SurfaceNodes:
        """An independent copy."""
        twin = SurfaceNodes()
        twin._order = None if self._order is None else self._order.copy()
        twin._next = self._next.copy()
        twin._previous = self._previous.copy()
        twin._kinds = self._kinds.copy()
        twin._messages = self._messages.copy()
        twin._images = self._images.copy()
        return twin

    def __iter__(self) -> Iterator[int]:
        if self._order is not None:
            yield from self._order
            return
        node = self._next[_EDGE]
        while node != _EDGE:
            yield node
            node = self._next[node]

    def __contains__(self, node: int) -> bool:
        return node in self._kinds

    def messages(self) -> list[Message]:
        """Visible messages in surface order."""
        messages = self._messages
        if self._order is not None:
            # Nothing was replaced, so they were put in in this order.
            return list(messages.values())
        return [messages[node] for node in self if node in messages]

    def images(self) -> Counter[str]:
        """Images on the surface by media type."""
        return Counter(media_type for types in self._images.values() for media_type in types)

    def append(self, node: int, kind: str, shown: Shown = SHOWS_NOTHING) -> None:
        """Add an event at the end."""
        if self._order is not None:
            self._order.append(node)
        else:
            self._link(node, self._previous[_EDGE])
        self._kinds[node] = kind
        self.show(node, shown)

    def extend(self, nodes: list[int], kinds: list[str]) -> None:
        """Add events at the end that show nothing yet."""
        if self._order is None:
            for node, kind in zip(nodes, kinds, strict=True):
                self.append(node, kind)
            return
        self._order += nodes
        self._kinds.update(zip(nodes, kinds, strict=True))

    def show(self, node: int, shown: Shown) -> None:
        """What an event on the surface shows."""
        if shown[0] is not None:
            self._messages[node] = shown[0]
        if shown[2]:
            self._images[node] = shown[2]

    def replace(self, removed: list[int], node: int, kind: str, shown: Shown) -> None:
        """Put an event in the place of the first of ``removed``, which go away; at the end when there are none."""
        self._ensure_linked()
        before = self._previous[removed[0] if removed else _EDGE]
        doomed = set(removed)
        while before in doomed:
            before = self._previous[before]
        for gone in doomed:
            self._unlink(gone)
        self._link(node, before)
        self._kinds[node] = kind
        self.show(node, shown)

    def span(self, start: int, end: int) -> tuple[list[int], bool]:
        """Nodes from one to the other in surface order, both there, and whether ``start`` does come first.

        The search goes from both at once, so it costs what lies between them, not what lies behind.
        """
        self._ensure_linked()
        forward, backward = [start], [end]
        while forward[-1] != end and backward[-1] != start:
            for walk in (forward, backward):
                walk.append(self._next[walk[-1]] if walk[-1] != _EDGE else _EDGE)
        return (forward, True) if forward[-1] == end else (backward, False)

    def check_replacement(self, removed: list[int], kind: str, *, guards_system: bool) -> None:
        """Hold a replacement against the rules of its kind. Raises InvalidSurfaceError."""
        if kind == TOOL_RESULT and [self._kinds[node] for node in removed] != [TOOL_RESULT]:
            raise InvalidSurfaceError("a tool result replaces something else than one tool result")
        first = removed[0]
        guarded = guards_system and self._kinds[first] == SYSTEM_MESSAGE and self._previous[first] == _EDGE
        if guarded and (kind != SYSTEM_MESSAGE or len(removed) != 1):
            raise InvalidSurfaceError("something else than a system message replaces the first system message")

    def _ensure_linked(self) -> None:
        if self._order is None:
            return
        ring = [_EDGE, *self._order, _EDGE]
        self._next = dict(pairwise(ring))
        self._previous = dict(pairwise(reversed(ring)))
        self._order = None

    def _link(self, node: int, before: int) -> None:
        after = self._next[before]
        self._next[before] = node
        self._next[node] = after
        self._previous[node] = before
        self._previous[after] = node

    def _unlink(self, node: int) -> None:
        before, after = self._previous.pop(node), self._next.pop(node)
        self._next[before] = after
        self._previous[after] = before
        del self._kinds[node]
        self._messages.pop(node, None)
        self._images.pop(node, None)
