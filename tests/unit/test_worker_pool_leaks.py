from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from fakes.worker_jobs import ManyBytes, ProcessId
from sessionref_server.adapters.workers.pool import WorkerPool


def open_descriptors() -> set[str]:
    return {path.name for path in Path("/dev/fd").iterdir()}


async def test_two_hundred_jobs_with_cancels_leave_nothing_behind() -> None:
    descriptors, threads = open_descriptors(), threading.active_count()
    pool = WorkerPool(3, 1000)
    pool.start()
    process_ids = {await pool.run(ProcessId()) for _ in range(10)}
    jobs = [asyncio.create_task(pool.run(ManyBytes(size_bytes=n * 100), affinity=str(n % 7))) for n in range(200)]
    for n, job in enumerate(jobs):
        if n % 3 == 0:
            job.cancel()
        if n % 10 == 0:
            await asyncio.sleep(0)
    results = await asyncio.gather(*jobs, return_exceptions=True)
    await pool.close(5)

    answered = [len(result) for n, result in enumerate(results) if n % 3 and isinstance(result, bytes)]
    assert answered == [n * 100 for n in range(200) if n % 3]
    assert all(isinstance(result, bytes | asyncio.CancelledError) for result in results)
    assert (pool.running_jobs, pool.queued_jobs) == (0, 0)
    assert open_descriptors() <= descriptors
    assert threading.active_count() <= threads
    for process_id in process_ids:
        assert isinstance(process_id, int)
        with pytest.raises(ProcessLookupError):
            os.kill(process_id, 0)
