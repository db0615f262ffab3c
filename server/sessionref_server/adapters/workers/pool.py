"""Worker processes for CPU work, so that the event loop is never blocked by a log being parsed.

The pool decides on the event loop alone who runs what; each worker has a thread that does the talking. Interactive jobs go before
background ones, and background ones leave one worker free. A job with an affinity key goes where its key ran last, since that
process still has the fold in memory, unless others already wait there or a background job runs there.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

from sessionref_server.adapters.workers.cancel_flags import MAX_WORKERS, CancelFlags
from sessionref_server.adapters.workers.job import Job, WorkerFailedError
from sessionref_server.adapters.workers.worker import Outcome, Worker
from sessionref_server.domain.errors import OverloadedError

MAX_AFFINITY_HINTS = 4096
MAX_JOBS_WAITING_FOR_ONE_WORKER = 2
INTERRUPT_SECONDS = 0.005
"""How long a cancelled job may take to look at its flag before it is interrupted."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Ticket:
    """A job on its way through the pool."""

    job: Job
    affinity: str | None
    background: bool
    answer: asyncio.Future[object]
    preferred_index: int | None = None
    worker: Worker | None = None
    """Set while it runs."""
    timers: tuple[asyncio.TimerHandle, ...] = ()
    """Set when it was cancelled while it ran: what happens should it not stop."""


class WorkerPool:
    """``size`` worker processes. Must be started and closed on the event loop that uses it."""

    def __init__(
        self,
        size: int,
        max_queued: int,
        *,
        worker_memory_limit_bytes: int | None = None,
        cancel_grace_seconds: float = 5.0,
    ) -> None:
        """Set the limits.

        Args:
            size: number of worker processes, 1 to 4096.
            max_queued: jobs that may wait, interactive and background ones each; a job beyond that is refused.
            worker_memory_limit_bytes: a worker that holds more after a job is replaced; ``None`` for never.
            cancel_grace_seconds: a cancelled job that has not stopped by then loses its process.
        """
        if not 1 <= size <= MAX_WORKERS:
            raise ValueError(f"size must be 1 to {MAX_WORKERS}")
        self._size = size
        self._max_queued = max_queued
        self._max_background = max(1, size - 1)
        self._worker_memory_limit_bytes = worker_memory_limit_bytes
        self._cancel_grace_seconds = cancel_grace_seconds
        self._flags: CancelFlags | None = None
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._running: dict[int, _Ticket] = {}
        self._interactive: OrderedDict[_Ticket, None] = OrderedDict()
        self._background: OrderedDict[_Ticket, None] = OrderedDict()
        self._hints: OrderedDict[str, int] = OrderedDict()

    @property
    def queued_jobs(self) -> int:
        """Jobs that wait for a worker."""
        return len(self._interactive) + len(self._background)

    @property
    def running_jobs(self) -> int:
        """Jobs that a worker has, cancelled ones that it has not let go of included."""
        return len(self._running)

    def start(self) -> None:
        """Start the workers without waiting for them. Jobs may be given at once."""
        self._flags = CancelFlags.create()
        self._workers = [Worker(index, self._flags, self._worker_memory_limit_bytes) for index in range(self._size)]
        self._idle = list(self._workers)
        for worker in self._workers:
            worker.start()

    async def run(self, job: Job, *, affinity: str | None = None, background: bool = False) -> object:
        """Run a job in a worker and return its result.

        Args:
            job: what to run; pickled.
            affinity: jobs of the same key share what a worker has cached, where that costs no waiting.
            background: let interactive jobs go first.

        Raises:
            OverloadedError: too many jobs wait already.
            WorkerFailedError: the worker died, the exception could not travel, or the pool is closed.
            CancelledError: at once; the worker is told, and is free again when it has stopped.
            Exception: whatever the job raised, of the same type.
        """
        if not self._workers:
            raise WorkerFailedError("the worker pool is closed")
        queue = self._background if background else self._interactive
        if len(queue) >= self._max_queued:
            raise OverloadedError("too many jobs wait for a worker process")
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        ticket = _Ticket(job=job, affinity=affinity, background=background, answer=answer)
        ticket.preferred_index = self._preferred_index(ticket)
        queue[ticket] = None
        self._dispatch()
        try:
            return await answer
        finally:
            if answer.cancelled():
                self._abandon(ticket)
            elif answer.done():
                answer.exception()  # seen, even when a cancel overtook it

    async def close(self, grace_seconds: float) -> None:
        """Refuse new jobs, fail waiting ones, tell running ones to stop, and kill what still runs after the grace time.

        No process, thread or descriptor is left.
        """
        workers, self._workers, self._idle = self._workers, [], []
        for ticket in (*self._interactive, *self._background):
            if not ticket.answer.done():
                ticket.answer.set_exception(WorkerFailedError("the worker pool was closed"))
        self._interactive.clear()
        self._background.clear()
        for worker in workers:
            if worker.index in self._running:
                worker.cancel()
            worker.stop()
        await self._wait_for_end(workers, grace_seconds)
        for worker in workers:
            worker.join()
        if self._flags is not None:
            self._flags.close()
            self._flags = None

    async def _wait_for_end(self, workers: list[Worker], grace_seconds: float) -> None:
        ended = [worker.ended for worker in workers]
        if not ended:
            return
        _, late = await asyncio.wait(ended, timeout=grace_seconds)
        if late:
            for worker in workers:
                if not worker.ended.done():
                    worker.kill()
            await asyncio.wait(late)

    def _preferred_index(self, ticket: _Ticket) -> int | None:
        """The worker to wait for: the last one that ran this key, unless waiting there costs more than starting afresh."""
        if ticket.affinity is None or (index := self._hints.get(ticket.affinity)) is None:
            return None
        running = self._running.get(index)
        if running is not None and running.background and not ticket.background:
            return None
        waiting = sum(1 for other in (*self._interactive, *self._background) if other.preferred_index == index)
        return index if waiting < MAX_JOBS_WAITING_FOR_ONE_WORKER else None

    def _dispatch(self) -> None:
        for worker in list(self._idle):
            ticket = self._next_ticket(worker)
            if ticket is not None:
                self._give(worker, ticket)

    def _next_ticket(self, worker: Worker) -> _Ticket | None:
        for ticket in self._interactive:
            if self._suits(ticket, worker):
                return ticket
        if sum(1 for ticket in self._running.values() if ticket.background) >= self._max_background:
            return None
        return next((ticket for ticket in self._background if self._suits(ticket, worker)), None)

    @staticmethod
    def _suits(ticket: _Ticket, worker: Worker) -> bool:
        return ticket.preferred_index is None or ticket.preferred_index == worker.index

    def _give(self, worker: Worker, ticket: _Ticket) -> None:
        (self._background if ticket.background else self._interactive).pop(ticket)
        self._idle.remove(worker)
        self._running[worker.index] = ticket
        ticket.worker = worker
        self._remember(ticket, worker)
        worker.give(ticket.job, partial(self._finish, worker, ticket))

    def _remember(self, ticket: _Ticket, worker: Worker) -> None:
        if ticket.affinity is None:
            return
        self._hints[ticket.affinity] = worker.index
        self._hints.move_to_end(ticket.affinity)
        if len(self._hints) > MAX_AFFINITY_HINTS:
            self._hints.popitem(last=False)

    def _abandon(self, ticket: _Ticket) -> None:
        """The caller is gone: a waiting job is dropped, a running one told to stop, and its worker replaced when it does not."""
        if ticket.worker is None:
            (self._background if ticket.background else self._interactive).pop(ticket, None)
            return
        if self._running.get(ticket.worker.index) is not ticket:
            return
        ticket.worker.cancel()
        loop = asyncio.get_running_loop()
        ticket.timers = (
            loop.call_later(min(INTERRUPT_SECONDS, self._cancel_grace_seconds), ticket.worker.interrupt),
            loop.call_later(self._cancel_grace_seconds, ticket.worker.kill),
        )

    def _finish(self, worker: Worker, ticket: _Ticket, outcome: Outcome) -> None:
        for timer in ticket.timers:
            timer.cancel()
        del self._running[worker.index]
        if outcome.fresh_process:
            self._forget_hints(worker)
        if self._workers:
            self._idle.append(worker)
            self._dispatch()
        if ticket.answer.done():
            return
        if outcome.error is not None:
            ticket.answer.set_exception(outcome.error)
        else:
            ticket.answer.set_result(outcome.value)

    def _forget_hints(self, worker: Worker) -> None:
        for key in [key for key, index in self._hints.items() if index == worker.index]:
            del self._hints[key]
        for ticket in (*self._interactive, *self._background):
            if ticket.preferred_index == worker.index:
                ticket.preferred_index = None
