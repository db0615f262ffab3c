"""Messages that a compaction kept as they were.

A compaction may preserve the newest messages beside its summary. They are not written again: the boundary record names them, and
the record after which they now stand (the anchor: the summary, or the boundary itself). On disk their parents are still the old
ones, so the walk along the live branch is led through them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True, slots=True, kw_only=True)
class PreservedSegment:
    """What one boundary says, in uuids."""

    boundary: int
    head: str | None
    anchor: str | None
    tail: str | None
    uuids: Sequence[str]
    """All kept messages in order, where the version lists them; empty when only head and tail are named."""

    @classmethod
    def of(cls, metadata: object, boundary: int) -> PreservedSegment | None:
        """Read ``compactMetadata``; ``None`` when nothing was preserved."""
        if type(metadata) is not dict:
            return None
        segment = _mapping(cast("dict[str, Any]", metadata).get("preservedSegment"))
        listing = _mapping(cast("dict[str, Any]", metadata).get("preservedMessages"))
        listed = listing.get("uuids")
        uuids = [item for item in cast("list[object]", listed) if type(item) is str] if type(listed) is list else []
        head, tail = _text(segment.get("headUuid")), _text(segment.get("tailUuid"))
        if not uuids and (head is None or tail is None):
            return None
        anchor = _text(segment.get("anchorUuid")) or _text(listing.get("anchorUuid"))
        return cls(boundary=boundary, head=head, anchor=anchor, tail=tail, uuids=uuids)


@dataclass(frozen=True, slots=True)
class ResolvedSegment:
    """Kept records in order, and the record they stand after."""

    members: Sequence[int]
    anchor: int


class SegmentIndex:
    """Finds the segment a walk meets at a record: at the anchor, coming from what follows, or at the segment's last message."""

    def __init__(self, segments: Sequence[PreservedSegment], by_uuid: dict[str, int], links: Sequence[int]) -> None:
        self._at: dict[int, ResolvedSegment] = {}
        for segment in segments:
            resolved = _resolve(segment, by_uuid, links)
            if resolved is not None:
                self._at[resolved.anchor] = resolved
                self._at[resolved.members[-1]] = resolved

    def __bool__(self) -> bool:
        return bool(self._at)

    def pop(self, number: int) -> ResolvedSegment | None:
        """The segment met at a record, once."""
        segment = self._at.pop(number, None)
        if segment is not None:
            self._at.pop(segment.anchor, None)
            self._at.pop(segment.members[-1], None)
        return segment


def _resolve(segment: PreservedSegment, by_uuid: dict[str, int], links: Sequence[int]) -> ResolvedSegment | None:
    anchor = by_uuid.get(segment.anchor, segment.boundary) if segment.anchor else segment.boundary
    listed = [by_uuid[uuid] for uuid in segment.uuids if uuid in by_uuid]
    members = listed or _between(by_uuid.get(segment.head or ""), by_uuid.get(segment.tail or ""), links)
    members = [number for number in members if number not in (anchor, segment.boundary)]
    return ResolvedSegment(members, anchor) if members else None


def _between(head: int | None, tail: int | None, links: Sequence[int]) -> list[int]:
    """Records from head to tail along the parents; empty when the tail does not descend from the head."""
    if head is None or tail is None:
        return []
    members = [tail]
    while members[-1] != head:
        link = links[members[-1]]
        if link < 0 or len(members) > len(links):
            return []
        members.append(link)
    members.reverse()
    return members


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if type(value) is dict else {}


def _text(value: object) -> str | None:
    return value if type(value) is str and value else None
