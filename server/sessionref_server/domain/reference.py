"""References to sessions, and the content of the message that holds them."""

from __future__ import annotations

from dataclasses import dataclass

from sessionref_server.domain.session import SessionId


@dataclass(frozen=True, slots=True)
class SessionReference:
    """A reference as a host or a mention gives it: not yet checked against the target or for repetitions."""

    session_id: str
    label: str | None = None
    """What the person saw; ``None`` stands for the id, an empty label stays empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A distinct, well-formed reference to another session than the target."""

    session_id: SessionId
    label: str
    """One clean line; display only."""
    input_index: int
    """Position among the distinct references, from 0."""


@dataclass(frozen=True, slots=True)
class TextContent:
    """A text block of the person's message."""

    text: str


@dataclass(frozen=True, slots=True)
class OpaqueContent:
    """A block of any other kind. It travels untouched."""

    value: object


Content = TextContent | OpaqueContent
