"""Figures of cancelled, late and interrupted calls.

``python -m load.calls`` in the folder ``tests``. Each figure is a line ``NAME figure unit PASS/FAIL``.
"""

from __future__ import annotations

import asyncio
import random
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from fakes.shelf_session_source import ShelfSessionSource
from fakes.window_catalogue import WindowCatalogue
from faults.long_logs import BUDGET, BUDGET_FLAG, write_dsh_log
from faults.server_process import ServerProcess, server_process
from load.overload import percentile_ms, say
from rpc.served import Served, make_config, serving
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import PrepareRequest, PrepareResponse, SearchCandidatesRequest
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub
from sessionref_server.wire.reference_service import ReferenceService

SOURCES = ("source-0", "source-1", "source-2")
STORM_CALLS = 2000
STORM_AT_ONCE = 4
WARM_CALLS = 80
DEADLINE_SECONDS = 0.05
DEADLINE_CALLS = 200
CANCELLED_READS = 60
SHUTDOWNS = 5
DRAIN_SECONDS = 1.0


def prepare(stub: SessionReferenceServiceStub, target: str, *session_ids: str, seconds: float = 60) -> grpc.aio.UnaryUnaryCall:
    """Begin a call."""
    references = [reference_pb2.SessionReferenceInput(session_id=session_id) for session_id in session_ids]
    return stub.Prepare(PrepareRequest(target=reference_pb2.Target(session_id=target), references=references), timeout=seconds)


async def code_of(call: Awaitable[Any]) -> grpc.StatusCode:
    """How a call ends."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that nobody tells."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.0005)


async def storm() -> None:
    """Prepares cancelled by a client in another process than the server, at random moments."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for session_id in SOURCES:
            write_dsh_log(folder / "dsh", session_id)
        flags = (BUDGET_FLAG, "--set=spill.quota_mib=8000")
        async with server_process(folder, {"dsh": folder / "dsh"}, *flags) as server, server.channel() as channel:
            stub = SessionReferenceServiceStub(channel)
            typical_seconds = await typical(stub)
            before = server.descriptors(), server.children(), server.resident_bytes()
            answers, cancelled = await rage(stub, 1.2 * typical_seconds)
            await asyncio.sleep(1)
            report_storm(server, before, answers, cancelled)


async def typical(stub: SessionReferenceServiceStub) -> float:
    """Median seconds of a call when as many run as in the storm."""
    seconds: list[float] = []

    async def timed(target: str) -> None:
        begun = time.perf_counter()
        await prepare(stub, target, *SOURCES)
        seconds.append(time.perf_counter() - begun)

    for start in range(0, WARM_CALLS, STORM_AT_ONCE):
        await asyncio.gather(*(timed(f"warm-{start + number}") for number in range(STORM_AT_ONCE)))
    return statistics.median(seconds[WARM_CALLS // 2 :])


async def rage(stub: SessionReferenceServiceStub, longest_seconds: float) -> tuple[dict[str, PrepareResponse], int]:
    """Answers by target, and the number of calls whose client saw CANCELLED."""
    rng = random.Random(1)
    answers: dict[str, PrepareResponse] = {}
    targets = iter(range(STORM_CALLS))

    async def one_after_the_other() -> None:
        for number in targets:
            call = prepare(stub, f"target-{number}", *SOURCES)
            timer = asyncio.get_running_loop().call_later(rng.uniform(0, longest_seconds), call.cancel)
            try:
                answers[f"target-{number}"] = await call
            except asyncio.CancelledError:
                continue
            finally:
                timer.cancel()

    await asyncio.gather(*(one_after_the_other() for _ in range(STORM_AT_ONCE)))
    return answers, STORM_CALLS - len(answers)


def report_storm(
    server: ServerProcess, before: tuple[int, list[int], int], answers: dict[str, PrepareResponse], cancelled: int
) -> None:
    """Say what is left and what is missing."""
    descriptors, children, resident_bytes = before
    told = {omission.saved.locator for answer in answers.values() for omission in answer.additional_context.omissions}
    saved = {f"spill:{path.stem}" for path in (server.folder / "spill").rglob("*.md")}
    warm = WARM_CALLS * len(SOURCES)
    unknown = len(saved - told) - warm
    say("STORM.cancelled", cancelled, "calls")
    say("STORM.answered", len(answers), "calls")
    say("STORM.told_and_missing", len(told - saved), "files", passed=told <= saved)
    say("STORM.cancel_crossed_the_answer", unknown / len(SOURCES), "calls")
    say("STORM.cancel_crossed_the_answer", 100 * unknown / len(SOURCES) / cancelled, "%")
    say("STORM.descriptors_left", server.descriptors() - descriptors, "descriptors", passed=server.descriptors() <= descriptors)
    say("STORM.processes_changed", int(server.children() != children), "", passed=server.children() == children)
    say("STORM.growth", (server.resident_bytes() - resident_bytes) / STORM_CALLS, "bytes/call")


@asynccontextmanager
async def left_times() -> AsyncGenerator[list[float]]:
    """Moments at which handlers of Prepare left."""
    moments: list[float] = []
    real: Any = ReferenceService.Prepare

    async def noted(self: ReferenceService, request: PrepareRequest, context: Any) -> None:
        try:
            await real(self, request, context)
        finally:
            moments.append(time.perf_counter())

    ReferenceService.Prepare = noted
    try:
        yield moments
    finally:
        ReferenceService.Prepare = real


async def deadlines() -> None:
    """How late calls to storage that stalls end, at the client and in the handler."""
    source = ShelfSessionSource()
    source.gate = asyncio.Event()
    with tempfile.TemporaryDirectory() as name:
        async with (
            left_times() as left,
            serving(make_config(Path(name), {}), sources=[source], models=WindowCatalogue()) as served,
        ):
            late: list[float] = []
            ends: list[float] = []
            codes: Counter[str] = Counter()
            for _ in range(DEADLINE_CALLS):
                ends.append(time.perf_counter() + DEADLINE_SECONDS)
                codes[(await code_of(prepare(served.stub, "target", "source", seconds=DEADLINE_SECONDS))).name] += 1
                late.append(time.perf_counter() - ends[-1])
                await until(lambda: len(left) == len(ends))
    print("  codes", dict(codes))
    report_lateness("DEADLINE.client", late)
    report_lateness("DEADLINE.handler", [moment - end for moment, end in zip(left, ends, strict=True)])


def report_lateness(name: str, seconds: list[float]) -> None:
    """Median and 99th percentile; the latter passes within 10 ms."""
    say(f"{name}_after_p50", percentile_ms(seconds, 0.5), "ms")
    say(f"{name}_after_p99", percentile_ms(seconds, 0.99), "ms", passed=percentile_ms(seconds, 0.99) <= 10)


async def worker_stops() -> None:
    """How long a worker goes on after the call it reads a long log for was cancelled."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dsh_log(folder / "dsh", "long", messages=30_000, message_bytes=400)
        config = make_config(folder, {"dsh": folder / "dsh"}, **BUDGET, cache__captures_mib="0", workers__processes="1")
        async with serving(config) as served:
            seconds = [await seconds_until_idle(served, number) for number in range(CANCELLED_READS)]
    busy = [each for each in seconds if each is not None]
    say("CANCEL.worker_idle_after_p50", percentile_ms(busy, 0.5), "ms")
    say("CANCEL.worker_idle_after_p90", percentile_ms(busy, 0.9), "ms", passed=percentile_ms(busy, 0.9) <= 20)
    say("CANCEL.worker_idle_after_p99", percentile_ms(busy, 0.99), "ms")


async def seconds_until_idle(served: Served, number: int) -> float | None:
    """Of one cancelled call; ``None`` when the worker was idle already."""
    workers = served.application.workers
    call = prepare(served.stub, f"target-{number}", "long")
    await until(lambda: workers.running_jobs > 0)
    await asyncio.sleep(random.Random(number).uniform(0, 0.3))
    was_busy = bool(workers.running_jobs)
    begun = time.perf_counter()
    call.cancel()
    await until(lambda: workers.running_jobs == 0)
    return time.perf_counter() - begun if was_busy else None


async def shutdowns() -> None:
    """How a process ends under load."""
    seconds: list[float] = []
    codes: Counter[str] = Counter()
    exits: Counter[int] = Counter()
    for _ in range(SHUTDOWNS):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for session_id in SOURCES:
                write_dsh_log(folder / "dsh", session_id)
            flags = (BUDGET_FLAG, f"--set=calls.drain_seconds={DRAIN_SECONDS}")
            async with server_process(folder, {"dsh": folder / "dsh"}, *flags) as server:
                seconds.append(await end_under_load(server, codes, exits))
    print("  codes", dict(codes), "exit codes", dict(exits))
    say(
        "SHUTDOWN.callers_lied_to",
        sum(codes.values()) - codes["OK"] - codes["UNAVAILABLE"],
        "calls",
        passed=set(codes) <= {"OK", "UNAVAILABLE"},
    )
    say("SHUTDOWN.longest", max(seconds), "s", passed=max(seconds) <= DRAIN_SECONDS + 1)


async def end_under_load(server: ServerProcess, codes: Counter[str], exits: Counter[int]) -> float:
    """SIGTERM while 100 callers on 5 connections call; the seconds until the process has ended."""
    over = asyncio.Event()
    async with AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(server.channel()) for _ in range(5)]

        async def caller(number: int) -> None:
            stub = SessionReferenceServiceStub(channels[number % 5])
            while not over.is_set():
                call = prepare(stub, f"target-{number}", *SOURCES) if number % 2 else search(stub)
                code = await code_of(call)
                codes["OK" if code == grpc.StatusCode.RESOURCE_EXHAUSTED else code.name] += 1
                await asyncio.sleep(0 if code == grpc.StatusCode.OK else 0.002)

        callers = [asyncio.create_task(caller(number)) for number in range(100)]
        await asyncio.sleep(2)
        begun = time.perf_counter()
        server.process.send_signal(signal.SIGTERM)
        exits[await server.exit_code()] += 1
        took_seconds = time.perf_counter() - begun
        over.set()
        await asyncio.gather(*callers)
    return took_seconds


async def search(stub: SessionReferenceServiceStub) -> None:
    """All batches of a search."""
    async for _ in stub.SearchCandidates(SearchCandidatesRequest(), timeout=60):
        pass


async def main() -> None:
    """All figures."""
    for measure in (storm, deadlines, worker_stops, shutdowns):
        await measure()


if __name__ == "__main__":
    asyncio.run(main())
