"""The heads of one source as they come in (cache, workers, titles beside the logs), and what its follower is told of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TypeVar

from sessionref_server.adapters.sessions.head_cache import CachedHead
from sessionref_server.adapters.sessions.head_json import decode_head
from sessionref_server.adapters.sessions.log_format import LogFile, LogFormat, NativeHead
from sessionref_server.adapters.sessions.log_jobs import HeadResult, Outcome
from sessionref_server.adapters.sessions.log_services import LogDirectoryServices
from sessionref_server.adapters.sessions.log_table import LogTable
from sessionref_server.adapters.sessions.session_heads import HeadMaker
from sessionref_server.domain.ports import HeadChanges
from sessionref_server.domain.session import SessionHead

T = TypeVar("T")

_log = logging.getLogger(__name__)

STEP_HEADS = 512
"""Heads taken in and published at once, so that no step holds up the event loop."""

Publish = Callable[[HeadChanges], None]
_Document = tuple[LogFile, bytes]


class LogHeads:
    """Used on one event loop; what takes long runs in ``executor``."""

    def __init__(self, log_format: LogFormat, services: LogDirectoryServices, executor: Executor) -> None:
        self.maker = HeadMaker(log_format, services.redact)
        self.table = LogTable(lists_subagents=log_format.lists_subagents)
        self.failed: dict[str, None] = {}
        """Paths of logs that could not be read, to be tried again: permissions change without any other trace."""
        self._format = log_format
        self._cache = services.head_cache
        self._executor = executor
        self._publish: Publish | None = None
        self._titles: Mapping[str, str] = {}
        self._cached: dict[str, CachedHead] | None = None

    async def begin(self, publish: Publish) -> None:
        """Tell a new follower everything, and then every change."""
        self._publish = publish
        for step in _steps(self.table.published()):
            publish(HeadChanges(changed=step))
            await asyncio.sleep(0)
        await self.tell()

    def end(self) -> None:
        """Nobody follows any more."""
        self._publish = None

    async def tell(self) -> None:
        """Publish what changed."""
        while self._publish is not None and self.table.has_changes:
            self._publish(self.table.take_changes(STEP_HEADS))
            await asyncio.sleep(0)

    def tell_state(self) -> None:
        """Say that the source's state changed, though no head did."""
        if self._publish is not None:
            self._publish(HeadChanges())

    async def drop(self, paths: Sequence[str]) -> None:
        """These logs are gone."""
        for step in _steps(paths):
            self.table.drop(step)
            for path in step:
                self.failed.pop(path, None)
            await self.tell()
        if paths and self._cache is not None:
            await self._cache.forget(self._format.name, paths)

    async def take_cached(self, files: Sequence[LogFile], *, whole: bool) -> list[LogFile]:
        """Use what the cache knows; returns the logs to be read. ``whole``: a log that is not asked for now does not exist."""
        if self._cached is None:
            self._cached = await self._cache.load(self._format.name) if self._cache is not None else {}
        cached = self._cached
        missing: list[LogFile] = []
        hits: list[_Document] = []
        for file in files:
            row = cached.pop(file.path, None)
            if row is not None and row.fits(file, self._format.version):
                hits.append((file, row.head))
            else:
                missing.append(file)
        for step in _steps(hits):
            missing += await self._take_documents(step)
        if whole and cached:
            self._cached = {}
            await self._forget_unused(cached)
        return missing

    async def take_results(self, results: Sequence[tuple[LogFile, HeadResult]]) -> bool:
        """Use what workers read; returns whether a log was found gone."""
        read = [(file, result.head) for file, result in results if result.outcome is Outcome.READ]
        for file, _ in read:
            self.failed.pop(file.path, None)
        failed = [file for file, result in results if result.outcome in {Outcome.UNREADABLE, Outcome.BROKEN}]
        for error in sorted({result.error for _, result in results if result.error}):
            _log.warning("the reader of source %s failed on a log: %s", self._format.name, error)
        failed += await self._take_documents(read)
        for file in failed:
            self._fail(file)
        await self.tell()
        await self._remember(read)
        return any(result.outcome is Outcome.GONE for _, result in results)

    async def take_titles(self, titles: Mapping[str, str]) -> list[LogFile]:
        """Titles beside the logs have changed; returns the logs whose own title counts again."""
        before, self._titles = self._titles, titles
        natives = [native for native in {**before, **titles} if before.get(native) != titles.get(native)]
        session_ids = [session_id for native in natives if (session_id := self.maker.session_id(native)) is not None]
        concerned = list(self.table.heads_of(session_ids))
        raw = [titles.get(self.maker.native_id(head.session_id) or "") for _, head in concerned]
        labels = await self._in_thread(self.maker.labels, raw)
        untitled: list[LogFile] = []
        for (path, head), recorded, label in zip(concerned, raw, labels, strict=True):
            entry = self.table.entry(path)
            if entry is None or entry.head is not head:
                continue  # read anew meanwhile, with the new titles
            if recorded is None:
                untitled.append(entry.file)
            else:
                self.table.read(path, replace(head, title=label))
        await self.tell()
        return untitled

    def _fail(self, file: LogFile) -> None:
        """A log that was read before keeps its head: that it cannot be read now does not undo the session."""
        self.failed[file.path] = None
        entry = self.table.entry(file.path)
        if entry is not None and entry.head is None:
            self.table.read(file.path, None)

    async def _take_documents(self, documents: Sequence[_Document]) -> list[LogFile]:
        """Enter heads into the table; returns the logs whose documents are none."""
        while True:
            titles = self._titles
            heads, refused = await self._in_thread(self._made, documents, titles)
            if titles is self._titles:
                break
        for file, head in heads:
            self.table.read(file.path, head)
        await self.tell()
        return refused

    def _made(
        self, documents: Sequence[_Document], titles: Mapping[str, str]
    ) -> tuple[list[tuple[LogFile, SessionHead | None]], list[LogFile]]:
        natives: list[tuple[LogFile, NativeHead]] = []
        refused: list[LogFile] = []
        for file, document in documents:
            try:
                natives.append((file, decode_head(document)))
            except ValueError:
                refused.append(file)
        heads = self.maker.heads(natives, titles)
        return [(file, head) for (file, _), head in zip(natives, heads, strict=True)], refused

    async def _remember(self, documents: Iterable[_Document]) -> None:
        if self._cache is None:
            return
        version = self._format.version
        rows = [
            (file.path, CachedHead(file.device, file.inode, file.size, file.mtime_ns, version, document))
            for file, document in documents
        ]
        if rows:
            await self._cache.save(self._format.name, rows)

    async def _forget_unused(self, cached: Iterable[str]) -> None:
        if self._cache is not None:
            await self._cache.forget(self._format.name, [path for path in cached if path not in self.table])

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)


def _steps(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + STEP_HEADS] for start in range(0, len(items), STEP_HEADS))
