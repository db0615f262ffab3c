"""The end of a server process under load: no caller is lied to, nothing is left behind, and the next server starts at once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
from faults.long_logs import BUDGET_FLAG, write_dsh_log
from faults.server_process import ServerProcess, command, gone, server_process
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import (
    GetServiceInfoRequest,
    PrepareRequest,
    ReadSnapshotRequest,
    SearchCandidatesRequest,
)
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub
from sessionref_server.config import SOURCE_NAMES

pytestmark = pytest.mark.timeout(120)

OK, UNAVAILABLE = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE
DRAIN_SECONDS = 1
FLAGS = (BUDGET_FLAG, f"--set=calls.drain_seconds={DRAIN_SECONDS}", "--set=prepare.max_queued=1000")
SOURCES = ("source-0", "source-1", "source-2")
LONG = "long"


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, Path]:
    for session_id in SOURCES:
        write_dsh_log(tmp_path / "dsh", session_id)
    write_dsh_log(tmp_path / "dsh", LONG, messages=1000, message_bytes=10_000)
    return {"dsh": tmp_path / "dsh"}


@pytest.fixture
async def server(tmp_path: Path, roots: dict[str, Path]) -> AsyncGenerator[ServerProcess]:
    async with server_process(tmp_path, roots, *FLAGS) as server:
        yield server


class Load:
    """Calls in closed loops over several connections until told to stop."""

    def __init__(self, server: ServerProcess, callers: int = 100, connections: int = 5) -> None:
        self.codes: Counter[grpc.StatusCode] = Counter()
        self._server = server
        self._callers = callers
        self._connections = connections
        self._ends = False
        self._enough = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, stack: AsyncExitStack, warm_calls: int) -> None:
        """Start, and wait for so many answers."""
        channels = [await stack.enter_async_context(self._server.channel()) for _ in range(self._connections)]
        stubs = [SessionReferenceServiceStub(channel) for channel in channels]
        self._wanted = warm_calls
        self._tasks = [asyncio.create_task(self._call(stubs[number % len(stubs)], number)) for number in range(self._callers)]
        await self._enough.wait()

    async def end(self) -> Counter[grpc.StatusCode]:
        """Codes of all calls."""
        self._ends = True
        await asyncio.gather(*self._tasks)
        return self.codes

    async def _call(self, stub: SessionReferenceServiceStub, number: int) -> None:
        while not self._ends:
            code = await (self._prepare(stub, number) if number % 2 else self._search(stub))
            self.codes[code] += 1
            if self.codes.total() >= self._wanted:
                self._enough.set()
            if code == UNAVAILABLE:
                await asyncio.sleep(0.002)

    async def _prepare(self, stub: SessionReferenceServiceStub, number: int) -> grpc.StatusCode:
        references = [reference_pb2.SessionReferenceInput(session_id=session_id) for session_id in SOURCES]
        request = PrepareRequest(target=reference_pb2.Target(session_id=f"target-{number}"), references=references)
        try:
            await stub.Prepare(request, timeout=60)
        except grpc.aio.AioRpcError as error:
            # Shed before it was accepted, and told so: as good as an answer here.
            return OK if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED else error.code()
        return OK

    async def _search(self, stub: SessionReferenceServiceStub) -> grpc.StatusCode:
        try:
            async for _ in stub.SearchCandidates(SearchCandidatesRequest(), timeout=60):
                pass
        except grpc.aio.AioRpcError as error:
            return error.code()
        return OK


async def test_callers_see_ok_or_unavailable_and_the_process_ends_in_time(server: ServerProcess) -> None:
    workers = server.children()
    async with AsyncExitStack() as stack:
        load = Load(server)
        await load.run(stack, 300)
        begun = time.monotonic()
        server.terminate()
        code = await server.exit_code()
        took_seconds = time.monotonic() - begun
        codes = await load.end()
    assert code == 0
    assert set(codes) == {OK, UNAVAILABLE}
    assert took_seconds < DRAIN_SECONDS + 5
    assert not server.socket.exists()
    assert len(workers) == 2
    assert await gone(workers)
    assert "Traceback" not in server.said()


async def test_health_says_not_serving_first_and_whoever_watches_sees_it(server: ServerProcess) -> None:
    async with server.channel() as channel, AsyncExitStack() as stack:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        seen = [(await watch.read()).status]
        load = Load(server)
        await load.run(stack, 50)
        server.terminate()
        seen.append((await watch.read()).status)
        answered = sum(load.codes.values())
        assert await server.exit_code() == 0
        codes = await load.end()
    assert seen == [health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING]
    assert answered < codes.total()


async def test_a_second_signal_ends_the_drain(tmp_path: Path, roots: dict[str, Path]) -> None:
    async with server_process(tmp_path, roots, BUDGET_FLAG, "--set=calls.drain_seconds=600") as server:
        # A snapshot stream that nobody reads keeps the drain waiting.
        async with server.channel() as channel:
            stub = SessionReferenceServiceStub(channel)
            stalled = await never_read(stub)
            workers = server.children()
            server.terminate()
            while await code_of_info(stub) == OK:
                pass
            assert server.process.poll() is None
            server.terminate()
            assert await server.exit_code() == 0
            assert await stalled.code() == UNAVAILABLE
        assert not server.socket.exists()
        assert await gone(workers)


async def test_a_stream_nobody_reads_does_not_hold_the_end_up(server: ServerProcess) -> None:
    async with server.channel() as channel:
        stalled = await never_read(SessionReferenceServiceStub(channel))
        begun = time.monotonic()
        server.terminate()
        assert await server.exit_code() == 0
        assert time.monotonic() - begun < DRAIN_SECONDS + 5
        assert await stalled.code() == UNAVAILABLE


async def test_a_killed_server_leaves_no_worker_and_the_next_one_starts_at_once(
    tmp_path: Path, roots: dict[str, Path], server: ServerProcess
) -> None:
    workers = server.children()
    async with AsyncExitStack() as stack:
        load = Load(server, callers=20)
        await load.run(stack, 50)
        server.process.kill()
        assert await server.exit_code() == -signal.SIGKILL
        assert set(await load.end()) == {OK, UNAVAILABLE}
    assert await gone(workers)
    assert server.socket.exists()
    async with server_process(tmp_path, roots, *FLAGS) as successor, successor.channel() as channel:
        await SessionReferenceServiceStub(channel).GetServiceInfo(GetServiceInfoRequest(), timeout=10)


async def test_a_second_server_on_the_same_socket_is_refused_and_the_first_goes_on(
    tmp_path: Path, roots: dict[str, Path], server: ServerProcess
) -> None:
    second = await asyncio.to_thread(subprocess.run, command(tmp_path, roots), check=False, capture_output=True, encoding="utf-8")
    assert second.returncode == 2
    assert second.stderr.splitlines()[-1].startswith("sessionref: listen.addresses: a server already listens on ")
    async with server.channel() as channel:
        assert await code_of_info(SessionReferenceServiceStub(channel)) == OK


def test_a_signal_during_the_first_scan_ends_the_server_with_exit_code_0(tmp_path: Path, roots: dict[str, Path]) -> None:
    with subprocess.Popen(command(tmp_path, roots), stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stderr is not None
        process.stderr.readline()  # it says that it serves, and begins to scan
        process.terminate()
        assert process.wait(20) == 0
        assert "Traceback" not in process.stderr.read()


WITH_A_STUCK_THREAD = """
import asyncio, sys, threading
from concurrent.futures import ThreadPoolExecutor
from sessionref_server import bootstrap, config

ThreadPoolExecutor(1).submit(threading.Event().wait)
flags = dict(argument.split("=") for argument in sys.argv[1:])
server = bootstrap.serve(config.load_config(flags=flags)[0], announce=lambda _: print("ready", flush=True))
sys.exit(asyncio.run(server))
"""


def test_a_thread_that_waits_for_storage_for_ever_does_not_keep_the_process(tmp_path: Path) -> None:
    flags = [
        f"listen.addresses=unix:{tmp_path}/s",
        f"cache.folder={tmp_path}",
        f"spill.folder={tmp_path}",
        "calls.drain_seconds=0",
    ]
    flags += [f"sources.{name}.enabled=no" for name in SOURCE_NAMES]
    with subprocess.Popen([sys.executable, "-c", WITH_A_STUCK_THREAD, *flags], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.wait(20) == 0


async def code_of_info(stub: SessionReferenceServiceStub) -> grpc.StatusCode:
    try:
        await stub.GetServiceInfo(GetServiceInfoRequest(), timeout=10)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return OK


async def never_read(stub: SessionReferenceServiceStub) -> grpc.aio.UnaryStreamCall:
    """A stream with more to send than fits anywhere, of which only the first piece is read."""
    references = [reference_pb2.SessionReferenceInput(session_id=LONG)]
    request = PrepareRequest(target=reference_pb2.Target(session_id="target"), references=references)
    saved = (await stub.Prepare(request, timeout=60)).additional_context.omissions[0].saved
    stream = stub.ReadSnapshot(ReadSnapshotRequest(locator=saved.locator, owner_session_id="target"))
    await stream.read()
    return stream
