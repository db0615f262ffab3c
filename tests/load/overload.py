"""Overload: what the server still does when five times as much is asked of it as it can do.

``python -m load.overload`` in the folder ``tests``. Each figure is a line ``NAME figure unit PASS/FAIL``.

Calls start at their own times whether earlier ones have ended or not, so a slow server is not spared any.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from faults.long_logs import BUDGET_FLAG, write_dsh_log
from faults.server_process import server_process
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import PrepareRequest, SearchCandidatesRequest
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub

SOURCES = 40
PATIENCE_SECONDS = 2.0
"""Deadline of every call; an answer within it is a good one."""
PEAK_SECONDS = 4.0
STEP_SECONDS = 5.0
SEARCH_SHARE = 0.2
REFUSED = {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE}


@dataclass(slots=True)
class Outcome:
    """What became of the calls of one step."""

    seconds: list[float] = field(default_factory=list[float])
    refusal_seconds: list[float] = field(default_factory=list[float])
    codes: Counter[str] = field(default_factory=Counter[str])
    refusals_without_advice: int = 0


class Caller:
    """Makes calls of the two kinds and notes how they end."""

    def __init__(self, stubs: list[SessionReferenceServiceStub]) -> None:
        self._stubs = stubs
        self._random = random.Random(1)
        self._number = 0

    async def call(self, outcome: Outcome) -> None:
        """One call, of a random kind."""
        self._number += 1
        stub = self._stubs[self._number % len(self._stubs)]
        begun = time.perf_counter()
        try:
            await (self._search(stub) if self._random.random() < SEARCH_SHARE else self._prepare(stub))
        except grpc.aio.AioRpcError as error:
            self._note_failure(error, time.perf_counter() - begun, outcome)
        else:
            outcome.codes["OK"] += 1
            outcome.seconds.append(time.perf_counter() - begun)

    async def _search(self, stub: SessionReferenceServiceStub) -> None:
        async for _ in stub.SearchCandidates(SearchCandidatesRequest(), timeout=PATIENCE_SECONDS):
            pass

    async def _prepare(self, stub: SessionReferenceServiceStub) -> None:
        chosen = self._random.sample(range(SOURCES), 3)
        references = [reference_pb2.SessionReferenceInput(session_id=f"source-{number}") for number in chosen]
        target = reference_pb2.Target(session_id=f"target-{self._number}")
        await stub.Prepare(PrepareRequest(target=target, references=references), timeout=PATIENCE_SECONDS)

    @staticmethod
    def _note_failure(error: grpc.aio.AioRpcError, seconds: float, outcome: Outcome) -> None:
        outcome.codes[error.code().name] += 1
        if error.code() not in REFUSED:
            return
        outcome.refusal_seconds.append(seconds)
        details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
        status = Status.FromString(details if isinstance(details, bytes) else b"")
        if not any(detail.Is(RetryInfo.DESCRIPTOR) for detail in status.details):
            outcome.refusals_without_advice += 1


async def peak_per_second(caller: Caller) -> float:
    """Good answers per second when 12 callers each ask as fast as they are answered."""
    outcome = Outcome()
    ends = time.perf_counter() + PEAK_SECONDS

    async def one() -> None:
        while time.perf_counter() < ends:
            await caller.call(outcome)

    await asyncio.gather(*(one() for _ in range(12)))
    return outcome.codes["OK"] / PEAK_SECONDS


async def open_loop(caller: Caller, per_second: float) -> Outcome:
    """So many calls per second for a while, however long they take."""
    outcome = Outcome()
    running: set[asyncio.Task[None]] = set()
    begun = time.perf_counter()
    for number in range(int(per_second * STEP_SECONDS)):
        await asyncio.sleep(max(0.0, begun + number / per_second - time.perf_counter()))
        task = asyncio.create_task(caller.call(outcome))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    return outcome


def percentile_ms(seconds: list[float], share: float) -> float:
    """A percentile in milliseconds; 0 when there is nothing."""
    ordered = sorted(seconds)
    return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def say(name: str, figure: float, unit: str, *, passed: bool | None = None) -> None:
    """One line of the report."""
    print(name, f"{figure:.4g}", unit, "" if passed is None else "PASS" if passed else "FAIL")


async def main() -> None:
    """Find the peak, then ask for 0.8 and 5 times as much."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(SOURCES):
            write_dsh_log(folder / "dsh", f"source-{number}")
        flags = (BUDGET_FLAG, "--set=spill.quota_mib=4000", "--set=cache.captures_mib=4", *sys.argv[1:])
        async with server_process(folder, {"dsh": folder / "dsh"}, *flags) as server:
            caller = Caller([server.stub() for _ in range(4)])
            await peak_per_second(caller)
            peak = await peak_per_second(caller)
            say("OVERLOAD.peak", peak, "good/s")
            steps = {factor: await open_loop(caller, factor * peak) for factor in (0.5, 0.8, 2.0, 5.0)}
    for factor, outcome in steps.items():
        goodput = outcome.codes["OK"] / STEP_SECONDS
        say(f"OVERLOAD.goodput_at_{factor}x", goodput, "good/s", passed=goodput >= 0.9 * min(1.0, factor) * peak)
        say(f"OVERLOAD.accepted_p50_at_{factor}x", statistics.median(outcome.seconds or [0]) * 1000, "ms")
        say(f"OVERLOAD.accepted_p99_at_{factor}x", percentile_ms(outcome.seconds, 0.99), "ms")
        print("  codes", dict(outcome.codes), "refusals without RetryInfo", outcome.refusals_without_advice)
    worst = steps[5.0]
    refusal_ms = percentile_ms(worst.refusal_seconds, 0.5)
    say("OVERLOAD.refusal_p50_at_5x", refusal_ms, "ms", passed=0 < refusal_ms <= 10)
    usual_ms, worst_ms = percentile_ms(steps[0.8].seconds, 0.99), percentile_ms(worst.seconds, 0.99)
    say("OVERLOAD.accepted_p99_ratio", worst_ms / usual_ms, "x", passed=worst_ms <= 2 * usual_ms)


if __name__ == "__main__":
    asyncio.run(main())
