"""Reads the bytes of one log, plain or zstd, and feeds complete lines to a fold: bounded, cancellable, resumable.

A reader is kept between reads together with its fold, so that growth costs its own size. It never writes, never follows a link,
and never waits on anything but a regular file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from sessionref_server.adapters.sessions.frame_feed import FrameFeed
from sessionref_server.adapters.sessions.line_feed import FLOOD_FROM_LINES, HeadFeeder, LineFeeder, LineFloodError
from sessionref_server.adapters.sessions.line_folds import LineFold, MarkedFold
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.adapters.sessions.zstd_frames import FrameDamageError, FrameLimits, ZstdFrames

_MEBIBYTE = 1024 * 1024
_CHUNK_BYTES = 256 * 1024
"""Read at once for a surface; the cancel flag is looked at between chunks, so a chunk's parsing time is the delay of a cancel."""
_HEAD_CHUNK_BYTES = _MEBIBYTE
_PROBE_BYTES = 4096
_MAX_ROUNDS = 4

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class ReadCancelledError(Exception):
    """The caller gave up while the log was read; the fold is half fed and must be thrown away."""


class StaleFoldError(Exception):
    """The log is no longer the one the fold was built from (rewritten, cut, replaced): start again with a fresh fold."""


class LogGoneError(FileNotFoundError):
    """The log was removed or renamed since it was found."""


class NotARegularFileError(OSError):
    """A FIFO, socket, device, directory or symbolic link stands where a log was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What one log may cost. A plain log of any size is read; its memory is bounded by the line cap."""

    line_bytes: int = 32 * _MEBIBYTE
    """A longer line is skipped and counted."""
    decompressed_bytes: int = 4096 * _MEBIBYTE
    """A zstd log that expands further is damaged. Its ratio is limited as well, see ``zstd_frames``."""
    window_bytes: int = 8 * _MEBIBYTE
    """Memory a zstd frame may ask for."""
    frames: int = 1_000_000
    """zstd frames in one log."""


LogIdentity = tuple[int, int, int, int]
"""Which bytes a fold stands for: device, inode, size in bytes and mtime in nanoseconds."""


def is_zstd_path(path: str) -> bool:
    """Whether a log is compressed, by its name."""
    return path.endswith((".zstd", ".zst"))


class FoldReader:
    """One log, one fold, and how far the fold got."""

    def __init__(
        self,
        file_path: str,
        fold: LineFold,
        *,
        is_head: bool,
        limits: ReadLimits | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Nothing is opened yet. ``is_head`` says that ``fold`` is a head fold, which need not see every line."""
        self.limits = limits or ReadLimits()
        self.is_cancelled = is_cancelled
        """May be replaced before each read."""
        self._path = file_path
        self._zstd = is_zstd_path(file_path)
        line_limit_bytes = self.limits.line_bytes
        self._feeder = HeadFeeder(cast("MarkedFold", fold), line_limit_bytes) if is_head else LineFeeder(fold, line_limit_bytes)
        self._chunk_bytes = _HEAD_CHUNK_BYTES if is_head else _CHUNK_BYTES
        self._offset = 0
        self._probe = b""
        self._first = self._last = b""
        """The first and the last bytes as they were read."""
        self._identity: LogIdentity | None = None
        self._end: LogEnd | None = None
        self._spoiled = False
        self._frame_feed = FrameFeed(self._feeder)
        self._frames_read = 0
        self._output_bytes = 0
        self._torn = False
        self._torn_output = False

    @property
    def identity(self) -> LogIdentity | None:
        """What was read; ``None`` before the first read."""
        return self._identity

    def read(self) -> LogEnd:
        """Feed everything up to the current end of the log.

        Raises:
            ReadCancelledError: ``is_cancelled`` said so; the reader is spent.
            StaleFoldError: the log changed other than by growing, or this reader is spent; use a fresh fold and reader.
            LogGoneError: the log is gone.
            NotARegularFileError: the path is no regular file.
            OSError: the log cannot be read.
        """
        if self._spoiled:
            raise StaleFoldError
        self._check_cancelled()
        descriptor = _open_regular(self._path)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise NotARegularFileError(errno.EINVAL, "not a regular file")
            if self._end is not None and self._unchanged(found):
                return self._end
            self._require_growth(descriptor, found)
            # A fold fed in part stands for nothing; only a read that comes through makes the reader usable again.
            self._spoiled = True
            self._end = self._read_rounds(descriptor, found)
        finally:
            os.close(descriptor)
        self._spoiled = bool(self._end.damage) or self._torn_output
        return self._end

    def _unchanged(self, found: os.stat_result) -> bool:
        return self._identity == _identity_of(found)

    def _require_growth(self, descriptor: int, found: os.stat_result) -> None:
        before = self._identity
        if before is None:
            return
        device, inode, size, _ = before
        # An appended log only grows; a new time alone means that bytes were rewritten in place.
        grown = (found.st_dev, found.st_ino) == (device, inode) and found.st_size > size
        if not grown or self._probe_of(descriptor) != self._probe:
            raise StaleFoldError

    def _read_rounds(self, descriptor: int, found: os.stat_result) -> LogEnd:
        """Read, look again, read what was added meanwhile; a log that never rests is taken as it was at the last look."""
        damage = ""
        for _ in range(_MAX_ROUNDS):
            damage = self._advance(descriptor, found.st_size)
            latest = os.fstat(descriptor)
            if damage or self._torn_output or _same_moment(found, latest):
                break
            if latest.st_size < self._offset or self._rewritten(descriptor):
                raise StaleFoldError
            found = latest
        self._probe = self._probe_of(descriptor)
        self._identity = _identity_of(found)
        return self._log_end(damage)

    def _advance(self, descriptor: int, size: int) -> str:
        """Feed up to ``size``; returns why the container is damaged."""
        try:
            if self._zstd:
                self._advance_zstd(descriptor, size)
            else:
                self._advance_plain(descriptor, size)
        except (FrameDamageError, LineFloodError) as damage:
            return str(damage)
        return ""

    def _advance_plain(self, descriptor: int, size: int) -> None:
        push = self._feeder.push
        while self._offset < size:
            self._check_cancelled()
            chunk = os.pread(descriptor, min(self._chunk_bytes, size - self._offset), self._offset)
            if not chunk:
                raise StaleFoldError
            self._remember_ends(chunk)
            push(chunk)
            self._offset += len(chunk)

    def _remember_ends(self, chunk: bytes) -> None:
        if len(self._first) < _PROBE_BYTES:
            self._first = (self._first + chunk)[:_PROBE_BYTES]
        self._last = (self._last + chunk if len(chunk) < _PROBE_BYTES else chunk)[-_PROBE_BYTES:]

    def _rewritten(self, descriptor: int) -> bool:
        """Whether other bytes than those that were read stand there now: the log changed, and not by growing alone."""
        if self._zstd:
            return False  # what does not belong together does not decompress
        first = os.pread(descriptor, len(self._first), 0)
        last = os.pread(descriptor, len(self._last), self._offset - len(self._last))
        return (first, last) != (self._first, self._last)

    def _advance_zstd(self, descriptor: int, size: int) -> None:
        position = self._offset

        def read(limit_bytes: int) -> bytes:
            nonlocal position
            chunk = os.pread(descriptor, max(0, min(limit_bytes, size - position)), position)
            position += len(chunk)
            return chunk

        frames = ZstdFrames(read, self._frame_limits(), allow_skippable=self._path.endswith(".zst"))
        try:
            for piece in frames.pieces():
                self._check_cancelled()
                if piece is None:
                    self._frame_feed.frame_ended()
                else:
                    self._frame_feed.piece(piece)
                if self._feeder.lines > FLOOD_FROM_LINES + self._offset + frames.input_bytes:
                    raise FrameDamageError("the log expands to far too many lines")
        finally:
            self._frame_feed.finish(torn=frames.torn)
            self._offset += frames.complete_bytes
            self._frames_read += frames.frames - frames.torn
            self._output_bytes += frames.output_bytes
        self._torn = frames.torn
        self._torn_output = frames.torn and frames.torn_output_bytes > 0

    def _frame_limits(self) -> FrameLimits:
        return FrameLimits(
            output_bytes=self.limits.decompressed_bytes - self._output_bytes,
            window_bytes=self.limits.window_bytes,
            frames=self.limits.frames - self._frames_read,
        )

    def _log_end(self, damage: str) -> LogEnd:
        feed = self._frame_feed
        return LogEnd(
            tail=self._feeder.finish(),
            skipped_lines=self._feeder.skipped,
            damage=damage,
            torn_frame=self._torn,
            recovered_lines=feed.recovered_lines,
            frame_ends=tuple(feed.frame_ends),
            split_frame=feed.split,
        )

    def _probe_of(self, descriptor: int) -> bytes:
        """A hash of the first and the last bytes before the offset, so that a rewrite is noticed before its growth is trusted."""
        head_bytes = min(_PROBE_BYTES, self._offset)
        digest = hashlib.blake2b(os.pread(descriptor, head_bytes, 0), digest_size=16)
        digest.update(os.pread(descriptor, head_bytes, self._offset - head_bytes))
        return digest.digest()

    def _check_cancelled(self) -> None:
        if self.is_cancelled():
            raise ReadCancelledError


def _open_regular(path: str) -> int:
    """Open without following a link and without waiting for a FIFO's writer; devices and FIFOs are not opened at all."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise NotARegularFileError(errno.EINVAL, "not a regular file")
        return os.open(path, _OPEN_FLAGS)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise LogGoneError(errno.ENOENT, "the log is gone") from error
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise NotARegularFileError(errno.EINVAL, "not a regular file") from error
        raise


def _identity_of(found: os.stat_result) -> LogIdentity:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _same_moment(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
