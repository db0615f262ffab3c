"""Sessions as the product sees them: identity, head (what the catalogue keeps) and the states of a log."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from sessionref_server.domain.label import clean_label

SessionId = NewType("SessionId", str)
"""The id a host uses on the wire: the native id for dsh, ``<source>:<native id>`` for every other source."""


class SessionStatus(StrEnum):
    """What could be read of a log. Never silent: every state but ``OK`` carries a detail."""

    OK = "ok"
    PARTIAL = "partial"
    """Readable; damage was skipped and counted."""
    DAMAGED = "damaged"
    """Not readable: what is left would misrepresent the session."""
    TOO_NEW = "too_new"
    """Written by a format version this reader does not know; the detail names the version."""
    EMPTY = "empty"
    """A session without any message yet."""
    NOT_A_SESSION = "not_a_session"
    """A file where a session log was expected, but which is none."""


LISTED_STATUSES = frozenset({SessionStatus.OK, SessionStatus.PARTIAL, SessionStatus.DAMAGED, SessionStatus.TOO_NEW})
"""States in which a session is offered as a candidate. A damaged or too new one is offered so that a person sees that it
exists; a reference to it is refused with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRoute:
    """Which model a session last used. Both parts are the strings the agent recorded."""

    provider: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """Everything candidate search knows of one session. Made from the log in the background, never at search time."""

    session_id: SessionId
    source: str
    title: str | None = None
    """Latest title, one clean line; ``None`` when the log has none. An empty title is a title."""
    subagent_label: str | None = None
    """Label the subagent was created with; ``None`` when none is recorded. An empty one counts."""
    cwd: str | None = None
    """Working directory exactly as recorded: what searches match and workspaces are told apart by."""
    shown_cwd: str | None = None
    """The directory as others may see it, when that is not as it was recorded: without secrets and control characters."""
    created_at_ms: int = 0
    updated_at_ms: int | None = None
    """Time of the last message, not of the last write."""
    parent_id: SessionId | None = None
    is_subagent: bool = False
    archived: bool = False
    route: ModelRoute | None = None
    status: SessionStatus = SessionStatus.OK
    status_detail: str = ""

    @property
    def label(self) -> str:
        """Latest title, else the session id; one clean line either way."""
        return self.title if self.title is not None else clean_label(self.session_id)

    @property
    def display_title(self) -> str:
        """Creation label of a subagent when one is recorded, else the label."""
        return self.subagent_label if self.subagent_label is not None else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingFacts:
    """What a reader had to skip. Carried to the host and said to the model, so that damage is never silent."""

    status: SessionStatus = SessionStatus.OK
    damaged_records: int = 0
    """Complete lines that were skipped: bad JSON, wrong shape, NUL runs, over the size cap."""
    unknown_records: int = 0
    """Well-formed records of a kind this reader does not know."""
    torn_tail: bool = False
    """The log ends inside a record (it is being written, or a write was interrupted)."""
    notes: tuple[str, ...] = field(default=())
    """Short sentences of our own about what is not there, e.g. ``compacted history (encrypted)``. Never transcript text,
    except session ids."""
