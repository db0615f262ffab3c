"""Keeps the heads of one log directory up to date: when to look, at what, and in which order to read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from sessionref_server.adapters.sessions.head_pump import HeadPump
from sessionref_server.adapters.sessions.log_change import ChangeKind, LogChange
from sessionref_server.adapters.sessions.log_format import LogFile, LogFormat
from sessionref_server.adapters.sessions.log_heads import LogHeads, Publish
from sessionref_server.adapters.sessions.log_jobs import HeadResult, ReadHeads
from sessionref_server.adapters.sessions.log_services import LogDirectoryServices
from sessionref_server.adapters.sessions.log_survey import LogRoots, Survey, Surveyor, look_again
from sessionref_server.adapters.workers.job import WorkerFailedError
from sessionref_server.domain.session import SessionHead, SessionId

T = TypeVar("T")

SWEEP_SECONDS = 30.0
"""Everything is looked at this often, whatever notifications say."""
ROUND_SECONDS = 0.25
"""Changes are taken up at most this often; a log that is appended to all the time is read again no more often."""
MAX_SWEEP_SHARE = 0.25
"""Sweeps that changes call for take about this part of the time ..."""
MAX_SWEEP_PAUSE_SECONDS = 0.4
"""... unless that would hide a new log for a second, as after a look at folders that are large or slow."""
MAX_NAMED_LOGS = 64
"""Logs read out of turn because their path holds the id somebody asks for."""

_log = logging.getLogger(__name__)


class LogCatalogue:
    """The heads of one source, and the work of keeping them. Used on one event loop."""

    def __init__(self, log_format: LogFormat, roots: LogRoots, services: LogDirectoryServices, executor: Executor) -> None:
        self.heads = LogHeads(log_format, services, executor)
        self.ready = asyncio.Event()
        """Set once every log of the first sweep was read."""
        self.failure = ""
        self._format = log_format
        self._workers = services.workers
        self._executor = executor
        self._surveyor = Surveyor(log_format, roots)
        self._pump = HeadPump(log_format, services.workers, self._take_results)
        self._pending: dict[str, LogFile] | None = None
        """Logs of the first sweep that are still to be read; ``None`` before it."""
        self._following = False
        self._looking = asyncio.Lock()
        self._wake = asyncio.Event()
        self._touched: set[str] = set()
        self._titles_due = False
        self._sweep_due = False
        self._sweep_not_before = 0.0
        self._next_sweep = 0.0

    async def follow(self, publish: Publish) -> None:
        """Publish all heads and every change until cancelled."""
        self._following = True
        try:
            await self.heads.begin(publish)
            self._next_sweep = 0.0
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pump.run())
                tasks.create_task(self._keep_up())
        finally:
            self._following = False
            self.heads.end()

    def on_changes(self, changes: Collection[LogChange] | None) -> None:
        """Take note of notifications; ``None`` means that anything may have changed."""
        if changes is None:
            self._sweep_due = True
        for kind, path in changes or ():
            self._note(kind, path)
        if self._sweep_due or self._titles_due or self._touched:
            self._wake.set()

    async def sweep(self) -> None:
        """Look at all roots now and take up what is found."""
        async with self._looking:
            self._sweep_due = False
            await self._take_titles()
            started = _now()
            survey = await self._in_thread(self._surveyor.survey, self.heads.table.files())
            # What is done with the findings counts for nothing: it is much at the first sweep, and next to nothing later.
            self._sweep_not_before = _now() + sweep_pause_seconds(_now() - started)
            await self._take_survey(survey)

    async def locate(self, session_id: SessionId) -> tuple[SessionHead, LogFile] | None:
        """The log that holds a session, also while the first logs are still being read."""
        native_id = self.heads.maker.native_id(session_id)
        found = self._located(session_id)
        if found is not None or not native_id or self.ready.is_set():
            return found
        if self._pending is None:
            await self.sweep()
        await self._read_named(native_id)
        if self._located(session_id) is None and self._following:
            await self.ready.wait()
        return self._located(session_id)

    def _located(self, session_id: SessionId) -> tuple[SessionHead, LogFile] | None:
        entry = self.heads.table.locate(session_id)
        return (entry.head, entry.file) if entry is not None and entry.head is not None else None

    async def _read_named(self, native_id: str) -> None:
        """Read logs out of turn whose path holds an id."""
        named = [file for path, file in (self._pending or {}).items() if native_id in path][:MAX_NAMED_LOGS]
        if not named:
            return
        try:
            results = await self._workers.run(ReadHeads(type(self._format), tuple(named)))
        except WorkerFailedError:
            return  # the queue finds out which of them is to blame
        if isinstance(results, list):
            await self._take_results(list(zip(named, results, strict=False)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def _note(self, kind: ChangeKind, path: str) -> None:
        if path in self._surveyor.title_paths:
            self._titles_due = True
        elif path in self.heads.table:
            self._touched.add(path)
        elif kind is ChangeKind.ADDED or (kind is ChangeKind.DELETED and self._may_hold_logs(path)):
            self._sweep_due = True

    def _may_hold_logs(self, path: str) -> bool:
        return not self._sweep_due and self.heads.table.has_below(path)

    async def _keep_up(self) -> None:
        while True:
            try:
                await self._round()
            except Exception as error:  # noqa: BLE001 - a source that fails once is looked at again, and never ends the service
                _log.warning("source %s could not be brought up to date: %s", self._format.name, type(error).__name__)
            await asyncio.sleep(ROUND_SECONDS)
            await self._until_something_is_due()

    async def _round(self) -> None:
        self._wake.clear()
        regular = _now() >= self._next_sweep
        if regular:
            self._next_sweep = _now() + SWEEP_SECONDS
        if regular or (self._sweep_due and _now() >= self._sweep_not_before):
            await self.sweep()
        if regular:
            self._want(self._files(self.heads.failed))
        if self._titles_due:
            self._titles_due = False
            async with self._looking:
                await self._take_titles()
        if self._touched:
            touched, self._touched = self._touched, set()
            await self._look(touched)

    async def _until_something_is_due(self) -> None:
        due = self._sweep_not_before if self._sweep_due else self._next_sweep
        try:
            async with asyncio.timeout_at(due):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _look(self, paths: Iterable[str]) -> None:
        seen = await self._in_thread(look_again, self._files(paths))
        self._sweep_due = self._sweep_due or None in seen
        self._want(self.heads.table.found(file for file in seen if file is not None))

    async def _take_titles(self) -> None:
        titles = await self._in_thread(self._surveyor.titles_when_changed)
        if titles is not None:
            self._want(await self.heads.take_titles(titles))

    async def _take_survey(self, survey: Survey) -> None:
        if survey.failure != self.failure:
            self.failure = survey.failure
            self.heads.tell_state()
        self._pump.forget(survey.gone)
        self._settle(survey.gone)
        await self.heads.drop(survey.gone)
        changed = self.heads.table.found(survey.changed)
        first = self._pending is None
        if first:
            self._pending = {file.path: file for file in changed}
        unread = await self.heads.take_cached(changed, whole=first and not survey.failure)
        self._want(unread)
        still_to_read = {file.path for file in unread}
        self._settle([file.path for file in changed if file.path not in still_to_read])

    async def _take_results(self, results: Sequence[tuple[LogFile, HeadResult]]) -> None:
        if await self.heads.take_results(results):
            self._sweep_due = True
            self._wake.set()
        self._settle([file.path for file, _ in results])

    def _settle(self, paths: Iterable[str]) -> None:
        """These logs of the first sweep are done with."""
        if self._pending is None or self.ready.is_set():
            return
        for path in paths:
            self._pending.pop(path, None)
        if not self._pending:
            self.ready.set()
            self.heads.tell_state()

    def _want(self, files: Iterable[LogFile]) -> None:
        for file in files:
            entry = self.heads.table.entry(file.path)
            self._pump.want([file], grown=entry is not None and entry.head is not None)

    def _files(self, paths: Iterable[str]) -> list[LogFile]:
        return [entry.file for path in paths if (entry := self.heads.table.entry(path)) is not None]

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)


def sweep_pause_seconds(sweep_seconds: float) -> float:
    """How long after a sweep the next one has to wait that a change calls for."""
    return min(sweep_seconds * (1 / MAX_SWEEP_SHARE - 1), MAX_SWEEP_PAUSE_SECONDS)


def _now() -> float:
    return asyncio.get_running_loop().time()
