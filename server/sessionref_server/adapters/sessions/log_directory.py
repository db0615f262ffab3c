"""One agent's session logs on disk, as a source of sessions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sessionref_server.adapters.sessions.log_catalogue import LogCatalogue
from sessionref_server.adapters.sessions.log_format import LogFile, LogFormat
from sessionref_server.adapters.sessions.log_services import LogDirectoryServices
from sessionref_server.adapters.sessions.log_surfaces import LogMovedError, SurfaceReader
from sessionref_server.adapters.sessions.log_survey import LogRoots, look_again
from sessionref_server.adapters.sessions.log_watch import LogWatcher
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.errors import SourceUnavailableError, UnknownSessionError
from sessionref_server.domain.ports import HeadChanges, SourceCheck
from sessionref_server.domain.session import SessionId

_THREADS = 3
"""Threads that touch the file system, for each source its own: a folder that does not answer holds up nobody else."""
_ATTEMPTS = 2

_log = logging.getLogger(__name__)


class LogDirectorySource:
    """A SessionSource over one log format. Made and used on one event loop."""

    def __init__(self, log_format: LogFormat, roots: LogRoots, services: LogDirectoryServices) -> None:
        self.name = log_format.name
        self._roots = roots
        self._executor = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix=f"logs-{log_format.name}")
        self._catalogue = LogCatalogue(log_format, roots, services, self._executor)
        self._surfaces = SurfaceReader(log_format, services, self._catalogue.heads.maker)

    def check(self) -> SourceCheck:
        """Current state; never blocks."""
        counts = self._catalogue.heads.table.counts()
        return SourceCheck(
            name=self.name,
            ready=self._catalogue.ready.is_set(),
            places=tuple(str(root) for root in self._roots.paths),
            listed=counts.listed,
            unreadable=counts.unreadable,
            damaged=counts.damaged,
            too_new=counts.too_new,
            empty=counts.empty,
            failure=self._catalogue.failure,
        )

    async def follow_heads(self, publish: Callable[[HeadChanges], None]) -> None:
        """Publish all heads, newest first and in steps, then every change. One follower at a time; runs until cancelled."""
        watcher = LogWatcher(self._roots.paths, self._catalogue.on_changes, self._executor)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._catalogue.follow(publish))
            tasks.create_task(watcher.run())

    async def read_surface(self, session_id: SessionId) -> Capture:
        """Read one session as its model sees it now.

        Raises:
            UnknownSessionError: no log holds the session, or it has no messages.
            DamagedSessionError, UnsupportedVersionError: its log cannot be read truthfully.
            SourceUnavailableError: its log cannot be read now.
        """
        for attempt in range(_ATTEMPTS):
            entry = await self._catalogue.locate(session_id)
            if entry is None:
                break
            head, known = entry
            file = await self._look(known)
            if file is not None:
                try:
                    return await self._surfaces.read(head, file)
                except LogMovedError:
                    _log.debug("a log of source %s moved while it was read", self.name)
            if attempt + 1 < _ATTEMPTS:
                await self._catalogue.sweep()
        if self._catalogue.failure and self._catalogue.heads.maker.native_id(session_id):
            raise SourceUnavailableError("the source cannot be read now", session_id=session_id, source=self.name)
        raise UnknownSessionError("no session has this id", session_id=session_id)

    def close(self) -> None:
        """Let the threads end. One that waits for storage is not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _look(self, file: LogFile) -> LogFile | None:
        found = await asyncio.get_running_loop().run_in_executor(self._executor, look_again, [file])
        return found[0]
