"""What the use cases ask of the outside world. Adapters implement these; tests bring fakes that pass the same contract suites.

Every method returns domain values, raises only ``domain.errors`` and lets ``CancelledError`` pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.session import ModelRoute, SessionHead, SessionId

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCheck:
    """State of one source, for GetServiceInfo and the per-source statuses of a search."""

    name: str
    ready: bool
    """The first scan is complete."""
    places: tuple[str, ...] = ()
    """Folders it reads; for the person's own terminal only, never on the wire of a shared server."""
    listed: int = 0
    unreadable: int = 0
    """Logs that are damaged, too new, or no session at all where one was expected."""
    damaged: int = 0
    """How many of the unreadable ones are damaged."""
    too_new: int = 0
    """How many of the unreadable ones were written by a newer version of their format. The rest is no session at all."""
    empty: int = 0
    failure: str = ""
    """Why the source as a whole cannot be read, in one sentence; empty when it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadChanges:
    """A step of a source's catalogue: heads that are new or changed, ids that are gone."""

    changed: Sequence[SessionHead] = ()
    removed: Sequence[SessionId] = ()


class SessionSource(Protocol):
    """Sessions of one kind, wherever they are kept."""

    @property
    def name(self) -> str:
        """Stable name, e.g. ``claude-code``; the prefix of its ids unless the source is dsh or the session store."""
        ...

    def check(self) -> SourceCheck:
        """Current state; never blocks."""
        ...

    async def follow_heads(self, publish: Callable[[HeadChanges], None]) -> None:
        """Publish all heads, newest first and in steps, then every change within one second. Runs until cancelled; a failing
        store is reported by ``check`` and tried again, never raised.
        """
        ...

    async def read_surface(self, session_id: SessionId) -> Capture:
        """Read one session as its model sees it now. Raises a subclass of ReadFailedError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillTicket:
    """Where a full transcript was saved."""

    locator: str
    size_bytes: int
    fresh: bool = True
    """Whether this save made it; ``False`` when an earlier one is used again."""


class SpillStore(Protocol):
    """Keeps full transcripts of cut sources."""

    async def save(self, owner: SessionId, content: bytes) -> SpillTicket:
        """Save whole or not at all; when the caller is cancelled, nothing is ever visible. The same content saved again for the
        same owner may give the same ticket, with ``fresh`` false.

        Raises:
            SpillFailedError: storage refused.
        """
        ...

    async def renew(self, owner: SessionId, ticket: SpillTicket) -> bool:
        """Give a ticket a new life. ``False`` when what it stands for is gone or nearly expired; save again then."""
        ...

    def discard(self, owner: SessionId, ticket: SpillTicket) -> None:
        """Remove a fresh save whose locator nobody will be told. Returns at once; the removal is under way."""
        ...

    async def read(self, locator: str, owner: SessionId, offset_bytes: int, limit_bytes: int) -> tuple[bytes, int]:
        """One page and the total size. Raises UnknownSessionError when the locator is unknown, expired or another owner's."""
        ...


class SpillFailedError(Exception):
    """Storage refused a save. Never fails a call: the notice says ``save-failed``."""


class ModelCatalogue(Protocol):
    """Context windows by model."""

    async def context_window_tokens(self, route: ModelRoute) -> int | None:
        """Context window in tokens; ``None`` when provider, model or capacity is unknown. Raises ModelMetadataError when the
        catalogue itself fails.
        """
        ...


class SecretDetector(Protocol):
    """Finds key-shaped strings."""

    def find(self, text: bytes) -> list[tuple[int, int]]:
        """Byte ranges ``(start, end)`` of secrets in UTF-8 text, ascending and not overlapping. Linear in the text."""
        ...


class Offload(Protocol):
    """Runs pure functions where they cannot block the event loop. Cancelling a call stops waiting at once.

    Raises what the function raises, and OverloadedError when there is nobody to run it.
    """

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of bounded cost."""
        ...

    async def build_bytes(self, pieces: Callable[P, Iterable[bytes]], /, *args: P.args, **kwargs: P.kwargs) -> bytes:
        """Run a function that yields pieces of bytes, and join them. When cancelled, the work stops before its next piece."""
        ...
