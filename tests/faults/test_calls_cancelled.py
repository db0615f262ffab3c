"""Prepares that are cancelled, at random or at every single point: nothing is left or published, nothing promised is lost."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc
import pytest
from faults.long_logs import BUDGET, write_dsh_log
from faults.standing import left_behind, standing, threads_free
from faults.suspensions import Suspensions
from rpc.served import Serve, Served
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import PrepareRequest, PrepareResponse
from sessionref_server.domain.reference import SessionReference
from sessionref_server.domain.session import ModelRoute, SessionId
from sessionref_server.service.prepare import PrepareCall, Prepared, Target
from sessionref_server.wire.reference_service import ReferenceService

SOURCES = ("source-0", "source-1", "source-2")
STORM_CALLS = 2000
AT_ONCE = 8


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, Path]:
    for session_id in SOURCES:
        write_dsh_log(tmp_path / "dsh", session_id)
    return {"dsh": tmp_path / "dsh"}


@pytest.fixture
def small_roots(tmp_path: Path) -> dict[str, Path]:
    for session_id in SOURCES:
        write_dsh_log(tmp_path / "dsh", session_id, messages=20)
    return {"dsh": tmp_path / "dsh"}


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    return tmp_path / "spill"


def owners(spill: Path) -> Counter[str]:
    """Number of saved transcripts by the folder of their owner."""
    return Counter(path.parent.name for path in spill.rglob("*") if path.is_file())


def folders_of(targets: Iterable[str]) -> set[str]:
    return {sha256(target.encode()).hexdigest()[:32] for target in targets}


class Storm:
    """Prepares, each for a target of its own, that their client cancels at random moments."""

    def __init__(self, served: Served) -> None:
        self.answers: dict[str, PrepareResponse] = {}
        """By target, of calls that their client saw end well."""
        self.codes: Counter[str] = Counter()
        self._served = served
        self._random = random.Random(20260901)

    async def typical_seconds(self) -> float:
        """Median time of a call when as many run as in the storm."""
        seconds: list[float] = []

        async def timed(target: str) -> None:
            begun = time.perf_counter()
            await self._call(target)
            seconds.append(time.perf_counter() - begun)

        for start in range(0, 40, AT_ONCE):
            await asyncio.gather(*(timed(f"warm-{start + number}") for number in range(AT_ONCE)))
        return statistics.median(seconds)

    async def rage(self, calls: int, typical_seconds: float) -> None:
        targets = iter([f"target-{number}" for number in range(calls)])

        async def one_after_the_other() -> None:
            for target in targets:
                await self._cancelled_call(target, self._random.uniform(0, 1.2 * typical_seconds))

        await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))

    async def _cancelled_call(self, target: str, seconds: float) -> None:
        call = self._call(target)
        timer = asyncio.get_running_loop().call_later(seconds, call.cancel)
        try:
            self.answers[target] = await call
            self.codes["OK"] += 1
        except asyncio.CancelledError:
            self.codes["CANCELLED"] += 1
        except grpc.aio.AioRpcError as error:
            self.codes[error.code().name] += 1
        timer.cancel()

    def _call(self, target: str) -> grpc.aio.UnaryUnaryCall:
        references = [reference_pb2.SessionReferenceInput(session_id=session_id) for session_id in SOURCES]
        request = PrepareRequest(target=reference_pb2.Target(session_id=target), references=references)
        return self._served.stub.Prepare(request, timeout=60)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Targets whose answers the server has handed to the network whole."""
    targets: set[str] = set()
    real: Any = ReferenceService.Prepare

    async def prepare(self: ReferenceService, request: PrepareRequest, context: Any) -> None:
        await real(self, request, context)
        targets.add(request.target.session_id)

    monkeypatch.setattr(ReferenceService, "Prepare", prepare)
    return targets


@pytest.mark.timeout(150)
async def test_a_storm_of_cancels_leaves_nothing_and_loses_nothing(
    serve: Serve, roots: dict[str, Path], spill: Path, answered: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(roots, **BUDGET, spill__quota_mib="4000", prepare__max_queued="100") as served:
        storm = Storm(served)
        typical_seconds = await storm.typical_seconds()
        await threads_free(served)
        before = standing()
        await storm.rage(STORM_CALLS, typical_seconds)
        await threads_free(served)
        assert await left_behind(before) == {}
        saved = owners(spill)
        told = answered - {target for target in answered if target.startswith("warm")}
        # A cancel that crosses the whole answer on the wire comes too late for the server to know of it.
        left = {owner: number for owner, number in saved.items() if owner not in folders_of(f"warm-{n}" for n in range(40))}
        assert left == dict.fromkeys(folders_of(told), len(SOURCES))
        assert storm.answers.keys() <= told
        assert storm.codes.total() == STORM_CALLS
        assert storm.codes.keys() == {"OK", "CANCELLED"}
        await assert_all_read_back(served, storm.answers)
    assert [record for record in caplog.records if record.levelname in {"WARNING", "ERROR"}] == []


async def assert_all_read_back(served: Served, answers: dict[str, PrepareResponse]) -> None:
    for target, answer in answers.items():
        for omission in answer.additional_context.omissions:
            text = await served.read_snapshot(omission.saved.locator, target)
            assert len(text) == omission.saved.size_bytes
            assert text.startswith(b"# Referenced session")


def a_call(target: str, references: int) -> PrepareCall:
    return PrepareCall(
        target=Target(session_id=SessionId(target), route=ModelRoute(provider=None, model=None)),
        content=(),
        references=[SessionReference(session_id=SessionId(session_id)) for session_id in SOURCES[:references]],
    )


@pytest.mark.parametrize("references", [1, 3])
@pytest.mark.timeout(120)
async def test_a_cancel_at_every_point_publishes_nothing_and_leaves_nothing(
    serve: Serve, small_roots: dict[str, Path], spill: Path, references: int
) -> None:
    async with serve(small_roots, **BUDGET, cache__captures_mib="0") as served:
        prepare = served.application.prepare.prepare
        await prepare(a_call("warm", references))
        await threads_free(served)
        warm, before = owners(spill), standing()
        for point in itertools.count(1):
            suspensions = Suspensions(cancel_at=point)
            task = asyncio.create_task(suspensions.run(prepare(a_call(f"target-{point}", references))))
            (result,) = await asyncio.gather(task, return_exceptions=True)
            await threads_free(served)
            assert await left_behind(before) == {}
            if isinstance(result, Prepared):
                break
            assert isinstance(result, asyncio.CancelledError)
            assert owners(spill) == warm
        assert point > 8
        assert suspensions.count < point
        assert owners(spill) == warm + Counter(dict.fromkeys(folders_of([f"target-{point}"]), references))


class LinkGate:
    """Holds a saved file at the moment it is about to get its name, or has just got it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
        self.reached = asyncio.Event()
        self.resume = threading.Event()
        self._real = os.link
        self._moment = moment
        self._loop = asyncio.get_running_loop()
        monkeypatch.setattr(os, "link", self)

    def __call__(self, *arguments: Any, **options: Any) -> None:
        if self._moment == "after":
            self._real(*arguments, **options)
        self._loop.call_soon_threadsafe(self.reached.set)
        self.resume.wait()
        if self._moment == "before":
            self._real(*arguments, **options)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.timeout(120)
async def test_a_cancel_while_a_file_gets_its_name_is_never_both_cancelled_and_visible(
    serve: Serve, small_roots: dict[str, Path], spill: Path, moment: str
) -> None:
    async with serve(small_roots, **BUDGET) as served:
        await served.prepare(*SOURCES, target="warm")
        await threads_free(served)
        warm, before = owners(spill), standing()
        for number in range(100):
            with pytest.MonkeyPatch.context() as patch:
                gate = LinkGate(patch, moment)
                target = f"target-{number}"
                references = [reference_pb2.SessionReferenceInput(session_id=session_id) for session_id in SOURCES]
                request = PrepareRequest(target=reference_pb2.Target(session_id=target), references=references)
                call = served.stub.Prepare(request, timeout=60)
                await gate.reached.wait()
                call.cancel()
                running = list(served.application.server.calls._running)
                await asyncio.wait(running)
                gate.resume.set()
                await threads_free(served)
            assert await call.code() == grpc.StatusCode.CANCELLED
            assert owners(spill) == warm
        assert await left_behind(before) == {}
        answer = await served.prepare(*SOURCES, target="target-0")
        assert len(answer.additional_context.omissions) == len(SOURCES)
        await assert_all_read_back(served, {"target-0": answer})
