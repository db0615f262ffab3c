"""Workers that die, hang, grow, or lose their parent."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fakes.worker_jobs import Echo, ForgetsToLook, IgnoresCancel, KeepMemory, KillItself, ProcessId, Segfault
from sessionref_server.adapters.workers.job import WorkerFailedError
from sessionref_server.adapters.workers.pool import WorkerPool

TESTS = Path(__file__).parents[1]
PARENT = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from fakes.worker_jobs import IgnoresCancel
from sessionref_server.adapters.workers.pool import WorkerPool

async def main():
    pool = WorkerPool(1, 1)
    pool.start()
    await pool.run(IgnoresCancel(started=Path(sys.argv[2])))

asyncio.run(main())
"""


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(1, 100, cancel_grace_seconds=0)
    pool.start()
    yield pool
    await pool.close(5)


@pytest.fixture
def started(tmp_path: Path) -> Path:
    path = tmp_path / "started"
    os.mkfifo(path)
    return path


def wait_for_exit(process_id: int) -> None:
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    try:
        select.select([descriptor], [], [])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(("job", "name"), [(KillItself(), "SIGKILL"), (Segfault(), "SIGSEGV")])
async def test_a_worker_that_dies_fails_its_job_alone_and_is_replaced(
    pool: WorkerPool, job: KillItself | Segfault, name: str
) -> None:
    before = await pool.run(ProcessId())
    failing = asyncio.create_task(pool.run(job))
    following = [asyncio.create_task(pool.run(Echo(value=n))) for n in range(20)]
    with pytest.raises(WorkerFailedError, match=name):
        await failing
    assert await asyncio.gather(*following) == list(range(20))
    assert await pool.run(ProcessId()) != before


async def test_a_worker_killed_from_outside_while_running_fails_its_job(pool: WorkerPool, started: Path) -> None:
    running = asyncio.create_task(pool.run(IgnoresCancel(started=started)))
    os.kill(int(await asyncio.to_thread(started.read_text)), signal.SIGKILL)
    with pytest.raises(WorkerFailedError, match="SIGKILL"):
        await running
    assert await pool.run(Echo(value=1)) == 1


async def test_a_worker_that_died_while_idle_fails_no_job(pool: WorkerPool) -> None:
    process_id = await pool.run(ProcessId())
    assert isinstance(process_id, int)
    os.kill(process_id, signal.SIGKILL)
    await asyncio.to_thread(wait_for_exit, process_id)
    assert await pool.run(ProcessId()) != process_id


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_signals_meant_for_the_parent_do_not_end_a_worker(pool: WorkerPool, number: signal.Signals) -> None:
    process_id = await pool.run(ProcessId())
    assert isinstance(process_id, int)
    os.kill(process_id, number)
    assert await pool.run(ProcessId()) == process_id


async def test_a_cancelled_job_that_does_not_stop_loses_its_process(pool: WorkerPool, started: Path) -> None:
    running = asyncio.create_task(pool.run(IgnoresCancel(started=started)))
    process_id = int(await asyncio.to_thread(started.read_text))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await pool.run(ProcessId()) != process_id
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


async def test_a_cancelled_job_that_forgets_to_look_is_interrupted_and_its_process_goes_on(started: Path, tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"
    os.mkfifo(stopped)
    pool = WorkerPool(1, 100)
    pool.start()
    running = asyncio.create_task(pool.run(ForgetsToLook(started=started, stopped=stopped)))
    process_id = int(await asyncio.to_thread(started.read_text))
    running.cancel()
    assert await asyncio.to_thread(stopped.read_text) == "stopped"
    assert await pool.run(ProcessId()) == process_id
    await pool.close(5)


async def test_a_late_interrupt_ends_neither_an_idle_worker_nor_the_next_job(pool: WorkerPool) -> None:
    process_id = await pool.run(ProcessId())
    for turn in range(50):
        next_job = asyncio.create_task(pool.run(Echo(value=turn)))
        pool._workers[0].interrupt()
        assert await next_job == turn
        pool._workers[0].interrupt()
    assert await pool.run(ProcessId()) == process_id


async def test_close_kills_a_job_that_does_not_stop(started: Path) -> None:
    pool = WorkerPool(2, 1)
    pool.start()
    running = asyncio.create_task(pool.run(IgnoresCancel(started=started)))
    process_id = int(await asyncio.to_thread(started.read_text))
    await pool.close(0.01)
    with pytest.raises(WorkerFailedError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


async def test_a_worker_over_its_memory_limit_is_replaced_after_the_job() -> None:
    pool = WorkerPool(1, 1, worker_memory_limit_bytes=60_000_000)
    pool.start()
    small = [await pool.run(KeepMemory(size_bytes=1000)) for _ in range(2)]
    large = await pool.run(KeepMemory(size_bytes=80_000_000))
    fresh = await pool.run(ProcessId())
    await pool.close(5)
    assert small == [large, large]
    assert fresh != large


async def test_a_worker_that_cannot_start_fails_the_job_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = WorkerPool(1, 1)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nonexistent/python")
        pool.start()
        with pytest.raises(WorkerFailedError, match="FileNotFoundError"):
            await pool.run(Echo())
    assert await pool.run(Echo(value=2)) == 2
    await pool.close(5)


def test_a_worker_ends_with_its_parent_in_the_middle_of_a_job(started: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, str(TESTS), str(started)], cwd=started.parent) as parent:
        process_id = int(started.read_text())
        parent.kill()
        wait_for_exit(process_id)
    assert not Path(f"/proc/{process_id}/exe").exists()


async def test_nothing_is_imported_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    pool = WorkerPool(1, 1)
    pool.start()
    assert await pool.run(Echo(value="safe")) == "safe"
    await pool.close(5)


def test_a_worker_imports_neither_grpc_nor_asyncio() -> None:
    program = (
        "import sys, sessionref_server.adapters.workers.process; print(sorted({'grpc', 'google', 'asyncio'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"
