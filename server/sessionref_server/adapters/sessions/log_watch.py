"""Notices changes below the roots of a log directory, by the system's notifications where there are any.

Notifications are hints: what they say is looked up again, and whoever listens sweeps everything from time to time as well. A root
that does not exist yet, was removed, or was replaced by another folder is looked for every two seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import stat
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Protocol

from sessionref_server.adapters.sessions.log_change import LogChange

ROOTS_SECONDS = 2.0
SWEEP_SECONDS = 0.7
"""How often everything is looked at where notifications cannot be had, so that a change is still seen within a second."""
RETRY_SECONDS = 60.0
"""How long sweeps replace notifications before these are tried again."""
_STOP_SECONDS = 1.0

OnChanges = Callable[[Collection[LogChange] | None], None]
"""Told of changed paths; ``None`` means that anything may have changed."""

_RootIdentity = tuple[int, int]

_log = logging.getLogger(__name__)


class TreeWatch(Protocol):
    """One run of watching some trees."""

    def changes(self) -> Iterator[Collection[LogChange] | None]:
        """First ``None`` when watching has begun, then what changed. Blocks. Raises OSError when notifications cannot be had."""
        ...

    def stop(self) -> None:
        """End ``changes`` soon; from any thread."""
        ...


class LogWatcher:
    """Watches roots for one source. ``on_changes`` is called on the event loop."""

    def __init__(self, roots: Sequence[Path], on_changes: OnChanges, executor: Executor) -> None:
        self._roots = roots
        self._on_changes = on_changes
        self._executor = executor

    async def run(self) -> None:
        """Watch until cancelled."""
        known: Mapping[Path, _RootIdentity] | None = None
        while True:
            present = await self._present_roots()
            if known is not None and present != known:
                self._on_changes(None)
            known = present
            if not present:
                await asyncio.sleep(ROOTS_SECONDS)
            elif not await self._watch_while_same(present):
                await self._sweep_instead()

    async def _watch_while_same(self, present: Mapping[Path, _RootIdentity]) -> bool:
        """Watch until the roots are other ones; false when notifications cannot be had."""
        watching = _WatchThread([str(root) for root in present], self._on_changes)
        watching.start()
        try:
            while not watching.ended.done():
                await asyncio.wait({watching.ended}, timeout=ROOTS_SECONDS)
                if await self._present_roots() != present:
                    return True
            return not watching.failed
        finally:
            await watching.stop()

    async def _sweep_instead(self) -> None:
        _log.warning("changes of session logs cannot be watched; looking for them every %.1f s instead", SWEEP_SECONDS)
        for _ in range(int(RETRY_SECONDS / SWEEP_SECONDS)):
            self._on_changes(None)
            await asyncio.sleep(SWEEP_SECONDS)

    async def _present_roots(self) -> Mapping[Path, _RootIdentity]:
        return await asyncio.get_running_loop().run_in_executor(self._executor, _identities, self._roots)


class _WatchThread:
    """A thread that watches and never holds up the end of the program."""

    def __init__(self, roots: Sequence[str], on_changes: OnChanges) -> None:
        self._roots = roots
        self._on_changes = on_changes
        self._loop = asyncio.get_running_loop()
        self._watch: TreeWatch | None = None
        self._stopped = threading.Event()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.failed = False

    def start(self) -> None:
        threading.Thread(target=self._run, name="log-watch", daemon=True).start()

    async def stop(self) -> None:
        """Stop and wait for the thread, but not for a file system that does not answer."""
        self._stopped.set()
        if self._watch is not None:
            self._watch.stop()
        if not self.ended.done():
            await asyncio.wait({self.ended}, timeout=_STOP_SECONDS)

    def _run(self) -> None:
        try:
            self._watch = tree_watch(self._roots)
            for changes in self._watch.changes():
                if self._stopped.is_set():
                    break
                self._post(self._on_changes, changes)
        except Exception as error:  # noqa: BLE001 - no watches left, a root that vanished, a library in trouble: sweeps take over
            self.failed = True
            _log.debug("watching ended: %s", type(error).__name__)
        finally:
            self._post(self._end)

    def _post(self, function: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(function, *arguments)

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


def tree_watch(roots: Sequence[str]) -> TreeWatch:
    """The way of watching this system has. Raises OSError when it has none left."""
    if sys.platform == "linux":
        from sessionref_server.adapters.sessions.log_inotify import InotifyWatch

        return InotifyWatch(roots)
    from sessionref_server.adapters.sessions.log_watchfiles import WatchfilesWatch

    return WatchfilesWatch(roots)


def _identities(roots: Sequence[Path]) -> Mapping[Path, _RootIdentity]:
    present: dict[Path, _RootIdentity] = {}
    for root in roots:
        with contextlib.suppress(OSError):
            found = root.stat()
            if stat.S_ISDIR(found.st_mode):
                present[root] = (found.st_dev, found.st_ino)
    return present
