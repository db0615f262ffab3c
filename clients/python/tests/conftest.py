"""A real server on a real socket that answers what a test tells it to, and both clients behind one face."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import aio
from sessionref.v1.session_reference_service_pb2_grpc import add_SessionReferenceServiceServicer_to_server
from sessionref_client import AioClient, SyncClient, connect, connect_aio
from sessionref_client.address import grpc_target
from sessionref_client.connection import MAXIMUM_RECEIVE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from google.protobuf.message import Message

REQUEST_ID = "made-by-the-server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """How a call is to fail. Without a reason there are no details, as when gRPC or a proxy answers."""

    code: grpc.StatusCode
    reason: str = ""
    message: str = "what went wrong"
    metadata: dict[str, str] | None = None
    domain: str = "sessionref.v1"
    retry_after_seconds: float | None = None

    def status(self) -> Status:
        status = Status(code=self.code.value[0], message=self.message)
        if self.reason:
            status.details.add().Pack(ErrorInfo(reason=self.reason, domain=self.domain, metadata=self.metadata))
        if self.retry_after_seconds is not None:
            delay = Duration()
            delay.FromMilliseconds(round(self.retry_after_seconds * 1000))
            status.details.add().Pack(RetryInfo(retry_delay=delay))
        return status


class ScriptedService:
    """Every RPC of the service: refuse as scripted, send the answers, then end or hold the call until it is cancelled."""

    def __init__(self) -> None:
        self.answers: list[Message] = []
        self.refusals: list[Refusal] = []
        self.holds = False
        self.requests: list[Any] = []
        self.metadata: dict[str, str] = {}
        self.time_remaining_seconds: float | None = None
        self.entered = asyncio.Event()
        self.left = asyncio.Event()

    async def _enter(self, request: Message, context: aio.ServicerContext) -> None:
        self.requests.append(request)
        self.metadata = dict(context.invocation_metadata())
        self.time_remaining_seconds = context.time_remaining()
        self.entered.set()
        if self.refusals:
            refusal = self.refusals.pop(0)
            details = (("grpc-status-details-bin", refusal.status().SerializeToString()),) if refusal.reason else ()
            await context.abort(refusal.code, refusal.message, (*details, ("x-request-id", REQUEST_ID)))

    async def _leave(self) -> None:
        try:
            if self.holds:
                await asyncio.Event().wait()
        finally:
            self.left.set()

    async def _unary(self, request: Message, context: aio.ServicerContext) -> Message:
        await self._enter(request, context)
        await self._leave()
        return self.answers[0]

    async def _stream(self, request: Message, context: aio.ServicerContext) -> None:
        await self._enter(request, context)
        for answer in self.answers:
            await context.write(answer)
        await self._leave()

    SearchCandidates = ReadSnapshot = _stream
    Prepare = ParseMentions = GetServiceInfo = _unary
    CompleteMentions = None


class Caller:
    """One of the two clients. The blocking one runs in a thread, since its server is on this loop."""

    def __init__(self, client: AioClient | SyncClient) -> None:
        self.client = client
        self._kept: list[object] = []  # what is collected as garbage cancels its call even when nobody else does

    async def answer(self, method: str, *args: object, **options: object) -> Any:  # noqa: ANN401 - whatever the method gives
        bound = getattr(self.client, method)
        if isinstance(self.client, AioClient):
            return await bound(*args, **options)
        return await asyncio.to_thread(bound, *args, **options)

    async def stream(self, method: str, *args: object, count: int | None = None, **options: object) -> list[Any]:
        """All values of a stream, or the first ``count``, after which the block is left."""
        opened = getattr(self.client, method)(*args, **options)
        if isinstance(self.client, SyncClient):
            return await asyncio.to_thread(self._taken, opened, count)
        found: list[Any] = []
        async with opened as values:
            self._kept.append(values)
            async for value in values:
                found.append(value)
                if len(found) == count:
                    break
        return found

    def _taken(self, opened: Any, count: int | None) -> list[Any]:  # noqa: ANN401 - a context manager of any stream
        found: list[Any] = []
        with opened as values:
            self._kept.append(values)
            for value in values:
                found.append(value)
                if len(found) == count:
                    break
        return found

    async def close(self) -> None:
        if isinstance(self.client, AioClient):
            await self.client.close()
        else:
            self.client.close()


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
def refusal() -> type[Refusal]:
    return Refusal


@pytest.fixture(params=["unix", "tcp"])
async def address(request: pytest.FixtureRequest, service: ScriptedService) -> AsyncIterator[str]:
    """Where the scripted service listens. The path of the Unix socket needs quoting in a gRPC name."""
    server = aio.server(options=[("grpc.max_receive_message_length", MAXIMUM_RECEIVE_BYTES)])
    add_SessionReferenceServiceServicer_to_server(service, server)
    with tempfile.TemporaryDirectory(prefix="a b%20") as folder:
        unix = f"unix:{Path(folder) / 'socket'}"
        port = server.add_insecure_port("127.0.0.1:0" if request.param == "tcp" else grpc_target(unix))
        await server.start()
        yield f"127.0.0.1:{port}" if request.param == "tcp" else unix
        await server.stop(None)


@pytest.fixture(params=["sync", "aio"])
async def make_caller(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., Caller]]:
    """Makes callers with the arguments of ``connect``, and closes them."""
    callers: list[Caller] = []

    def make(*args: Any, **options: Any) -> Caller:  # noqa: ANN401 - those of connect
        callers.append(Caller((connect if request.param == "sync" else connect_aio)(*args, **options)))
        return callers[-1]

    yield make
    for caller in callers:
        await caller.close()


@pytest.fixture
async def caller(make_caller: Callable[..., Caller], address: str) -> Caller:
    return make_caller(address)


@pytest.fixture
async def aio_caller(address: str) -> AsyncIterator[Caller]:
    async with connect_aio(address) as client:
        yield Caller(client)
