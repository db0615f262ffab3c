"""What a strict reading tells."""

from __future__ import annotations

from dataclasses import dataclass, field

from sessionref_server.adapters.sessions.formats.dsh.header import Header
from sessionref_server.adapters.sessions.formats.dsh.labels import Labels
from sessionref_server.adapters.sessions.formats.dsh.surface import SurfaceNodes
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import LogFault


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictReading:
    """Everything one reading tells."""

    fault: LogFault | None
    detail: str
    header: Header | None
    begun: bool
    """Whether there is as much as a header row, or damage in its place."""
    events: int
    closers: int
    through_seq: int | None
    nodes: SurfaceNodes
    owed_result_seqs: tuple[int, ...] = field(default=())
    """Sequence numbers of the error results that close the last turn; they stand at the end of the surface."""
    labels: Labels
    torn_tail: bool
    recovered_events: int
    damaged_records: int
    unknown_records: int
