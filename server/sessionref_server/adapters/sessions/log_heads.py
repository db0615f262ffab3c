"""The heads of one source as they come in (cache, workers, titles beside the logs), and what its follower is told of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import NamedTuple, TypeVar

from sessionref_server.adapters.sessions.head_cache import CachedHead
from sessionref_server.adapters.sessions.head_json import decode_head
from sessionref_server.adapters.sessions.kept_labels import KeepingHeadMaker, ShownTexts
from sessionref_server.adapters.sessions.log_format import LogFile, LogFormat, NativeHead
from sessionref_server.adapters.sessions.log_jobs import HeadResult, Outcome
from sessionref_server.adapters.sessions.log_services import LogDirectoryServices
from sessionref_server.adapters.sessions.log_table import LogTable
from sessionref_server.domain.label import LABEL_RULES
from sessionref_server.domain.ports import HeadChanges
from sessionref_server.domain.session import SessionHead

T = TypeVar("T")

_log = logging.getLogger(__name__)

STEP_HEADS = 512
"""Heads taken in and published at once, so that no step holds up the event loop."""
CACHED_STEP_HEADS = 4096
"""The same for heads from the cache, which cost less: most sources are there in one step."""

Publish = Callable[[HeadChanges], None]
_Document = tuple[LogFile, bytes]


class _MadeHead(NamedTuple):
    file: LogFile
    document: bytes
    head: SessionHead | None
    shown: bytes
    """The head's texts, to be kept."""


_Made = tuple[list[_MadeHead], list[LogFile]]
"""Heads made of documents, and logs whose documents are no heads."""


class LogHeads:
    """Used on one event loop; what takes long runs in ``executor``."""

    def __init__(self, log_format: LogFormat, services: LogDirectoryServices, executor: Executor) -> None:
        self.maker = KeepingHeadMaker(log_format, services.redact)
        self.table = LogTable(lists_subagents=log_format.lists_subagents)
        self.failed: dict[str, None] = {}
        """Paths of logs that could not be read, to be tried again: permissions change without any other trace."""
        self._format = log_format
        self._cache = services.head_cache
        self._rules = f"{LABEL_RULES} {services.redaction_rules}"
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

    async def tell(self, step_heads: int = STEP_HEADS) -> None:
        """Publish what changed."""
        while self._publish is not None and self.table.has_changes:
            self._publish(self.table.take_changes(step_heads))
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
        hits: list[tuple[LogFile, CachedHead]] = []
        for file in files:
            row = cached.pop(file.path, None)
            if row is not None and row.fits(file, self._format.version):
                hits.append((file, row))
            else:
                missing.append(file)
        for step in _steps(hits, CACHED_STEP_HEADS):
            missing += await self._take_rows(step)
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
        made, refused = await self._take_documents(read)
        failed += refused
        for file in failed:
            self._fail(file)
        await self.tell()
        await self._remember(made)
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

    async def _take_rows(self, rows: Sequence[tuple[LogFile, CachedHead]]) -> list[LogFile]:
        """Enter heads from the cache; returns the logs whose rows hold none."""
        kept = [row.shown for _, row in rows if row.rules == self._rules]
        await self._in_thread(self.maker.know, kept)
        try:
            made, refused = await self._take_documents([(file, row.head) for file, row in rows], CACHED_STEP_HEADS)
        finally:
            self.maker.know(())
        as_kept = {file.path: row.shown for file, row in rows if row.rules == self._rules}
        await self._remember([one for one in made if as_kept.get(one.file.path) != one.shown])
        return refused

    async def _take_documents(self, documents: Sequence[_Document], step_heads: int = STEP_HEADS) -> _Made:
        """Enter heads into the table, and tell of them."""
        while True:
            titles = self._titles
            made = await self._in_thread(self._made, documents, titles)
            if titles is self._titles:
                break
        for one in made[0]:
            self.table.read(one.file.path, one.head)
        await self.tell(step_heads)
        return made

    def _made(self, documents: Sequence[_Document], titles: Mapping[str, str]) -> _Made:
        natives: list[tuple[LogFile, NativeHead]] = []
        read: list[bytes] = []
        refused: list[LogFile] = []
        for file, document in documents:
            try:
                natives.append((file, decode_head(document)))
                read.append(document)
            except ValueError:
                refused.append(file)
        heads = self.maker.heads(natives, titles)
        return [
            _MadeHead(file, document, head, _shown(native, titles, head))
            for (file, native), document, head in zip(natives, read, heads, strict=True)
        ], refused

    async def _remember(self, made: Iterable[_MadeHead]) -> None:
        if self._cache is None:
            return
        version, rules = self._format.version, self._rules
        rows = [
            (file.path, CachedHead(file.device, file.inode, file.size, file.mtime_ns, version, document, rules, shown))
            for file, document, _, shown in made
        ]
        if rows:
            await self._cache.save(self._format.name, rows)

    async def _forget_unused(self, cached: Iterable[str]) -> None:
        if self._cache is not None:
            await self._cache.forget(self._format.name, [path for path in cached if path not in self.table])

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)


def _shown(native: NativeHead, titles: Mapping[str, str], head: SessionHead | None) -> bytes:
    if head is None:
        return ShownTexts().encode()
    return ShownTexts(
        title=titles.get(native.native_id, native.title),
        shown_title=head.title,
        label=native.subagent_label,
        shown_label=head.subagent_label,
        cwd=head.cwd,
        shown_cwd=head.shown_cwd or head.cwd,
    ).encode()


def _steps(items: Sequence[T], step: int = STEP_HEADS) -> Iterator[Sequence[T]]:
    return (items[start : start + step] for start in range(0, len(items), step))
