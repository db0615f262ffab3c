"""A message that refers to sessions, and the context prepared for it.

A field that is not explained here means what the field of the same name means in ``proto/sessionref/v1/reference.proto``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from sessionref_client.content import TextBlock

if TYPE_CHECKING:
    from sessionref_client.content import ContentBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRoute:
    """Which model a session talks to. ``context_window_tokens``, when given, decides the byte budget."""

    provider: str | None = None
    model: str | None = None
    context_window_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The session the person is typing into."""

    session_id: str = ""
    """Needed to prepare; empty in a search: no session is left out as "itself"."""
    cwd: str | None = None
    """The workspace. ``None``: no session is of the same workspace, and there are no file candidates."""
    route: ModelRoute | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReference:
    """A reference to a session. ``label`` is what the person saw: ``None`` stands for the id, and an empty one stays empty."""

    session_id: str
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMention:
    """A file mentioned in a text, by form only: it may not exist."""

    path: str
    quoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedText:
    """A text in which each session mention reads ``@label``, and what was mentioned, in order of appearance."""

    text: str
    references: tuple[SessionReference, ...]
    files: tuple[FileMention, ...]


class Trust(StrEnum):
    """How much a text may be trusted. There is one value: instructions in a context message are data."""

    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingFacts:
    """What a reader had to skip in a source. All zero and empty for an intact log."""

    damaged_records: int
    unknown_records: int
    torn_tail: bool
    redactions: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedReference:
    """What was captured of one source session."""

    session_id: str
    label: str
    captured_format_version: int
    captured_through_seq: int | None
    compacted: bool
    original_messages: int
    retained_messages: int
    omitted_messages: int
    omitted_bytes: int
    truncated: bool
    input_index: int
    reading: ReadingFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReferenceSource:
    """Where a context message came from. Store it beside the message."""

    kind: str
    form: str
    version: int
    references: tuple[CapturedReference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedSnapshot:
    """The full text of a cut source was saved. ``locator`` is for ``read_snapshot``."""

    locator: str
    size_bytes: int
    retrieval_hint: str


class SnapshotUnavailable(StrEnum):
    """Why the full text of a cut source was not saved."""

    STORAGE_NOT_CONFIGURED = "storage-not-configured"
    SAVE_FAILED = "save-failed"
    UNKNOWN = "unknown"
    """A reason newer than this client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """What a source lost to its byte budget, and where the rest is."""

    session_id: str
    captured_through_seq: int | None
    omitted_messages: int
    omitted_bytes: int
    full_snapshot: SavedSnapshot | SnapshotUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMessage:
    """The message to give to the model, with role ``user``, before the person's own."""

    id: str
    content: tuple[ContentBlock, ...]
    source: SessionReferenceSource
    omissions: tuple[Omission, ...]
    trust: Trust

    @property
    def text(self) -> str:
        """The text of the message: that of its text blocks, of which this version of the contract sends one."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What to send to the model. ``additional_context`` is ``None`` when there was no reference."""

    content: tuple[ContentBlock, ...]
    additional_context: ContextMessage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChunk:
    """Bytes of UTF-8 text; a chunk may end inside a character."""

    data: bytes
    offset_bytes: int
    total_bytes: int
