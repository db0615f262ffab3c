"""Deadlines: a late call ends at once wherever it waits, starts no work when it is late already, and its worker comes free."""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from fakes.call_context import AbortedError, CallContext
from fakes.shelf_session_source import ShelfSessionSource
from fakes.window_catalogue import WindowCatalogue
from faults.long_logs import BUDGET, write_dsh_log
from faults.standing import left_behind, standing, threads_free
from rpc.failures import Failure, failure_of
from rpc.served import Serve, Served
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import PrepareRequest, ReadSnapshotRequest
from sessionref_server.wire.guard import Calls
from sessionref_server.wire.reference_service import ReferenceService, ServiceFacts

DEADLINE_SECONDS = 0.05
LATE = Failure(code=grpc.StatusCode.DEADLINE_EXCEEDED, reason="SESSION_REFERENCE_CANCELLED", metadata={})


def request(*session_ids: str) -> PrepareRequest:
    references = [reference_pb2.SessionReferenceInput(session_id=session_id) for session_id in session_ids]
    return PrepareRequest(target=reference_pb2.Target(session_id="target"), references=references)


async def code_of(call: grpc.aio.UnaryUnaryCall) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def handlers_gone(served: Served) -> None:
    running = set(served.application.server.calls._running)
    if running:
        await asyncio.wait(running, timeout=10)
    assert not served.application.server.calls._running


@pytest.mark.parametrize("remaining_seconds", [0.0, -1.0])
async def test_a_call_that_is_late_on_arrival_reads_nothing(serve: Serve, remaining_seconds: float) -> None:
    source = ShelfSessionSource()
    async with serve(sources=[source], models=WindowCatalogue()) as served:
        application = served.application
        facts = ServiceFacts(
            prepare=application.prepare.limits, session_candidates=50, concurrent_prepares=8, snapshot_lifetime_seconds=None
        )
        service = ReferenceService(
            Calls(60), facts, catalog=application.catalog, prepare=application.prepare, spill=application.spill
        )
        context: Any = CallContext(remaining_seconds)
        with pytest.raises(AbortedError):
            await service.Prepare(request("source"), context)
        await asyncio.sleep(0)
        assert (context.code, context.written, source.readings) == (grpc.StatusCode.DEADLINE_EXCEEDED, [], 0)


async def test_two_hundred_calls_to_storage_that_stalls_end_at_their_deadline_and_leave_nothing(serve: Serve) -> None:
    source = ShelfSessionSource()
    source.gate = asyncio.Event()
    flags = {"prepare__max_concurrent": "100", "prepare__max_queued": "100"}
    async with serve(sources=[source], models=WindowCatalogue(), **flags) as served:
        await served.listed_ids()
        before = standing()
        for _ in range(4):
            calls = [served.stub.Prepare(request("source"), timeout=DEADLINE_SECONDS) for _ in range(50)]
            assert set(await asyncio.gather(*map(code_of, calls))) == {grpc.StatusCode.DEADLINE_EXCEEDED}
        await handlers_gone(served)
        assert await left_behind(before) == {}


async def test_the_servers_own_limit_is_told_as_a_passed_deadline(serve: Serve) -> None:
    source = ShelfSessionSource()
    source.gate = asyncio.Event()
    async with serve(sources=[source], models=WindowCatalogue(), calls__max_seconds="0.1") as served:
        assert await failure_of(served.stub.Prepare(request("source"), timeout=20)) == LATE
        assert await failure_of(served.stub.Prepare(request("source"))) == LATE


async def test_a_worker_is_free_again_after_the_deadline_of_a_call_that_reads_a_long_log(serve: Serve, tmp_path: Path) -> None:
    write_dsh_log(tmp_path / "dsh", "long", messages=20_000, message_bytes=1000)
    write_dsh_log(tmp_path / "dsh", "short", messages=4)
    async with serve({"dsh": tmp_path / "dsh"}, **BUDGET, workers__processes="1", cache__captures_mib="0") as served:
        workers = served.application.workers
        await served.prepare("short")
        for _ in range(5):
            call = served.stub.Prepare(request("long"), timeout=DEADLINE_SECONDS)
            assert await code_of(call) == grpc.StatusCode.DEADLINE_EXCEEDED
            await handlers_gone(served)
            await served.prepare("short")
            assert (workers.running_jobs, workers.queued_jobs) == (0, 0)
        assert len((await served.prepare("long")).additional_context.omissions) == 1


async def test_streams_nobody_reads_are_left_by_their_handlers_at_the_servers_own_limit(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_dsh_log(tmp_path / "dsh", "long", messages=2000, message_bytes=8000)
    async with serve({"dsh": tmp_path / "dsh"}, **BUDGET, calls__max_seconds="2") as served:
        saved = (await served.prepare("long", target="target")).additional_context.omissions[0].saved
        wanted = ReadSnapshotRequest(locator=saved.locator, owner_session_id="target")
        await threads_free(served)
        before = standing()
        streams = [served.stub.ReadSnapshot(wanted) for _ in range(10)]
        await asyncio.gather(*(stream.read() for stream in streams))
        assert len(served.application.server.calls._running) == 10
        await handlers_gone(served)
        # A caller who begins to read gets what was on its way, and then learns why there is no more.
        assert [await rest_of(stream) for stream in streams] == [grpc.StatusCode.DEADLINE_EXCEEDED] * 10
        assert await left_behind(before) == {}
        deadlines = [served.stub.ReadSnapshot(wanted, timeout=0.3) for _ in range(10)]
        await asyncio.gather(*(stream.read() for stream in deadlines))
        assert {await stream.code() for stream in deadlines} == {grpc.StatusCode.DEADLINE_EXCEEDED}
        await handlers_gone(served)
        assert await left_behind(before) == {}
        assert len(await served.read_snapshot(saved.locator, "target")) == saved.size_bytes
    assert [record.getMessage() for record in caplog.records if record.levelname in {"WARNING", "ERROR"}] == []


async def rest_of(stream: grpc.aio.UnaryStreamCall) -> grpc.StatusCode:
    try:
        for _ in itertools.count():
            if await stream.read() is grpc.aio.EOF:
                break
    except grpc.aio.AioRpcError:
        pass
    return await stream.code()


CLIENT = """
import sys, time, grpc
from sessionref.v1.session_reference_service_pb2 import ReadSnapshotRequest
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub

stub = SessionReferenceServiceStub(grpc.insecure_channel(sys.argv[1]))
stream = stub.ReadSnapshot(ReadSnapshotRequest(locator=sys.argv[2], owner_session_id="target", chunk_bytes=1000))
next(stream)
print("reading", flush=True)
time.sleep(600)
"""


async def test_clients_killed_in_the_middle_of_a_stream_leave_no_handler(serve: Serve, tmp_path: Path) -> None:
    write_dsh_log(tmp_path / "dsh", "long", messages=2000, message_bytes=8000)
    async with serve({"dsh": tmp_path / "dsh"}, **BUDGET) as served:
        saved = (await served.prepare("long", target="target")).additional_context.omissions[0].saved
        await threads_free(served)
        before = standing()
        command = [sys.executable, "-c", CLIENT, served.application.server.addresses[0], saved.locator]
        clients = [await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE) for _ in range(5)]
        for client in clients:
            assert client.stdout is not None
            assert await client.stdout.readline() == b"reading\n"
        assert len(served.application.server.calls._running) == 5
        for client in clients:
            client.kill()
            await client.wait()
        await handlers_gone(served)
        assert await left_behind(before) == {}
