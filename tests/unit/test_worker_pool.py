"""The worker pool: results, order, affinity, cancellation, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.worker_jobs import (
    CountCalls,
    Echo,
    ManyBytes,
    NoteOrder,
    ProcessId,
    RaiseDomainError,
    RaiseSystemExit,
    RaiseUnportable,
    ReturnUnpicklable,
    Steps,
    Unpicklable,
    WaitFor,
)
from sessionref_server.adapters.workers.job import WorkerFailedError
from sessionref_server.adapters.workers.pool import WorkerPool
from sessionref_server.domain.errors import DamagedSessionError, OverloadedError


@asynccontextmanager
async def running_pool(size: int = 2, max_queued: int = 1000) -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(size, max_queued)
    pool.start()
    try:
        yield pool
    finally:
        await pool.close(5)


@pytest.fixture
def pipe(tmp_path: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        path = tmp_path / name
        os.mkfifo(path)
        return path

    return make


LOOK_IN_PEACE = "sessionref_server.adapters.workers.pool.INTERRUPT_SECONDS", 3600.0
"""A cancelled job has time to look at its flag, however busy the machine is."""


async def hear(path: Path) -> str:
    return await asyncio.to_thread(path.read_text)


async def tell(path: Path) -> None:
    await asyncio.to_thread(path.write_text, "go")


@dataclass(frozen=True, kw_only=True)
class Occupation:
    task: asyncio.Task[object]
    go: Path
    process_id: int


async def occupy(
    pool: WorkerPool, started: Path, go: Path, *, affinity: str | None = None, background: bool = False
) -> Occupation:
    task = asyncio.create_task(pool.run(WaitFor(started=started, go=go), affinity=affinity, background=background))
    return Occupation(task=task, go=go, process_id=int(await hear(started)))


async def test_a_job_returns_its_result() -> None:
    async with running_pool() as pool:
        assert await pool.run(Echo(value={"answer": [42]})) == {"answer": [42]}


async def test_a_job_runs_in_another_process() -> None:
    async with running_pool(1) as pool:
        assert await pool.run(ProcessId()) != os.getpid()


async def test_module_state_of_a_worker_survives_between_jobs() -> None:
    async with running_pool(1) as pool:
        assert [await pool.run(CountCalls(key="a")) for _ in range(3)] == [1, 2, 3]


async def test_ten_megabytes_come_back_whole() -> None:
    async with running_pool(1) as pool:
        assert await pool.run(ManyBytes(size_bytes=10_000_000)) == bytes(10_000_000)


async def test_a_domain_error_comes_back_with_type_and_metadata() -> None:
    async with running_pool(1) as pool:
        with pytest.raises(DamagedSessionError, match="the log is damaged") as caught:
            await pool.run(RaiseDomainError())
    assert caught.value.metadata == {"session_id": "s1", "source": "fake"}


async def test_an_exception_that_cannot_travel_is_named_without_its_text() -> None:
    async with running_pool(1) as pool:
        with pytest.raises(WorkerFailedError) as caught:
            await pool.run(RaiseUnportable(secret="text of a log"))  # noqa: S106 - invented
    assert str(caught.value) == "a worker's job failed with UnportableError"


@pytest.mark.parametrize("job", [ReturnUnpicklable(), RaiseSystemExit()])
async def test_a_job_that_cannot_answer_fails_and_its_worker_goes_on(job: ReturnUnpicklable | RaiseSystemExit) -> None:
    async with running_pool(1) as pool:
        before = await pool.run(ProcessId())
        with pytest.raises(WorkerFailedError):
            await pool.run(job)
        assert await pool.run(ProcessId()) == before


async def test_a_job_that_cannot_be_pickled_fails_alone() -> None:
    async with running_pool(1) as pool:
        with pytest.raises(Exception, match="pickle"):
            await pool.run(Unpicklable())
        assert await pool.run(Echo(value=1)) == 1


async def test_a_job_beyond_the_queue_is_refused(pipe: Callable[[str], Path]) -> None:
    async with running_pool(1, max_queued=1) as pool:
        busy = await occupy(pool, pipe("started"), pipe("go"))
        waiting = asyncio.create_task(pool.run(Echo(value="waited")))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await pool.run(Echo())
        await tell(busy.go)
        assert await waiting == "waited"
        await busy.task


async def test_interactive_jobs_go_before_background_ones(pipe: Callable[[str], Path], tmp_path: Path) -> None:
    order = tmp_path / "order"
    async with running_pool(1) as pool:
        busy = await occupy(pool, pipe("started"), pipe("go"))
        background = [asyncio.create_task(pool.run(NoteOrder(file=order, line=f"b{n}"), background=True)) for n in range(2)]
        interactive = [asyncio.create_task(pool.run(NoteOrder(file=order, line=f"i{n}"))) for n in range(2)]
        await asyncio.sleep(0)
        await tell(busy.go)
        await asyncio.gather(busy.task, *background, *interactive)
    assert order.read_text().split() == ["i0", "i1", "b0", "b1"]


async def test_background_jobs_leave_one_worker_free(pipe: Callable[[str], Path]) -> None:
    async with running_pool(2) as pool:
        busy = await occupy(pool, pipe("started"), pipe("go"), background=True)
        second = asyncio.create_task(pool.run(Echo(), background=True))
        await asyncio.sleep(0)
        assert (pool.running_jobs, pool.queued_jobs) == (1, 1)
        assert await pool.run(Echo(value="now")) == "now"
        await tell(busy.go)
        await asyncio.gather(busy.task, second)


async def test_the_same_key_runs_in_the_same_worker() -> None:
    async with running_pool(3) as pool:
        counts: list[object] = []
        for _ in range(4):
            results = await asyncio.gather(*(pool.run(CountCalls(key=key), affinity=key) for key in "abc"))
            counts.append(results)
    assert counts == [[n, n, n] for n in (1, 2, 3, 4)]


async def test_a_key_waits_for_its_busy_worker_though_another_is_free(pipe: Callable[[str], Path]) -> None:
    async with running_pool(2) as pool:
        busy = await occupy(pool, pipe("started"), pipe("go"), affinity="a")
        again = asyncio.create_task(pool.run(ProcessId(), affinity="a"))
        await asyncio.sleep(0)
        assert pool.queued_jobs == 1
        await tell(busy.go)
        assert await again == busy.process_id
        await busy.task


async def test_a_key_does_not_wait_behind_a_background_job(pipe: Callable[[str], Path]) -> None:
    async with running_pool(2) as pool:
        busy = await occupy(pool, pipe("started"), pipe("go"), affinity="a", background=True)
        assert await pool.run(ProcessId(), affinity="a") != busy.process_id
        await tell(busy.go)
        await busy.task


async def test_a_key_does_not_wait_in_a_long_line(pipe: Callable[[str], Path]) -> None:
    async with running_pool(2) as pool:
        busy = await occupy(pool, pipe("started"), pipe("go"), affinity="a")
        waiting = [asyncio.create_task(pool.run(ProcessId(), affinity="a")) for _ in range(2)]
        await asyncio.sleep(0)
        assert await pool.run(ProcessId(), affinity="a") != busy.process_id
        await tell(busy.go)
        assert await asyncio.gather(*waiting) == [busy.process_id, busy.process_id]
        await busy.task


async def test_a_job_cancelled_while_waiting_never_runs(pipe: Callable[[str], Path], tmp_path: Path) -> None:
    order = tmp_path / "order"
    async with running_pool(1) as pool:
        busy = await occupy(pool, pipe("started"), pipe("go"))
        waiting = asyncio.create_task(pool.run(NoteOrder(file=order, line="never")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert pool.queued_jobs == 0
        await tell(busy.go)
        await busy.task
        await pool.run(Echo())
    assert not order.exists()


async def test_a_running_job_is_told_of_the_cancel_and_its_worker_is_used_again(
    pipe: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*LOOK_IN_PEACE)
    started, stopped = pipe("started"), pipe("stopped")
    async with running_pool(1) as pool:
        running = asyncio.create_task(pool.run(Steps(started=started, stopped=stopped)))
        process_id = int(await hear(started))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert pool.running_jobs == 1
        steps, _ = (await hear(stopped)).split()
        assert int(steps) >= 0
        assert await pool.run(ProcessId()) == process_id


async def test_the_flag_of_a_cancelled_job_does_not_stop_the_next_one(
    pipe: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*LOOK_IN_PEACE)
    async with running_pool(1) as pool:
        for turn in range(3):
            started, stopped = pipe(f"started{turn}"), pipe(f"stopped{turn}")
            running = asyncio.create_task(pool.run(Steps(started=started, stopped=stopped)))
            await hear(started)
            assert not running.done()
            running.cancel()
            await hear(stopped)
            with pytest.raises(asyncio.CancelledError):
                await running


async def test_after_close_a_job_is_refused() -> None:
    async with running_pool(1) as pool:
        pass
    with pytest.raises(WorkerFailedError):
        await pool.run(Echo())


async def test_close_fails_waiting_jobs_and_stops_running_ones(pipe: Callable[[str], Path]) -> None:
    started, stopped = pipe("started"), pipe("stopped")
    pool = WorkerPool(1, 10)
    pool.start()
    running = asyncio.create_task(pool.run(Steps(started=started, stopped=stopped)))
    await hear(started)
    waiting = asyncio.create_task(pool.run(Echo()))
    await asyncio.sleep(0)
    heard = asyncio.create_task(hear(stopped))
    await pool.close(5)
    with pytest.raises(WorkerFailedError):
        await waiting
    assert await running == int((await heard).split()[0])


@pytest.mark.parametrize("size", [0, 5000])
def test_a_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="size"):
        WorkerPool(size, 1)
