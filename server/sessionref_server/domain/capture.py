"""What one read of one source session gives."""

from __future__ import annotations

from dataclasses import dataclass, field

from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.session import ReadingFacts, SessionId


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True, eq=False)
class Capture:
    """An immutable snapshot of a session's projected surface. A source changed afterwards never changes it.

    Compared by identity: an unchanged source gives the same object again, so what was computed from it can be kept beside it.
    """

    session_id: SessionId
    cwd: str | None
    format_version: int = 0
    """Version of the source's own log format; 0 when it has none."""
    through_seq: int | None = None
    """Coordinate of the last event captured, in the source's own numbering; ``None`` for an empty log."""
    conversation: Conversation
    reading: ReadingFacts = field(default_factory=ReadingFacts)
    redactions: int = 0
    """Key-shaped strings replaced in the conversation."""
