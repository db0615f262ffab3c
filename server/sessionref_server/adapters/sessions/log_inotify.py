"""Linux's own notifications, asked for one folder at a time.

Libraries that watch whole trees hold the interpreter's lock while they walk one, which stops the event loop for a tenth of a
second where there are some thousand folders. Here each folder is one short system call, made without the lock.
"""

# inotify_simple has no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from inotify_simple import INotify, flags

from sessionref_server.adapters.sessions.log_change import ChangeKind, LogChange

QUIET_SECONDS = 0.04
"""Changes are told once no further one came for so long."""
GATHER_SECONDS = 0.08
"""How long after the first one changes are told at the latest."""

_WANTED = flags.MODIFY | flags.MOVED_FROM | flags.MOVED_TO | flags.CREATE | flags.DELETE | flags.ONLYDIR
_KINDS = (
    (flags.CREATE | flags.MOVED_TO, ChangeKind.ADDED),
    (flags.DELETE | flags.MOVED_FROM, ChangeKind.DELETED),
    (flags.MODIFY, ChangeKind.MODIFIED),
)


class InotifyWatch:
    """One run of watching. Everything but ``stop`` happens in one thread, which blocks."""

    def __init__(self, roots: Sequence[str]) -> None:
        """Raises OSError when the system has no watches left at all."""
        self._roots = roots
        self._paths: dict[int, str] = {}
        self._stopping = False
        self._closing = threading.Lock()
        self._queue = INotify()
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
            self._queue.close()
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
        poll.register(self._queue.fileno(), select.POLLIN)
        poll.register(self._stop_signal, select.POLLIN)
        return [descriptor for descriptor, _ in poll.poll(None if timeout_seconds is None else timeout_seconds * 1000)]

    def _read(self) -> Iterator[LogChange | None]:
        for event in self._queue.read(timeout=0):
            yield from self._interpret(event.wd, event.mask, event.name)

    def _interpret(self, watch: int, mask: int, name: str) -> Iterator[LogChange | None]:
        if mask & flags.Q_OVERFLOW:
            self._watch_roots()
            yield None
        if mask & flags.IGNORED:
            self._paths.pop(watch, None)
        folder = self._paths.get(watch)
        if folder is None or not name:
            return
        path = f"{folder}/{name}"
        kind = next((kind for flags, kind in _KINDS if mask & flags), None)
        if kind is None:
            return
        if mask & flags.ISDIR:
            self._follow_folder(path, kind)
        yield kind, path

    def _follow_folder(self, path: str, kind: ChangeKind) -> None:
        if kind is ChangeKind.ADDED:
            self._watch_tree(path, flags.DONT_FOLLOW)
        elif kind is ChangeKind.DELETED:
            prefix = path + "/"
            for watch in [watch for watch, other in self._paths.items() if other == path or other.startswith(prefix)]:
                del self._paths[watch]
                with suppress(OSError):  # the system may have ended the watch itself
                    self._queue.rm_watch(watch)

    def _watch_roots(self) -> None:
        for root in self._roots:
            self._watch_tree(root, 0)

    def _watch_tree(self, root: str, extra: int) -> None:
        """Watch a folder and all below it, without following links below. What is gone or closed to us is left out."""
        waiting = [root]
        while waiting:
            folder = waiting.pop()
            if self._watch_folder(folder, extra):
                waiting += _folders_in(folder)
            extra = flags.DONT_FOLLOW

    def _watch_folder(self, folder: str, extra: int) -> bool:
        try:
            self._paths[self._queue.add_watch(folder, _WANTED | extra)] = folder
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return False
        return True


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
