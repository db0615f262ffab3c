"""What a person can pick after typing ``@``.

A field that is not explained here means what the field of the same name means in ``proto/sessionref/v1/candidate.proto``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessionref_client.errors import SessionReferenceError


class Domain(StrEnum):
    """Kinds of candidates. One batch holds one of them."""

    FILES = "files"
    SESSIONS = "sessions"


class FileKind(StrEnum):
    """What a file candidate is."""

    FILE = "file"
    DIRECTORY = "directory"
    UNKNOWN = "unknown"
    """A kind newer than this client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCandidate:
    """A session a person may refer to. Its texts were written by somebody else: show them, never interpret them."""

    session_id: str
    label: str
    display_title: str
    cwd: str | None
    same_workspace: bool
    created_at_ms: int
    mention: str
    """Put this into the person's text."""
    source: str
    updated_at_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCandidate:
    """A file or directory of the workspace."""

    path: str
    kind: FileKind
    mention: str
    """Put this into the person's text; empty when the path cannot be written as a mention."""
    display_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """State of one source of sessions."""

    source: str
    ready: bool
    listed_sessions: int
    unreadable_sessions: int
    empty_sessions: int
    damaged_sessions: int = 0
    """How many of the unreadable ones are damaged."""
    too_new_sessions: int = 0
    """How many of the unreadable ones need a newer server. The rest is no session at all."""
    failure: str
    """Why the source as a whole cannot be read; empty when it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBatch:
    """Ranked candidates of one domain, best first. A later batch of the domain replaces this one."""

    domain: Domain | None
    """``None`` for a domain newer than this client."""
    sessions: tuple[SessionCandidate, ...]
    files: tuple[FileCandidate, ...]
    partial: bool
    """More is coming for this domain."""
    truncated: bool
    """The index is incomplete by a limit, and will stay so."""
    source_statuses: tuple[SourceStatus, ...]
    error: SessionReferenceError | None
    """Why this domain failed; the other one may be well."""
