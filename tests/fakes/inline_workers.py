"""A stand-in for the worker pool that runs jobs in threads of this process, with faults to order."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable

from sessionref_server.adapters.workers.job import Job, WorkerFailedError


class InlineWorkers:
    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.gates: dict[bool, asyncio.Event] = {}
        """By whether a job is a background one: when set, such a job waits here before it runs."""
        self.running = 0
        self.fails: Callable[[Job], bool] = lambda _job: False
        """Jobs that kill their worker."""

    async def run(self, job: Job, *, affinity: str | None = None, background: bool = False) -> object:
        del affinity
        self.jobs.append(job)
        self.running += 1
        try:
            if (gate := self.gates.get(background)) is not None:
                await gate.wait()
            if self.fails(job):
                raise WorkerFailedError("the worker died")
            portable = pickle.loads(pickle.dumps(job))  # noqa: S301 - our own job
            return await asyncio.to_thread(portable.run, lambda: False)
        finally:
            self.running -= 1
