"""A log read leniently: exports and logs that other tools wrote number, close and order their rows differently.

Rows that make sense are used in file order, the others are counted. A last record without its newline counts when it is whole.
"""

from __future__ import annotations

from typing import Any

from sessionref_server.adapters.sessions.formats.dsh.header import Header, usable_header, whole_number
from sessionref_server.adapters.sessions.formats.dsh.json_fields import fields_of, items_of
from sessionref_server.adapters.sessions.formats.dsh.labels import Labels
from sessionref_server.adapters.sessions.formats.dsh.projection import SHOWS_NOTHING, shown_by_assistant, shown_by_user
from sessionref_server.adapters.sessions.formats.dsh.surface import SurfaceNodes
from sessionref_server.adapters.sessions.formats.dsh.tolerant import TolerantReplacer
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import (
    ALL_SURFACE,
    ASSISTANT_MESSAGE,
    HEADER,
    NEWEST_VERSION,
    PACKED_MEMBERS,
    STEERING_MESSAGE,
    USER_MESSAGE,
    log_only_types,
)
from sessionref_server.adapters.sessions.json_line import parse_json_line

_USER_TYPES = frozenset({USER_MESSAGE, STEERING_MESSAGE})
_FIRST_SPARE_NODE = -2
_MAX_NAMED_SOURCES = 10_000


class LooseFold:
    """Takes rows in file order."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.nodes = SurfaceNodes()
        self.labels = Labels()
        self.through_seq: int | None = None
        self.rows = 0
        self.damaged = 0
        self.unknown = 0
        self._replacer = TolerantReplacer()
        self._spare_node = _FIRST_SPARE_NODE
        self._log_only = log_only_types()

    def copy(self) -> LooseFold:
        """An independent copy, to try a tail on."""
        twin = LooseFold()
        twin.__dict__.update(self.__dict__)
        twin.nodes = self.nodes.copy()
        twin.labels = self.labels.copy()
        return twin

    @property
    def too_new(self) -> bool:
        """Whether the header names a version this reader does not know."""
        return self.header is not None and self.header.version > NEWEST_VERSION

    def feed(self, line: bytes) -> None:
        """Take one row."""
        self.rows += 1
        row = parse_json_line(line)
        kind = row.get("type") if row else None
        if row is None or type(kind) is not str:
            self.damaged += 1
        elif kind == HEADER and self.header is None and (header := usable_header(row)):
            self.header = header
        elif self.too_new:
            return
        elif kind in PACKED_MEMBERS:
            self._count_packed(row)
        else:
            self._take(kind, row)

    def takes(self, tail: bytes) -> bool:
        """Whether a tail is a whole record."""
        row = parse_json_line(tail) if tail else None
        return row is not None and type(row.get("type")) is str

    def _take(self, kind: str, row: dict[str, Any]) -> None:
        seq = whole_number(row.get("seq"))
        self._reach(seq)
        if kind in ALL_SURFACE:
            self._place(seq, row)
        elif kind in self._log_only:
            self.labels.note(kind, row)
        else:
            self.unknown += 1

    def _place(self, seq: int | None, row: dict[str, Any]) -> None:
        node = seq
        if node is None or node in self.nodes:
            node = self._spare_node
            self._spare_node -= 1
        kind = row["type"]
        shown = (
            shown_by_assistant(row) if kind == ASSISTANT_MESSAGE else shown_by_user(row) if kind in _USER_TYPES else SHOWS_NOTHING
        )
        bounds = _bounds(row.get("surfaceOp"))
        if bounds is None:
            self.nodes.append(node, kind, shown)
            return
        removed = self._replacer.removed(self.nodes, bounds, _named(row.get("sourceEventSeqs")))
        self.nodes.replace(removed, node, kind, shown)

    def _count_packed(self, row: dict[str, Any]) -> None:
        first = whole_number(row.get("seq0"))
        members = items_of(fields_of(row.get("data")).get(PACKED_MEMBERS[row["type"]]))
        if first is None or not members:
            self.damaged += 1
            return
        self._reach(first + len(members) - 1)

    def _reach(self, seq: int | None) -> None:
        if seq is not None and (self.through_seq is None or seq > self.through_seq):
            self.through_seq = seq


def _bounds(operation: object) -> tuple[int, int] | None:
    """The range a row replaces, in either spelling; ``None`` when it appends, or does not say."""
    fields = fields_of(operation)
    if fields.get("op") != "replace":
        return None
    start = whole_number(fields.get("startSeq", fields.get("start")))
    end = whole_number(fields.get("endSeq", fields.get("end")))
    return None if start is None or end is None else (start, end)


def _named(sources: object) -> list[int]:
    """Single numbers among the sources; ranges repeat what the replaced range says."""
    return [seq for seq in items_of(sources)[:_MAX_NAMED_SOURCES] if type(seq) is int]
