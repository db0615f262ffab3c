"""The seam for one agent's log format: a new agent is one module in ``formats/`` and one row in its table.

A format never opens a file itself. ``log_reader`` reads bytes (plain or zstd, bounded, cancellable, resumable) and feeds complete
lines to a *fold*; the fold builds the head or the surface. Folds are kept between reads, so that growth costs its own size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sessionref_server.domain.message import Message
from sessionref_server.domain.session import ModelRoute, ReadingFacts, SessionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A log found by ``discover``: what stat says, and what its place says. Picklable; travels to worker processes."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    archived: bool = False
    is_subagent: bool = False
    parent_native_id: str | None = None
    """Parent as told by the folder, when the folder tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
    """How the bytes ended, told to a fold when all complete lines have been fed."""

    tail: bytes = b""
    """Bytes after the last newline: a torn record, or a whole one whose newline is not written yet. A fold that accepts it must
    not keep it in its state, since it will be fed again once complete."""
    skipped_lines: int = 0
    """Complete lines over the size cap, or of NUL bytes, that were never fed."""
    damage: str = ""
    """Why the container is damaged (checksum, structure, bomb); empty when it is not. Lines before the damage were fed."""
    torn_frame: bool = False
    """zstd: the last frame is incomplete; complete lines recovered from it were fed."""
    recovered_lines: int = 0
    """zstd: how many of the fed lines came from a torn last frame."""
    frame_ends: Sequence[int] = field(default=())
    """zstd: number of complete lines fed when each complete frame ended, first two frames only (dsh: frame 1 is the header)."""
    split_frame: bool = False
    """zstd: a complete frame ended inside a line, and another frame followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeHead:
    """A head in the format's own ids. Titles are raw; the source cleans, bounds and redacts them."""

    native_id: str
    title: str | None = None
    subagent_label: str | None = None
    cwd: str | None = None
    created_at_ms: int | None = None
    updated_at_ms: int | None = None
    parent_native_id: str | None = None
    is_subagent: bool = False
    route: ModelRoute | None = None
    status: SessionStatus = SessionStatus.OK
    status_detail: str = ""
    """For TOO_NEW the version, otherwise one short sentence without transcript text or paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """The current surface, already projected to visible messages in surface order."""

    native_id: str
    messages: Sequence[Message]
    cwd: str | None = None
    format_version: int = 0
    through_seq: int | None = None
    reading: ReadingFacts = field(default_factory=ReadingFacts)
    """Its status says whether a reference may use it: OK and PARTIAL may; all others are refused."""


class HeadFold(Protocol):
    """Builds a head from lines in file order."""

    @property
    def settled(self) -> bool:
        """Whether everything that only the beginning tells is known; from then on only lines that match ``marker`` are fed,
        except the last 64 KiB of the log, which are always fed.
        """
        ...

    @property
    def marker(self) -> re.Pattern[bytes]:
        """Matches inside any line that can still change the head (titles, names): an alternation of fixed literals of ours."""
        ...

    def feed(self, line: bytes) -> None:
        """Take one complete line, without its newline. Never raises on bad input: counts or ignores it."""
        ...

    def head(self, end: LogEnd) -> NativeHead:
        """The head as of now; may be called again after more lines."""
        ...


class SurfaceFold(Protocol):
    """Builds a surface from all complete lines in file order."""

    def feed(self, line: bytes) -> None:
        """Take one complete line, without its newline. Never raises on bad input: counts it."""
        ...

    def surface(self, end: LogEnd) -> Surface:
        """The surface as of now, without changing the fold; may be called again after more lines."""
        ...


class LogFormat(Protocol):
    """One agent's logs."""

    name: str
    """Source name on the wire, e.g. ``claude-code``."""
    version: int
    """Version of this reader; a change makes cached heads and folds void."""
    prefixed_ids: bool
    """Whether wire ids are ``<name>:<native id>``."""
    lists_subagents: bool
    """Whether subagent sessions are candidates unless the caller says otherwise."""

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Usual places on this machine, existing or not."""
        ...

    def discover(self, root: Path) -> Iterator[LogFile]:
        """Logs below a root by names and stat only: regular files, no links followed, no file opened. Raises OSError when the
        root itself cannot be read; an unreadable folder below it is skipped.
        """
        ...

    def head_fold(self, file: LogFile) -> HeadFold:
        """A fresh fold for a head."""
        ...

    def surface_fold(self, file: LogFile) -> SurfaceFold:
        """A fresh fold for a surface."""
        ...

    def titles(self, root: Path) -> Mapping[str, str]:
        """Titles by native id that live outside the logs (an index, a database). They never decide existence, cwd or content."""
        ...

    def title_files(self, root: Path) -> Sequence[Path]:
        """Files ``titles`` reads; when one changes, it is called again."""
        ...
