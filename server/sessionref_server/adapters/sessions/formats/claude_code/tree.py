"""The tree that ``uuid`` and ``parentUuid`` span over a log, and its live branch.

File order is not conversation order: a rewind starts a second branch, parallel tools fork the chain, records are appended again.
The live branch leads from the newest message that nothing follows back to the root or to the newest compaction. Links can be
missing, point to themselves or run in circles; the walk then goes on with the record before, in file order, and counts the break.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sessionref_server.adapters.sessions.formats.claude_code.segments import PreservedSegment, SegmentIndex
from sessionref_server.adapters.sessions.json_line import epoch_ms

MESSAGE = 1
"""A turn: assistant output, or user text that is no tool result and no meta record."""
SIDECHAIN = 2
"""Belongs to a subagent whose records lie in its parent's log."""
CHECKPOINT = 4
"""A compaction summary."""
BOUNDARY = 8
"""What comes before it was compacted."""
NEEDS_PARENT = 16
"""Assistant output or a tool result, which cannot open a conversation."""

_REPLY = MESSAGE | NEEDS_PARENT
_ROOT = -1
_UNSAID = -2
_BROKEN = -3
_MAX_SEGMENTS = 64
"""Only the newest live compaction shows; the bound keeps a log of nothing but compactions linear."""


@dataclass(frozen=True, slots=True)
class LiveBranch:
    """Record numbers from the oldest live record to the newest, and how many links had to be replaced by file order."""

    records: Sequence[int]
    broken_links: int


class RecordTree:
    """Grows record by record; asking for the branch does not change it."""

    __slots__ = ("_by_uuid", "_flags", "_in_order", "_latest", "_logical", "_parents", "_segments", "_times", "_unresolved")

    def __init__(self) -> None:
        self._by_uuid: dict[str, int] = {}
        self._parents: list[int] = []
        self._flags = bytearray()
        self._times: dict[int, object] = {}
        self._unresolved: dict[int, str] = {}
        self._logical: dict[int, str] = {}
        self._segments: list[PreservedSegment] = []
        self._in_order = True
        self._latest = ""

    def copy(self) -> RecordTree:
        """An independent tree with the same records."""
        twin = RecordTree()
        twin._by_uuid = self._by_uuid.copy()
        twin._parents = self._parents.copy()
        twin._flags = self._flags.copy()
        twin._times = self._times.copy()
        twin._unresolved = self._unresolved.copy()
        twin._logical = self._logical.copy()
        twin._segments = self._segments.copy()
        twin._in_order, twin._latest = self._in_order, self._latest
        return twin

    def add(self, record: dict[str, Any], flags: int) -> int:
        """Add a record and return its number; a uuid seen before keeps its first number and place."""
        parents, by_uuid = self._parents, self._by_uuid
        number = len(parents)
        uuid = record.get("uuid")
        if type(uuid) is str and by_uuid.setdefault(uuid, number) != number:
            return by_uuid[uuid]
        parent = record.get("parentUuid", self)
        if type(parent) is str:
            link = by_uuid.get(parent, number)
            if link == number:
                self._unresolved[number] = parent
                link = _BROKEN
        else:
            link = _ROOT if parent is None else _UNSAID
        parents.append(link)
        self._flags.append(flags)
        if flags & MESSAGE:
            self._note_time(number, record.get("timestamp"))
        elif flags & BOUNDARY:
            self._note_boundary(number, record)
        return number

    def number(self, uuid: str) -> int | None:
        """Number of the record with this uuid."""
        return self._by_uuid.get(uuid)

    def reply_before(self, number: int) -> int | None:
        """The assistant record that a record directly follows, as the parts of one message do; ``None`` otherwise."""
        link = self._parents[number]
        return link if link >= 0 and self._flags[link] & _REPLY == _REPLY else None

    def live_branch(self, *, with_sidechains: bool, whole_history: bool = False) -> LiveBranch:
        """The branch a resumed session would continue.

        ``with_sidechains`` is for a subagent's own log. ``whole_history`` goes on past compactions.
        """
        hidden = 0 if with_sidechains else SIDECHAIN
        links = self._resolved_links(through_boundaries=whole_history)
        if all(link < 0 for link in links):
            return self._file_order(links, hidden, whole_history=whole_history)
        tip = self._tip(links, hidden)
        return _Walk(self, links, hidden, whole_history=whole_history).from_tip(tip)

    @property
    def flags(self) -> Sequence[int]:
        """Flags by record number."""
        return self._flags

    def segment_index(self, links: Sequence[int]) -> SegmentIndex:
        """Preserved segments by the records at which a walk meets them."""
        return SegmentIndex(self._segments[-_MAX_SEGMENTS:], self._by_uuid, links)

    def _note_time(self, number: int, time: object) -> None:
        # Strings of one format compare like the times they spell; anything else makes the tip be chosen by parsed times.
        self._times[number] = time
        latest = self._latest
        if type(time) is str and time >= latest and time[-1:] == "Z" and (len(time) == len(latest) or not latest):
            self._latest = time
        else:
            self._in_order = False

    def _note_boundary(self, number: int, record: dict[str, Any]) -> None:
        """Keep what a compaction says about the history before it and the messages it preserved."""
        logical = record.get("logicalParentUuid")
        if type(logical) is str:
            self._logical[number] = logical
        segment = PreservedSegment.of(record.get("compactMetadata"), number)
        if segment is not None:
            self._segments.append(segment)

    def _resolved_links(self, *, through_boundaries: bool) -> Sequence[int]:
        if not self._unresolved and not (through_boundaries and self._logical):
            return self._parents
        links = self._parents.copy()
        named = self._unresolved | self._logical if through_boundaries else self._unresolved
        for number, parent in named.items():
            link = self._by_uuid.get(parent, _BROKEN)
            links[number] = _BROKEN if link == number else link
        return links

    def _file_order(self, links: Sequence[int], hidden: int, *, whole_history: bool) -> LiveBranch:
        """All records as they lie, for logs whose records are not linked at all."""
        stop = BOUNDARY if not whole_history else 0
        records: list[int] = []
        for number in range(len(links) - 1, -1, -1):
            flags = self._flags[number]
            if flags & stop:
                break
            if not flags & hidden:
                records.append(number)
            if stop and flags & CHECKPOINT:
                break
        records.reverse()
        broken = sum(1 for position, number in enumerate(records) if position and links[number] == _BROKEN)
        return LiveBranch(records, broken)

    def _tip(self, links: Sequence[int], hidden: int) -> int:
        if self._in_order and not self._unresolved:
            return self._last_message(hidden)
        followed = self._followed(links, hidden)
        best, best_time, time = -1, -1, -1
        for number, flags in enumerate(self._flags):
            if not flags & MESSAGE or flags & hidden or followed[number]:
                continue
            own_time = epoch_ms(self._times[number])
            time = time if own_time is None else own_time
            if time >= best_time:
                best, best_time = number, time
        return best if best >= 0 else self._last_message(hidden)

    def _last_message(self, hidden: int) -> int:
        number = len(self._flags) - 1
        while number >= 0 and (not self._flags[number] & MESSAGE or self._flags[number] & hidden):
            number -= 1
        return number

    def _followed(self, links: Sequence[int], hidden: int) -> bytearray:
        """Marks the messages from which another message descends, directly or over records that are no messages."""
        followed = bytearray(len(links))
        climbed = bytearray(len(links))
        for start, flags in enumerate(self._flags):
            if not flags & MESSAGE or flags & hidden:
                continue
            number = self._before(links, start, hidden)
            while number >= 0 and not climbed[number]:
                if self._flags[number] & MESSAGE:
                    followed[number] = 1
                    break
                climbed[number] = 1
                number = self._before(links, number, hidden)
        return followed

    def _before(self, links: Sequence[int], number: int, hidden: int) -> int:
        link = links[number]
        if link == _UNSAID or (link == _ROOT and self._flags[number] & NEEDS_PARENT):
            link = number - 1
            while link >= 0 and self._flags[link] & hidden:
                link -= 1
        return link


class _Walk:
    """One walk from a tip to the root; visits each record at most once, so it ends whatever the links say."""

    def __init__(self, tree: RecordTree, links: Sequence[int], hidden: int, *, whole_history: bool) -> None:
        self._flags = tree.flags
        self._links = links
        self._hidden = hidden
        self._landmarks = 0 if whole_history else BOUNDARY | CHECKPOINT
        self._past_checkpoint = False
        self._segments = None if whole_history else tree.segment_index(links)
        self._seen = bytearray(len(links))
        self._skip = list[int]()
        self._broken = 0

    def from_tip(self, tip: int) -> LiveBranch:
        records: list[int] = []
        seen, links, flags = self._seen, self._links, self._flags
        number = tip
        while number >= 0 and not seen[number]:
            segment = self._segments.pop(number) if self._segments else None
            if segment is not None:
                records.extend(self._unseen(segment.members))
                number = segment.anchor
                continue
            if flags[number] & self._landmarks and self._ends_before(flags[number]):
                break
            seen[number] = 1
            records.append(number)
            link = links[number]
            number = link if link >= 0 and not seen[link] else self._detour(number)
        records.reverse()
        return LiveBranch(records, self._broken)

    def _ends_before(self, flags: int) -> bool:
        """Whether the branch ends before a landmark; after a checkpoint every message is one."""
        if flags & BOUNDARY or (self._past_checkpoint and not flags & CHECKPOINT):
            return True
        self._past_checkpoint = True
        self._landmarks |= MESSAGE
        return False

    def _unseen(self, members: Sequence[int]) -> list[int]:
        """Members of a preserved segment, newest first."""
        fresh: list[int] = []
        for number in reversed(members):
            if not self._seen[number]:
                self._seen[number] = 1
                fresh.append(number)
        return fresh

    def _detour(self, number: int) -> int:
        """Where the walk goes on when a record has no parent to go to; -1 when it ends."""
        link = self._links[number]
        if self._past_checkpoint or (link == _ROOT and not self._flags[number] & NEEDS_PARENT):
            return -1
        previous = self._previous_unseen(number)
        if link >= 0 or (link == _BROKEN and previous >= 0):
            self._broken += 1
        return previous

    def _previous_unseen(self, number: int) -> int:
        """Nearest earlier record in file order that was not visited. Ranges found visited are skipped the next time."""
        if not self._skip:
            self._skip = list(range(-1, len(self._links) - 1))
        trail: list[int] = []
        previous = self._skip[number]
        while previous >= 0 and (self._seen[previous] or self._flags[previous] & self._hidden):
            trail.append(previous)
            previous = self._skip[previous]
        self._skip[number] = previous
        for passed in trail:
            self._skip[passed] = previous
        return previous
