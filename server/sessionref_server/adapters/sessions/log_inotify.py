"""Linux's own notifications, asked for one folder at a time.

Libraries that watch whole trees hold the interpreter's lock while they walk one, which stops the event loop for a tenth of a
second where there are some thousand folders. Here each folder is one short system call, made without the lock.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from enum import IntFlag

from sessionref_server.adapters.sessions.log_change import ChangeKind, LogChange

QUIET_SECONDS = 0.04
"""Changes are told once no further one came for so long."""
GATHER_SECONDS = 0.08
"""How long after the first one changes are told at the latest."""

_READ_BYTES = 64 * 1024
_EVENT = struct.Struct("iIII")


class _Mask(IntFlag):
    """From ``inotify(7)``."""

    MODIFY = 0x2
    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    CREATE = 0x100
    DELETE = 0x200
    OVERFLOW = 0x4000
    IGNORED = 0x8000
    ONLYDIR = 0x0100_0000
    DONT_FOLLOW = 0x0200_0000
    ISDIR = 0x4000_0000


_WANTED = _Mask.MODIFY | _Mask.MOVED_FROM | _Mask.MOVED_TO | _Mask.CREATE | _Mask.DELETE | _Mask.ONLYDIR
_KINDS = (
    (_Mask.CREATE | _Mask.MOVED_TO, ChangeKind.ADDED),
    (_Mask.DELETE | _Mask.MOVED_FROM, ChangeKind.DELETED),
    (_Mask.MODIFY, ChangeKind.MODIFIED),
)


class InotifyWatch:
    """One run of watching. Everything but ``stop`` happens in one thread, which blocks."""

    def __init__(self, roots: Sequence[str]) -> None:
        """Raises OSError when the system has no watches left at all."""
        self._library = ctypes.CDLL(None, use_errno=True)
        self._roots = roots
        self._paths: dict[int, bytes] = {}
        self._stopping = False
        self._closing = threading.Lock()
        self._queue: int = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._queue < 0:
            raise _last_error()
        self._stop_signal = os.eventfd(0, os.EFD_CLOEXEC)

    def stop(self) -> None:
        """End ``changes`` soon; from any thread."""
        with self._closing:
            if self._stop_signal >= 0:
                os.eventfd_write(self._stop_signal, 1)

    def changes(self) -> Iterator[Collection[LogChange] | None]:
        """First ``None`` once every folder is watched, then what changed; ``None`` again when anything may have.

        Raises:
            OSError: no watches are left.
        """
        try:
            self._watch_roots()
            yield None
            while not self._stopping:
                yield self._gather()
        finally:
            self._close()

    def _close(self) -> None:
        with self._closing:
            os.close(self._queue)
            os.close(self._stop_signal)
            self._stop_signal = -1

    def _gather(self) -> Collection[LogChange] | None:
        """Wait for changes and collect what comes at the same time."""
        found: dict[LogChange, None] = {}
        anything = False
        ends = None
        while ends is None or time.monotonic() < ends:
            ready = self._wait(None if ends is None else QUIET_SECONDS)
            self._stopping = self._stop_signal in ready
            if self._stopping or not ready:
                break
            ends = time.monotonic() + GATHER_SECONDS if ends is None else ends
            for change in self._read():
                anything = anything or change is None
                if change is not None:
                    found[change] = None
        return None if anything else list(found)

    def _wait(self, timeout_seconds: float | None) -> Collection[int]:
        poll = select.poll()
        poll.register(self._queue, select.POLLIN)
        poll.register(self._stop_signal, select.POLLIN)
        return [descriptor for descriptor, _ in poll.poll(None if timeout_seconds is None else timeout_seconds * 1000)]

    def _read(self) -> Iterator[LogChange | None]:
        try:
            data = os.read(self._queue, _READ_BYTES)
        except BlockingIOError:
            return
        position = 0
        while position < len(data):
            watch, mask, _, name_bytes = _EVENT.unpack_from(data, position)
            position += _EVENT.size + name_bytes
            name = data[position - name_bytes : position].rstrip(b"\0")
            yield from self._interpret(watch, _Mask(mask), name)

    def _interpret(self, watch: int, mask: _Mask, name: bytes) -> Iterator[LogChange | None]:
        if mask & _Mask.OVERFLOW:
            self._watch_roots()
            yield None
        if mask & _Mask.IGNORED:
            self._paths.pop(watch, None)
        folder = self._paths.get(watch)
        if folder is None or not name:
            return
        path = os.path.join(folder, name)  # noqa: PTH118 - bytes, as the system gave them
        kind = next((kind for flags, kind in _KINDS if mask & flags), None)
        if kind is None:
            return
        if mask & _Mask.ISDIR:
            self._follow_folder(path, kind)
        yield kind, os.fsdecode(path)

    def _follow_folder(self, path: bytes, kind: ChangeKind) -> None:
        if kind is ChangeKind.ADDED:
            self._watch_tree(path, _Mask.DONT_FOLLOW)
        elif kind is ChangeKind.DELETED:
            prefix = path + b"/"
            for watch in [watch for watch, other in self._paths.items() if other == path or other.startswith(prefix)]:
                self._library.inotify_rm_watch(self._queue, watch)
                del self._paths[watch]

    def _watch_roots(self) -> None:
        for root in self._roots:
            self._watch_tree(os.fsencode(root), _Mask(0))

    def _watch_tree(self, root: bytes, extra: _Mask) -> None:
        """Watch a folder and all below it, without following links below. What is gone or closed to us is left out."""
        waiting = [root]
        while waiting:
            folder = waiting.pop()
            if self._watch_folder(folder, extra):
                waiting += _folders_in(folder)
            extra = _Mask.DONT_FOLLOW

    def _watch_folder(self, folder: bytes, extra: _Mask) -> bool:
        watch = self._library.inotify_add_watch(self._queue, folder, int(_WANTED | extra))
        if watch >= 0:
            self._paths[watch] = folder
            return True
        error = _last_error()
        if isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError):
            return False
        raise error


def _folders_in(folder: bytes) -> list[bytes]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
