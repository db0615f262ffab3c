"""Memory and descriptors of a server process that is used badly: bounded, and back to normal afterwards."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
from faults.long_logs import BUDGET_FLAG, write_dsh_log
from faults.server_process import ServerProcess, server_process
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import (
    GetServiceInfoRequest,
    PrepareRequest,
    ReadSnapshotRequest,
    SearchCandidatesRequest,
)
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub

pytestmark = pytest.mark.timeout(120)

MIB = 1024 * 1024
ROUNDS = 4
AT_ONCE = 20
SEARCH_BYTES = 100
PREPARE_BYTES = 1000
"""What a call may leave behind. The caches of Prepare fill up slowly; an answer that was not let go of would be 20,000 bytes."""
DESCRIPTORS = 64
CONNECTIONS = 200


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, Path]:
    write_dsh_log(tmp_path / "dsh", "source")
    write_dsh_log(tmp_path / "dsh", "long", messages=2000, message_bytes=8000)
    return {"dsh": tmp_path / "dsh"}


async def least_growth_per_call(server: ServerProcess, calls: int, call: Callable[[int], Awaitable[None]]) -> float:
    """Bytes per call in the best of several rounds: a leak shows in each of them, noise does not."""
    growths: list[float] = []
    for number in range(ROUNDS + 1):
        before = server.resident_bytes()
        for start in range(0, calls, AT_ONCE):
            await asyncio.gather(*(call(number * calls + start + one) for one in range(AT_ONCE)))
        growths.append((server.resident_bytes() - before) / calls)
    return min(growths[1:])


async def test_cancelled_searches_do_not_make_the_server_grow(tmp_path: Path, roots: dict[str, Path]) -> None:
    async with server_process(tmp_path, roots) as server, server.channel() as channel:
        stub = SessionReferenceServiceStub(channel)

        async def search_and_leave(number: int) -> None:
            stream = stub.SearchCandidates(SearchCandidatesRequest(), timeout=60)
            if number % 2:
                await stream.read()
            stream.cancel()

        assert await least_growth_per_call(server, 1700, search_and_leave) <= SEARCH_BYTES


async def test_cancelled_prepares_do_not_make_the_server_grow(tmp_path: Path, roots: dict[str, Path]) -> None:
    flags = (BUDGET_FLAG, "--set=spill.quota_mib=50", "--set=prepare.max_queued=100")
    async with server_process(tmp_path, roots, *flags) as server, server.channel() as channel:
        stub = SessionReferenceServiceStub(channel)

        async def prepare_and_leave(number: int) -> None:
            references = [reference_pb2.SessionReferenceInput(session_id="source")]
            target = reference_pb2.Target(session_id=f"target-{number % 50}")
            call = stub.Prepare(PrepareRequest(target=target, references=references), timeout=60)
            await asyncio.sleep(number % 7 / 1000)
            call.cancel()

        assert await least_growth_per_call(server, 700, prepare_and_leave) <= PREPARE_BYTES


async def test_streams_that_nobody_reads_cost_little_and_disturb_nobody(tmp_path: Path, roots: dict[str, Path]) -> None:
    async with server_process(tmp_path, roots, BUDGET_FLAG) as server, server.channel() as channel:
        stub = SessionReferenceServiceStub(channel)
        references = [reference_pb2.SessionReferenceInput(session_id="long")]
        target = reference_pb2.Target(session_id="target")
        answer = await stub.Prepare(PrepareRequest(target=target, references=references), timeout=60)
        wanted = ReadSnapshotRequest(locator=answer.additional_context.omissions[0].saved.locator, owner_session_id="target")
        for _ in range(3):
            await asyncio.gather(*(read_all(stub.ReadSnapshot(wanted, timeout=60)) for _ in range(4)))
        before = server.resident_bytes()
        streams = [stub.ReadSnapshot(wanted) for _ in range(50)]
        await asyncio.gather(*(stream.read() for stream in streams))
        async with server.channel() as other:
            for _ in range(20):
                await SessionReferenceServiceStub(other).GetServiceInfo(GetServiceInfoRequest(), timeout=10)
        assert server.resident_bytes() - before < 32 * MIB


async def read_all(stream: grpc.aio.UnaryStreamCall) -> None:
    async for _ in stream:
        pass


async def test_more_connections_than_descriptors_do_not_end_the_server(tmp_path: Path, roots: dict[str, Path]) -> None:
    def few_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

    async with server_process(tmp_path, roots, BUDGET_FLAG, before_exec=few_descriptors) as server:
        async with AsyncExitStack() as stack:
            channels = [await stack.enter_async_context(server.channel()) for _ in range(CONNECTIONS)]
            codes = await asyncio.gather(*(code_of_prepare(channel, 3) for channel in channels))
        assert set(codes) <= {
            grpc.StatusCode.OK,
            grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            grpc.StatusCode.DEADLINE_EXCEEDED,
        }
        assert server.process.poll() is None
        async with server.channel() as channel:
            assert await code_of_prepare(channel, 30) == grpc.StatusCode.OK
        server.terminate()
        assert await server.exit_code() == 0


async def code_of_prepare(channel: grpc.aio.Channel, timeout_seconds: float) -> grpc.StatusCode:
    references = [reference_pb2.SessionReferenceInput(session_id="source")]
    request = PrepareRequest(target=reference_pb2.Target(session_id="target"), references=references)
    try:
        await SessionReferenceServiceStub(channel).Prepare(request, timeout=timeout_seconds, wait_for_ready=True)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK
