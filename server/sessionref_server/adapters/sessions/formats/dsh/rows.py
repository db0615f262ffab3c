"""Form of the rows after the header."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, cast

from sessionref_server.adapters.sessions.formats.dsh.header import whole_number
from sessionref_server.adapters.sessions.formats.dsh.json_fields import fields_of, items_of
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import PACKED_MEMBERS

_PACKED_KEYS = {"type", "seq0", "time0", "data"}
_PACKED_DATA_KEYS = {"turn", "step", "index", "dt"}


class SourceSeqs:
    """The events a row was made from, as ascending ranges or as a plain list; a range costs its two ends, whatever it spans."""

    __slots__ = ("_ends", "_starts", "count", "highest", "unique")

    def __init__(self, starts: list[int], ends: list[int]) -> None:
        self.count = sum(ends) - sum(starts) + len(starts)
        self.highest = max(ends, default=-1)
        order = sorted(range(len(starts)), key=starts.__getitem__)
        self._starts = [starts[index] for index in order]
        self._ends = [ends[index] for index in order]
        self.unique = all(end < start for end, start in zip(self._ends, self._starts[1:], strict=False))

    def covers(self, seqs: Iterable[int]) -> bool:
        """Whether every one of ``seqs`` is named."""
        return all(self._has(seq) for seq in seqs)

    def _has(self, seq: int) -> bool:
        index = bisect_right(self._starts, seq) - 1
        return index >= 0 and seq <= self._ends[index]


def parse_sources(value: object, own_seq: int) -> SourceSeqs | None:
    """Read numbers and ``[start, end]`` pairs.

    ``None`` when malformed, when values or expanded length pass the row's own seq, or when pairs occur without ascending order.
    """
    if type(value) is not list:
        return None
    starts: list[int] = []
    ends: list[int] = []
    paired = False
    for item in cast("list[object]", value):
        bounds = _bounds(item)
        if bounds is None or bounds[1] > own_seq:
            return None
        paired = paired or type(item) is list
        starts.append(bounds[0])
        ends.append(bounds[1])
    if paired and any(end >= start for end, start in zip(ends, starts[1:], strict=False)):
        return None
    sources = SourceSeqs(starts, ends)
    return sources if sources.count <= own_seq + 1 else None


def _bounds(item: object) -> tuple[int, int] | None:
    if type(item) is int and item >= 0:
        return item, item
    if type(item) is not list:
        number = whole_number(item)
        return None if number is None else (number, number)
    pair = cast("list[object]", item)
    if len(pair) != 2:  # noqa: PLR2004 - a pair
        return None
    start, end = whole_number(pair[0]), whole_number(pair[1])
    return (start, end) if start is not None and end is not None and start <= end else None


def packed_length(row: dict[str, Any]) -> int | None:
    """How many events a packed row of versions 0 and 1 stands for; ``None`` when it is malformed."""
    members_key = PACKED_MEMBERS[row["type"]]
    fields = fields_of(row.get("data"))
    if row.keys() != _PACKED_KEYS or not is_number(row["time0"]):
        return None
    named = {"id", "name"} if members_key == "args" else set[str]()
    if not _PACKED_DATA_KEYS | {members_key} | (named & {"id"}) <= fields.keys() <= _PACKED_DATA_KEYS | {members_key} | named:
        return None
    if any(whole_number(fields[key]) is None for key in ("turn", "step", "index")):
        return None
    if any(type(fields[key]) is not str for key in named & fields.keys()):
        return None
    return _member_count(fields[members_key], fields["dt"])


def _member_count(members: object, gaps: object) -> int | None:
    texts, times = items_of(members), items_of(gaps)
    well_formed = texts and type(gaps) is list and len(times) == len(texts) - 1 and all(map(is_number, times))
    return len(texts) if well_formed and all(type(text) is str for text in texts) else None


def event_form_ok(row: dict[str, Any]) -> bool:
    """Whether a row has an event's fields with the right types; seq and sources are judged apart."""
    return (
        type(row.get("type")) is str
        and "seq" in row
        and is_number(row.get("time"))
        and "data" in row
        and row.get("ignorable", True) is True
    )


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number."""
    return type(value) is int or (type(value) is float and math.isfinite(value))
