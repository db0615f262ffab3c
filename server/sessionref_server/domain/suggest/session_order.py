"""Sessions in the order in which they are offered, kept in blocks that are searched as one buffer each.

A change touches one block; its buffers are made again when the next search looks at it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sessionref_server.domain.session import SessionHead
from sessionref_server.domain.suggest.haystack import FIELD_END, build_haystack, entries_with, folded
from sessionref_server.domain.suggest.id_shapes import IdShapes

BLOCK_SESSIONS: Final = 512

OrderKey = tuple[int, str]


def order_key(head: SessionHead) -> OrderKey:
    """Newest creation first, then session id by code point."""
    return -head.created_at_ms, head.session_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """A query, ready to be looked for."""

    text: bytes
    """Folded; empty matches every session."""
    in_ids: bool
    """Whether it may be part of an id of the usual form."""
    directories: AbstractSet[int]
    """Numbers of the directories it is part of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Which sessions may be candidates, whatever the query."""

    target: SessionHead | None
    """Head of the session that is typed into, when it is one of those here."""
    sources: Collection[str] | None
    without_subagents: bool
    other_than: frozenset[int]
    """Numbers of directories that are left out here."""

    @property
    def by_place(self) -> bool:
        """Whether no head needs to be looked into; so it is at nearly every keystroke."""
        return self.sources is None and not self.without_subagents

    def admits(self, head: SessionHead, directory: int) -> bool:
        """Whether one session may be a candidate."""
        if directory in self.other_than or head is self.target:
            return False
        return (self.sources is None or head.source in self.sources) and not (self.without_subagents and head.is_subagent)


class SessionBlock:
    """A few hundred sessions in order, with the buffers their texts are searched in."""

    __slots__ = ("_ids", "_texts", "directories", "distinct_directories", "heads", "sources")

    def __init__(self, heads: list[SessionHead], directories: array[int]) -> None:
        self.heads = heads
        self.directories = directories
        self._ids: bytes | None = None
        self._texts = b""
        self.distinct_directories: frozenset[int] = frozenset()
        self.sources: frozenset[str] = frozenset()

    @property
    def first_key(self) -> OrderKey:
        """Order key of the first session; there is one."""
        return order_key(self.heads[0])

    def insert(self, head: SessionHead, directory: int) -> None:
        """Put one more session in its place."""
        rank = self.rank_of(head)
        self.heads.insert(rank, head)
        self.directories.insert(rank, directory)
        self._ids = None

    def delete(self, rank: int) -> None:
        """Take out the session at a rank."""
        del self.heads[rank]
        del self.directories[rank]
        self._ids = None

    def rank_of(self, head: SessionHead) -> int:
        """Where a session is, or would be."""
        return bisect_left(self.heads, order_key(head), key=order_key)

    def split(self) -> SessionBlock:
        """Give away the second half."""
        half = len(self.heads) // 2
        rest = SessionBlock(self.heads[half:], self.directories[half:])
        del self.heads[half:]
        del self.directories[half:]
        self._ids = None
        return rest

    def find(self, needle: Needle, admission: Admission, limit: int, shapes: IdShapes) -> list[SessionHead]:
        """The first ``limit`` sessions of this block that match and are admitted, in order."""
        ids = self._prepared_ids(shapes)
        if self.distinct_directories <= admission.other_than or not self._has_source(admission.sources):
            return []
        if not needle.text:
            return [self.heads[rank] for rank in islice(self._admitted(range(len(self.heads)), admission), limit)]
        ranks: set[int] = set()
        for haystack in (self._texts, ids) if needle.in_ids else (self._texts,):
            if entries := entries_with(haystack, needle.text):
                ranks.update(islice(self._admitted(entries, admission), limit))
        if not needle.directories.isdisjoint(self.distinct_directories):
            ranks.update(islice(self._admitted(self._in_directories(needle.directories), admission), limit))
        return [self.heads[rank] for rank in sorted(ranks)[:limit]] if ranks else []

    def _admitted(self, ranks: Iterable[int], admission: Admission) -> Iterable[int]:
        heads, directories, admits = self.heads, self.directories, admission.admits
        other_than, target = admission.other_than, admission.target
        if not admission.by_place:
            return (rank for rank in ranks if admits(heads[rank], directories[rank]))
        if not self.distinct_directories.isdisjoint(other_than):
            return (rank for rank in ranks if directories[rank] not in other_than and heads[rank] is not target)
        return ranks if target is None else (rank for rank in ranks if heads[rank] is not target)

    def _in_directories(self, directories: AbstractSet[int]) -> Iterator[int]:
        return (rank for rank, directory in enumerate(self.directories) if directory in directories)

    def _has_source(self, sources: Collection[str] | None) -> bool:
        return sources is None or not self.sources.isdisjoint(sources)

    def _prepared_ids(self, shapes: IdShapes) -> bytes:
        """Make the buffers when a change has made them stale."""
        if self._ids is not None:
            return self._ids
        ids: list[bytes] = []
        texts: list[bytes] = []
        for head in self.heads:
            folded_id = head.session_id.lower()
            usual = shapes.admits(folded_id)
            ids.append(folded(folded_id) if usual else b"")
            shown = [text for text in (head.title, head.subagent_label, None if usual else folded_id) if text is not None]
            texts.append(folded(shown[0]) if len(shown) == 1 else FIELD_END.join(map(folded, shown)))
        self._texts = build_haystack(texts)
        self.distinct_directories = frozenset(self.directories)
        self.sources = frozenset(head.source for head in self.heads)
        self._ids = build_haystack(ids)
        return self._ids


class SessionOrder:
    """Any number of sessions in order."""

    __slots__ = ("_blocks", "_shapes")

    def __init__(self, shapes: IdShapes) -> None:
        self._blocks: list[SessionBlock] = []
        self._shapes = shapes

    def fill(self, sessions: Iterable[tuple[SessionHead, int]]) -> None:
        """Take in many sessions with the numbers of their directories, in any order. Costs as much as all that are here then."""
        everything = [*self._pairs(), *sessions]
        everything.sort(key=lambda pair: order_key(pair[0]))
        self._blocks = []
        for start in range(0, len(everything), BLOCK_SESSIONS):
            heads, directories = zip(*everything[start : start + BLOCK_SESSIONS], strict=True)
            self._blocks.append(SessionBlock(list(heads), array("l", directories)))

    def add(self, head: SessionHead, directory: int) -> None:
        """Take in one session that is not here."""
        if not self._blocks:
            self._blocks.append(SessionBlock([], array("l")))
        at = self._block_of(head) if self._blocks[0].heads else 0
        block = self._blocks[at]
        block.insert(head, directory)
        if len(block.heads) > 2 * BLOCK_SESSIONS:
            self._blocks.insert(at + 1, block.split())

    def discard(self, head: SessionHead) -> None:
        """Let one session go that is here."""
        at = self._block_of(head)
        block = self._blocks[at]
        block.delete(block.rank_of(head))
        if not block.heads:
            del self._blocks[at]

    def swap(self, head: SessionHead) -> None:
        """Put a head in the place of the one with the same order key, source, directory and texts."""
        block = self._blocks[self._block_of(head)]
        block.heads[block.rank_of(head)] = head

    def find(self, needle: Needle, admission: Admission, limit: int) -> list[SessionHead]:
        """The first ``limit`` sessions that match and are admitted, in order. Stops at the block that completes them."""
        found: list[SessionHead] = []
        for block in self._blocks:
            found += block.find(needle, admission, limit - len(found), self._shapes)
            if len(found) >= limit:
                break
        return found

    def in_directories(self, directories: frozenset[int]) -> Iterator[tuple[SessionHead, int]]:
        """The sessions of some directories."""
        for block in self._blocks:
            own = [rank for rank, directory in enumerate(block.directories) if directory in directories]
            yield from ((block.heads[rank], block.directories[rank]) for rank in own)

    def _pairs(self) -> Iterator[tuple[SessionHead, int]]:
        return (pair for block in self._blocks for pair in zip(block.heads, block.directories, strict=True))

    def _block_of(self, head: SessionHead) -> int:
        return max(0, bisect_right(self._blocks, order_key(head), key=_first_key) - 1)


def _first_key(block: SessionBlock) -> OrderKey:
    return block.first_key
