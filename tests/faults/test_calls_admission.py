"""Admission: who gets a place, who waits, who is refused at once, and what those who leave give back."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from fakes.shelf_session_source import ShelfSessionSource
from fakes.window_catalogue import WindowCatalogue
from rpc.failures import Failure, failure_of
from rpc.served import Serve
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import PrepareRequest
from sessionref_server.domain.errors import OverloadedError
from sessionref_server.service import admission as admission_module
from sessionref_server.service.admission import Admission

OVERLOADED = Failure(code=grpc.StatusCode.RESOURCE_EXHAUSTED, reason="OVERLOADED", metadata={}, retry_after_ms=500)


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        monkeypatch.setattr(admission_module, "monotonic", lambda: self.seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Holder:
    """Holds a place, or waits for one, until told to leave."""

    def __init__(self, admission: Admission, remaining_seconds: float | None = None) -> None:
        self.inside = asyncio.Event()
        self.leave = asyncio.Event()
        self.task = asyncio.create_task(self._hold(admission, remaining_seconds))

    async def _hold(self, admission: Admission, remaining_seconds: float | None) -> None:
        async with admission.admit(remaining_seconds):
            self.inside.set()
            await self.leave.wait()

    async def end(self) -> None:
        self.leave.set()
        await self.task


async def teach(admission: Admission, clock: Clock, seconds: float) -> None:
    """Let calls take so long until that is what is expected."""
    for _ in range(60):
        async with admission.admit(None):
            clock.seconds += seconds


async def test_a_deadline_shorter_than_the_queue_is_refused_at_once(clock: Clock) -> None:
    admission = Admission(max_concurrent=1, max_queued=10)
    await teach(admission, clock, seconds=2)
    running = Holder(admission)
    await running.inside.wait()
    with pytest.raises(OverloadedError):
        async with admission.admit(1.5):
            pass
    patient = Holder(admission, remaining_seconds=5)
    await running.end()
    await patient.inside.wait()
    await patient.end()


@pytest.mark.parametrize(("seconds", "waiting"), [(0.001, 50), (0.11, 9), (0.6, 2), (60, 2)])
async def test_a_queue_is_short_in_time_but_never_shorter_than_one_round(clock: Clock, seconds: float, waiting: int) -> None:
    admission = Admission(max_concurrent=2, max_queued=50)
    await teach(admission, clock, seconds)
    holders = [Holder(admission) for _ in range(100)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert sum(holder.inside.is_set() for holder in holders) == 2
    assert sum(not holder.task.done() for holder in holders) == 2 + waiting
    for holder in holders:
        holder.leave.set()
    results = await asyncio.gather(*(holder.task for holder in holders), return_exceptions=True)
    assert [type(result) for result in results] == [type(None)] * (2 + waiting) + [OverloadedError] * (98 - waiting)


async def test_calls_that_were_cancelled_early_do_not_make_the_queue_look_short(clock: Clock) -> None:
    admission = Admission(max_concurrent=1, max_queued=10)
    await teach(admission, clock, seconds=2)
    for _ in range(100):
        cancelled = Holder(admission)
        await cancelled.inside.wait()
        cancelled.task.cancel()
        await asyncio.gather(cancelled.task, return_exceptions=True)
    running = Holder(admission)
    await running.inside.wait()
    with pytest.raises(OverloadedError):
        async with admission.admit(1.5):
            pass
    await running.end()


async def test_places_of_waiters_who_leave_are_free_again() -> None:
    admission = Admission(max_concurrent=1, max_queued=2)
    running = Holder(admission)
    await running.inside.wait()
    for _ in range(20):
        waiting = [Holder(admission), Holder(admission)]
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            async with admission.admit(None):
                pass
        for holder in waiting:
            holder.task.cancel()
        await asyncio.gather(*(holder.task for holder in waiting), return_exceptions=True)
    await running.end()
    async with admission.admit(None):
        pass


async def test_a_waiter_cancelled_at_the_moment_it_is_given_its_place_does_not_keep_it() -> None:
    admission = Admission(max_concurrent=1, max_queued=2)
    for yields in range(6):
        running, waiting = Holder(admission), Holder(admission)
        await running.inside.wait()
        running.leave.set()
        for _ in range(yields):
            await asyncio.sleep(0)
        waiting.task.cancel()
        await asyncio.gather(running.task, waiting.task, return_exceptions=True)
        async with admission.admit(None):
            pass


async def test_every_refused_call_is_told_when_to_come_back(serve: Serve) -> None:
    source = ShelfSessionSource()
    flags = {"prepare__max_concurrent": "2", "prepare__max_queued": "0"}
    references = [reference_pb2.SessionReferenceInput(session_id="source")]
    request = PrepareRequest(target=reference_pb2.Target(session_id="target"), references=references)
    async with serve(sources=[source], models=WindowCatalogue(), **flags) as served:
        for _ in range(4):
            source.gate = asyncio.Event()
            calls = [asyncio.ensure_future(failure_of(served.stub.Prepare(request, timeout=20))) for _ in range(10)]
            await asyncio.gather(source.begun.get(), source.begun.get())
            while sum(call.done() for call in calls) < 8:
                await asyncio.wait([call for call in calls if not call.done()], return_when=asyncio.FIRST_COMPLETED)
            refused = [call.result() for call in calls if call.done()]
            assert refused == [OVERLOADED] * 8
            source.gate.set()
            admitted = [failure for failure in await asyncio.gather(*calls) if failure != OVERLOADED]
            assert [failure.code for failure in admitted] == [grpc.StatusCode.NOT_FOUND] * 2
