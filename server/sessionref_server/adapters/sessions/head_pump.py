"""Reads heads in the background: newest logs first, in batches bounded by count and bytes, each published as it comes in."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from sessionref_server.adapters.sessions.log_format import LogFile, LogFormat
from sessionref_server.adapters.sessions.log_jobs import HeadResult, Outcome, ReadHeads
from sessionref_server.adapters.sessions.log_services import JobRunner
from sessionref_server.adapters.workers.job import WorkerFailedError
from sessionref_server.domain.errors import OverloadedError

FIRST_BATCH_FILES = 8
"""The first batch is small, so that a first answer comes soon; later ones double up to the limit."""
BATCH_FILES = 128
BATCH_BYTES = 16 * 1024 * 1024
BATCHES_IN_FLIGHT = 2
FEW_GROWN = 8
"""Up to so many grown logs at a time go to the worker that has their folds; more are an onslaught and go in batches."""
RETRY_SECONDS = 0.25

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Wanted:
    file: LogFile
    grown: bool
    alone: bool = False


OnHeads = Callable[[Sequence[tuple[LogFile, HeadResult]]], Awaitable[None]]


class HeadPump:
    """The queue of logs whose heads are wanted, and the readers that empty it. Used from the event loop only."""

    def __init__(self, log_format: LogFormat, workers: JobRunner, on_heads: OnHeads) -> None:
        """``on_heads`` is awaited with what each batch gave before the same reader goes on."""
        self._format = log_format
        self._workers = workers
        self._on_heads = on_heads
        self._wanted: dict[str, _Wanted] = {}
        self._queue: list[tuple[int, str]] = []
        self._reading: set[str] = set()
        self._wake = asyncio.Event()
        self._batch_files = FIRST_BATCH_FILES

    def want(self, files: Iterable[LogFile], *, grown: bool = False) -> None:
        """Read these. A log that is wanted already is read as it is now. ``grown``: a worker may still hold its fold."""
        for file in files:
            self._put(_Wanted(file, grown))

    def forget(self, paths: Iterable[str]) -> None:
        """These are gone."""
        for path in paths:
            self._wanted.pop(path, None)

    async def run(self) -> None:
        """Read until cancelled."""
        async with asyncio.TaskGroup() as readers:
            for _ in range(BATCHES_IN_FLIGHT):
                readers.create_task(self._read_batches())

    async def _read_batches(self) -> None:
        while True:
            batch = self._next_batch()
            if not batch:
                self._wake.clear()
                await self._wake.wait()
                continue
            paths = {wanted.file.path for wanted in batch}
            self._reading |= paths
            try:
                results = await self._read(batch)
                if results:
                    await self._on_heads(results)
            finally:
                self._reading -= paths
            self._wake.set()  # one of these may have changed while it was read

    def _put(self, wanted: _Wanted) -> None:
        self._wanted[wanted.file.path] = wanted
        heapq.heappush(self._queue, (-wanted.file.mtime_ns, wanted.file.path))
        self._wake.set()

    def _next_batch(self) -> list[_Wanted]:
        batch: list[_Wanted] = []
        held_back: list[tuple[int, str]] = []
        room_bytes = BATCH_BYTES
        while self._queue and len(batch) < self._batch_files and room_bytes > 0:
            place = heapq.heappop(self._queue)
            wanted = self._wanted.get(place[1])
            if wanted is None or -wanted.file.mtime_ns != place[0]:
                continue  # read already, or queued again as it is now
            alone = self._goes_alone(wanted)
            if place[1] in self._reading or (batch and (alone or wanted.file.size > room_bytes)):
                held_back.append(place)
                room_bytes -= wanted.file.size if batch else 0
                continue
            del self._wanted[place[1]]
            batch.append(wanted)
            room_bytes = 0 if alone else room_bytes - wanted.file.size
        for place in held_back:
            heapq.heappush(self._queue, place)
        return batch

    def _goes_alone(self, wanted: _Wanted) -> bool:
        return wanted.alone or (wanted.grown and len(self._wanted) < FEW_GROWN)

    async def _read(self, batch: Sequence[_Wanted]) -> Sequence[tuple[LogFile, HeadResult]]:
        grown = len(batch) == 1 and batch[0].grown
        files = tuple(wanted.file for wanted in batch)
        affinity = files[0].path if grown else None
        self._batch_files = min(BATCH_FILES, 2 * self._batch_files)
        try:
            job = ReadHeads(type(self._format), files, keep_folds=grown)
            results = await self._workers.run(job, affinity=affinity, background=True)
        except OverloadedError:
            await asyncio.sleep(RETRY_SECONDS)
            self._again(batch, alone=False)
            return ()
        except WorkerFailedError:
            return self._after_failure(batch)
        return list(zip(files, results, strict=True)) if isinstance(results, list) else ()  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def _after_failure(self, batch: Sequence[_Wanted]) -> Sequence[tuple[LogFile, HeadResult]]:
        """A log that kills its worker is found by reading each of the batch alone, and given up then."""
        if len(batch) > 1:
            self._again(batch, alone=True)
            return ()
        _log.warning("a session log made its worker process fail; it counts as unreadable")
        return [(batch[0].file, HeadResult(Outcome.UNREADABLE))]

    def _again(self, batch: Sequence[_Wanted], *, alone: bool) -> None:
        for wanted in batch:
            if wanted.file.path not in self._wanted:
                self._put(_Wanted(wanted.file, grown=False, alone=alone))
