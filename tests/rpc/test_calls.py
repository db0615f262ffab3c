"""Calls that are cancelled, shed, or caught by a shutdown: nothing hangs, nothing leaks, no status is a lie."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable

import grpc
import pytest
from fakes.shelf_session_source import ShelfSessionSource
from fakes.window_catalogue import WindowCatalogue
from rpc.failures import Failure, failure_of
from rpc.served import Serve, Served
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import (
    GetServiceInfoRequest,
    PrepareRequest,
    ReadSnapshotRequest,
    SearchCandidatesRequest,
)
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.session import SessionHead, SessionId

SOURCE = SessionId("source")
SHUTTING_DOWN = Failure(code=grpc.StatusCode.UNAVAILABLE, reason="SHUTTING_DOWN", metadata={}, retry_after_ms=200)


def shelf(text: str = "hello") -> ShelfSessionSource:
    source = ShelfSessionSource()
    capture = Capture(session_id=SOURCE, cwd=None, through_seq=1, conversation=Conversation.of([Message(Role.USER, text)]))
    heads = [SessionHead(session_id=SessionId(f"s{number}"), source="dsh", created_at_ms=number) for number in range(1000)]
    source.fill(heads, [capture])
    return source


def prepare(served: Served) -> grpc.aio.UnaryUnaryCall:
    references = [reference_pb2.SessionReferenceInput(session_id=SOURCE)]
    return served.stub.Prepare(PrepareRequest(target=reference_pb2.Target(session_id="me"), references=references), timeout=20)


async def handlers_gone(served: Served) -> None:
    """Wait until the server handles no call any more."""
    running = set(served.application.server.calls._running)
    if running:
        await asyncio.wait(running, timeout=10)
    assert not served.application.server.calls._running


async def code_of(call: Awaitable[object]) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_every_wave_beyond_the_limit_is_shed_and_the_next_one_is_not(serve: Serve) -> None:
    source = shelf()
    flags = {"prepare__max_concurrent": "2", "prepare__max_queued": "0"}
    async with serve(sources=[source], models=WindowCatalogue(), **flags) as served:
        waves: list[Counter[grpc.StatusCode]] = []
        for _ in range(4):
            source.gate = asyncio.Event()
            calls = [asyncio.ensure_future(code_of(prepare(served))) for _ in range(10)]
            await asyncio.gather(source.begun.get(), source.begun.get())
            while sum(call.done() for call in calls) < 8:
                await asyncio.wait([call for call in calls if not call.done()], return_when=asyncio.FIRST_COMPLETED)
            source.gate.set()
            waves.append(Counter(await asyncio.gather(*calls)))
        assert waves == [Counter({grpc.StatusCode.RESOURCE_EXHAUSTED: 8, grpc.StatusCode.OK: 2})] * 4
        assert source.begun.empty()


async def test_cancelled_calls_give_their_places_back(serve: Serve) -> None:
    source = shelf()
    flags = {"prepare__max_concurrent": "2", "prepare__max_queued": "2"}
    async with serve(sources=[source], models=WindowCatalogue(), **flags) as served:
        for _ in range(5):
            source.gate = asyncio.Event()
            running = [prepare(served), prepare(served)]
            await asyncio.gather(source.begun.get(), source.begun.get())
            queued = [prepare(served), prepare(served)]
            assert await code_of(prepare_when_queued(served, queued)) == grpc.StatusCode.RESOURCE_EXHAUSTED
            for call in (*running, *queued):
                call.cancel()
            await handlers_gone(served)
        source.gate = None
        assert await code_of(prepare(served)) == grpc.StatusCode.OK


async def prepare_when_queued(served: Served, queued: list[grpc.aio.UnaryUnaryCall]) -> object:
    """Prepare, once the calls before it are counted."""
    while served.application.prepare.admission._waiting < len(queued):  # noqa: ASYNC110 - a count has no event
        await asyncio.sleep(0)
    return await prepare(served)


async def test_handler_of_a_stream_leaves_when_its_client_does(serve: Serve) -> None:
    async with serve(sources=[shelf("x" * 500_000)], models=WindowCatalogue(), prepare__max_reference_bytes="500") as served:
        saved = (await prepare(served)).additional_context.omissions[0].saved
        for _ in range(20):
            request = ReadSnapshotRequest(locator=saved.locator, owner_session_id="me", chunk_bytes=1)
            call = served.stub.ReadSnapshot(request, timeout=20)
            for _ in range(3):
                await call.read()
            call.cancel()
            await handlers_gone(served)


async def test_hundreds_of_cancelled_calls_leave_no_task_behind(serve: Serve) -> None:
    source = shelf()
    async with serve(sources=[source], models=WindowCatalogue()) as served:
        await prepare(served)
        before = len(asyncio.all_tasks())
        source.gate = asyncio.Event()
        for _ in range(20):
            calls = [prepare(served) for _ in range(10)]
            streams = [served.stub.SearchCandidates(SearchCandidatesRequest(), timeout=20) for _ in range(10)]
            await asyncio.gather(*(stream.read() for stream in streams))
            for call in (*calls, *streams):
                call.cancel()
            await asyncio.gather(*(call.wait_for_connection() for call in calls), return_exceptions=True)
            await handlers_gone(served)
        source.gate = None
        await prepare(served)
        assert len(asyncio.all_tasks()) <= before + 2


async def test_deadline_of_the_client_ends_the_handler(serve: Serve) -> None:
    source = shelf()
    source.gate = asyncio.Event()
    async with serve(sources=[source], models=WindowCatalogue()) as served:
        references = [reference_pb2.SessionReferenceInput(session_id=SOURCE)]
        request = PrepareRequest(target=reference_pb2.Target(session_id="me"), references=references)
        assert await code_of(served.stub.Prepare(request, timeout=0.05)) == grpc.StatusCode.DEADLINE_EXCEEDED
        await handlers_gone(served)
        source.gate = None
        assert await code_of(prepare(served)) == grpc.StatusCode.OK


async def test_calls_that_outlast_the_drain_end_as_unavailable_never_as_cancelled(serve: Serve) -> None:
    source = shelf()
    source.gate = asyncio.Event()
    async with serve(sources=[source], models=WindowCatalogue()) as served:
        calls = [asyncio.ensure_future(failure_of(prepare(served))) for _ in range(5)]
        await asyncio.gather(*(source.begun.get() for _ in calls))
        await served.application.server.stop(0)
        assert await asyncio.gather(*calls) == [SHUTTING_DOWN] * 5


async def test_running_calls_may_finish_while_new_ones_are_refused(serve: Serve) -> None:
    source = shelf()
    source.gate = asyncio.Event()
    async with serve(sources=[source], models=WindowCatalogue()) as served:
        running = asyncio.ensure_future(code_of(prepare(served)))
        await source.begun.get()
        stopping = asyncio.create_task(served.application.server.stop(10))
        while not served.application.server.calls._draining:  # noqa: ASYNC110 - a flag has no event
            await asyncio.sleep(0)
        assert await failure_of(served.stub.GetServiceInfo(GetServiceInfoRequest(), timeout=10)) == SHUTTING_DOWN
        assert await failure_of(served.stub.SearchCandidates(SearchCandidatesRequest(), timeout=10)) == SHUTTING_DOWN
        source.gate.set()
        assert await running == grpc.StatusCode.OK
        await stopping


@pytest.mark.parametrize("address", ["", "127.0.0.1:0", "[::1]:0", "localhost:0"], ids=["unix", "IPv4", "IPv6", "by name"])
@pytest.mark.parametrize("drain_seconds", [0, 0.2])
async def test_shutdown_under_load_is_ok_or_unavailable_to_every_caller(serve: Serve, drain_seconds: float, address: str) -> None:
    source = shelf()
    flags = {"listen__addresses": address} if address else {}
    async with serve(sources=[source], models=WindowCatalogue(), **flags) as served:
        seen: Counter[grpc.StatusCode] = Counter()
        stopped = asyncio.Event()

        async def caller() -> None:
            while not stopped.is_set():
                seen[await code_of(prepare(served))] += 1
                seen[await code_of(last_batch(served))] += 1

        callers = [asyncio.create_task(caller()) for _ in range(20)]
        for _ in range(50):
            await source.begun.get()
        await served.application.server.stop(drain_seconds)
        stopped.set()
        await asyncio.gather(*callers)
        assert seen[grpc.StatusCode.OK] > 0
        assert set(seen) <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}


async def last_batch(served: Served) -> None:
    async for _ in served.stub.SearchCandidates(SearchCandidatesRequest(), timeout=20):
        pass
