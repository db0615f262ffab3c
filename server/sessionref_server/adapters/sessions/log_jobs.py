"""What worker processes do for a log directory: read heads of many logs, or the surface of one.

Folds stay in the worker between jobs, so that a log that grew costs what was added. A job is sent to the worker that has its fold
(affinity); any other worker reads the log from the start and comes to the same result.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar

from sessionref_server.adapters.sessions.head_json import bounded_head, encode_head
from sessionref_server.adapters.sessions.log_format import HeadFold, LogEnd, LogFile, LogFormat, Surface, SurfaceFold
from sessionref_server.adapters.sessions.log_reader import (
    FoldReader,
    LogGoneError,
    NotARegularFileError,
    ReadCancelledError,
    StaleFoldError,
)
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.session import ReadingFacts

Fold = TypeVar("Fold", HeadFold, SurfaceFold)

FormatMaker = Callable[[], LogFormat]
"""Makes the format in the worker: its class."""

LogPlace = tuple[str, bool, bool, str | None]
"""What a fold is told of a log by its place; a fold is kept for exactly that."""

MAX_ATTEMPTS = 3
"""How often a log that is being rewritten is started again within one job."""
SURFACE_FOLDS_BYTES = 128 * 1024 * 1024
HEAD_FOLDS_BYTES = 8 * 1024 * 1024

_SIZE = 2
"""Where a ``LogIdentity`` has the log's size."""
_FOLD_BYTES = 8 * 1024
_MESSAGE_BYTES = 400
_SHARE_OF_LOG = 16
"""A fold keeps ids and links of records beside the texts; a sixteenth of the log is a generous guess at them."""


class Outcome(StrEnum):
    """How the reading of one log came out."""

    READ = "read"
    GONE = "gone"
    """No regular file is there any more."""
    UNREADABLE = "unreadable"
    """The system refuses: permission, an input/output error; or the log never rests."""
    BROKEN = "broken"
    """The reader failed on what it found."""


@dataclass(frozen=True, slots=True)
class HeadResult:
    """``head`` is ``encode_head``'s JSON; empty unless read."""

    outcome: Outcome
    head: bytes = b""
    error: str = ""
    """Name of the exception when the reader failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceResult:
    """A surface, packed. All but ``outcome`` are meaningful only when it was read."""

    outcome: Outcome
    error: str = ""
    """Name of the exception when the reader failed."""
    native_id: str = ""
    cwd: str | None = None
    format_version: int = 0
    through_seq: int | None = None
    conversation: Conversation = field(default_factory=lambda: Conversation.of(()))
    reading: ReadingFacts = field(default_factory=ReadingFacts)


class _KeptFolds(Generic[Fold]):
    """Folds with their readers, the least recently used ones dropped beyond ``limit_bytes``."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held: OrderedDict[tuple[str, LogPlace], tuple[Fold, FoldReader, int]] = OrderedDict()
        self._held_bytes = 0

    def take(self, key: tuple[str, LogPlace]) -> tuple[Fold, FoldReader] | None:
        """Take a fold out; it comes back by ``keep`` unless something goes wrong with it."""
        found = self._held.pop(key, None)
        if found is None:
            return None
        self._held_bytes -= found[2]
        return found[0], found[1]

    def keep(self, key: tuple[str, LogPlace], fold: Fold, reader: FoldReader, size_bytes: int) -> None:
        """Keep a fold that stands for the whole log."""
        if size_bytes > self._limit_bytes:
            return
        self._held[key] = (fold, reader, size_bytes)
        self._held_bytes += size_bytes
        # A job can be interrupted between any two steps; a count that went wrong then must not outlive what it counts.
        while self._held_bytes > self._limit_bytes and self._held:
            self._held_bytes -= self._held.popitem(last=False)[1][2]
        if not self._held:
            self._held_bytes = 0


_surface_folds: _KeptFolds[SurfaceFold] = _KeptFolds(SURFACE_FOLDS_BYTES)
_head_folds: _KeptFolds[HeadFold] = _KeptFolds(HEAD_FOLDS_BYTES)


@dataclass(frozen=True, slots=True)
class ReadHeads:
    """Read the heads of several logs. Gives ``list[HeadResult]`` in the order of ``files``."""

    make_format: FormatMaker
    files: tuple[LogFile, ...]
    keep_folds: bool = False
    """For logs that are growing right now: keep what was folded for the next time."""

    def run(self, is_cancelled: Callable[[], bool]) -> list[HeadResult]:
        """One result per log; a log that cannot be read says so and never spoils the others."""
        results: list[HeadResult] = []
        for file in self.files:
            if is_cancelled():
                break
            results.append(self._read(file, is_cancelled))
        return results

    def _read(self, file: LogFile, is_cancelled: Callable[[], bool]) -> HeadResult:
        log_format = self.make_format()
        key = (log_format.name, _place(file))
        kept = _head_folds.take(key)
        try:
            fold, reader, end = _fold_log(file, kept, lambda: log_format.head_fold(file), is_cancelled, is_head=True)
            head = encode_head(bounded_head(fold.head(end)))
        except (LogGoneError, NotARegularFileError):
            return HeadResult(Outcome.GONE)
        except (OSError, ReadCancelledError, StaleFoldError):
            return HeadResult(Outcome.UNREADABLE)
        except Exception as error:  # noqa: BLE001 - whatever a hostile log makes a reader do, it costs this log only
            return HeadResult(Outcome.BROKEN, error=type(error).__name__)
        if self.keep_folds:
            _head_folds.keep(key, fold, reader, _FOLD_BYTES + len(end.tail))
        return HeadResult(Outcome.READ, head)


@dataclass(frozen=True, slots=True)
class ReadSurface:
    """Read the surface of one log. Gives a ``SurfaceResult``."""

    make_format: FormatMaker
    file: LogFile

    def run(self, is_cancelled: Callable[[], bool]) -> SurfaceResult:
        """The surface as of now."""
        log_format = self.make_format()
        key = (log_format.name, _place(self.file))
        kept = _surface_folds.take(key)
        try:
            fold, reader, end = _fold_log(
                self.file, kept, lambda: log_format.surface_fold(self.file), is_cancelled, is_head=False
            )
            result = _packed(fold.surface(end))
        except (LogGoneError, NotARegularFileError):
            return SurfaceResult(outcome=Outcome.GONE)
        except (OSError, ReadCancelledError, StaleFoldError):
            return SurfaceResult(outcome=Outcome.UNREADABLE)
        except Exception as error:  # noqa: BLE001 - as for heads
            return SurfaceResult(outcome=Outcome.BROKEN, error=type(error).__name__)
        if reader.identity is not None:
            size_bytes = 2 * result.conversation.total_text_bytes + _MESSAGE_BYTES * len(result.conversation)
            size_bytes += _FOLD_BYTES + reader.identity[_SIZE] // _SHARE_OF_LOG
            _surface_folds.keep(key, fold, reader, size_bytes)
        return result


def _fold_log(
    file: LogFile,
    kept: tuple[Fold, FoldReader] | None,
    fresh_fold: Callable[[], Fold],
    is_cancelled: Callable[[], bool],
    *,
    is_head: bool,
) -> tuple[Fold, FoldReader, LogEnd]:
    """Feed a kept fold what was added, or a fresh one the whole log; start again when the log was rewritten meanwhile."""
    for fold, reader in _attempts(file, kept, fresh_fold, is_head=is_head):
        reader.is_cancelled = is_cancelled
        try:
            return fold, reader, reader.read()
        except StaleFoldError:
            continue
    raise StaleFoldError


def _attempts(
    file: LogFile, kept: tuple[Fold, FoldReader] | None, fresh_fold: Callable[[], Fold], *, is_head: bool
) -> Iterator[tuple[Fold, FoldReader]]:
    if kept is not None:
        yield kept
    for _ in range(MAX_ATTEMPTS):
        fold = fresh_fold()
        yield fold, FoldReader(file.path, fold, is_head=is_head)


def _packed(surface: Surface) -> SurfaceResult:
    return SurfaceResult(
        outcome=Outcome.READ,
        native_id=surface.native_id,
        cwd=surface.cwd,
        format_version=surface.format_version,
        through_seq=surface.through_seq,
        conversation=Conversation.of(surface.messages),
        reading=replace(surface.reading, notes=tuple(surface.reading.notes)),
    )


def _place(file: LogFile) -> LogPlace:
    return file.path, file.archived, file.is_subagent, file.parent_native_id
