"""The asyncio client. It belongs to the event loop it was made in."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Self, TypeVar, cast

import grpc
from grpc import aio
from sessionref.v1 import session_reference_service_pb2 as service_message
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub

from sessionref_client import decode, encode
from sessionref_client.calls import (
    DEFAULT_TIMEOUT_SECONDS,
    CallOptions,
    ClientSettings,
    SearchOptions,
    SessionSearchOptions,
    SnapshotOptions,
)
from sessionref_client.candidate import Domain
from sessionref_client.connection import CHANNEL_OPTIONS, ClientTls
from sessionref_client.status import error_from_call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
    from types import TracebackType
    from typing import Unpack

    from sessionref_client.candidate import SearchBatch, SessionCandidate
    from sessionref_client.content import ContentBlock
    from sessionref_client.reference import ParsedText, Prepared, SessionReference, SnapshotChunk, Target
    from sessionref_client.service import ServiceInfo

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Value = TypeVar("_Value")


def connect_aio(
    address: str | None = None,
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    tls: ClientTls | None = None,
) -> AioClient:
    """As ``connect``, for the running event loop.

    Raises:
        ValueError: the address or the timeout makes no sense.
        PermissionError: the directory of the default socket belongs to somebody else.
        RuntimeError: no event loop is running.
    """
    asyncio.get_running_loop()  # gRPC would bind the channel to a loop that never runs
    settings = ClientSettings.of(address, timeout_seconds)
    if tls is None:
        return AioClient(aio.insecure_channel(settings.target, CHANNEL_OPTIONS), settings)
    return AioClient(aio.secure_channel(settings.target, tls.credentials(), CHANNEL_OPTIONS), settings)


class AioClient:
    """Calls a sessionref server. Every method may raise ``SessionReferenceError``. Close it, or use it in ``async with``.

    Cancelling a task cancels its call, and stays ``asyncio.CancelledError``.
    """

    def __init__(self, channel: aio.Channel, settings: ClientSettings) -> None:
        self._channel = channel
        self._settings = settings
        self._stub = SessionReferenceServiceStub(channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels what is running and disconnects."""
        await self._channel.close()

    @asynccontextmanager
    async def search(self, query: str = "", **options: Unpack[SearchOptions]) -> AsyncGenerator[AsyncIterator[SearchBatch]]:
        """Ranked batches as they come; a later one of a domain replaces the earlier. Leaving the block ends the search."""
        request = encode.search_request(query, options)
        call = self._stub.SearchCandidates(request, **self._settings.arguments(options, SearchOptions))
        async with self._values(call, decode.search_batch) as batches:
            yield batches

    async def search_sessions(self, query: str = "", **options: Unpack[SessionSearchOptions]) -> list[SessionCandidate]:
        """The sessions found once the search is complete, best first. A domain that failed is raised."""
        last = None
        async with self.search(query, domains=(Domain.SESSIONS,), **options) as batches:
            async for batch in batches:
                last = batch
        return decode.sessions_of(last)

    async def prepare(
        self,
        content: str | Iterable[str | ContentBlock],
        *,
        target: Target,
        references: Iterable[SessionReference] = (),
        parse_mentions: bool = False,
        **options: Unpack[CallOptions],
    ) -> Prepared:
        """The content made readable, and the context of the sessions it refers to.

        ``references`` are those the host recognised; with ``parse_mentions`` the mentions in the content's texts follow them.
        """
        request = encode.prepare_request(content, target, references, parse_mentions=parse_mentions)
        return decode.prepared(await self._answer(self._stub.Prepare, request, options))

    async def parse_mentions(self, texts: Iterable[str], **options: Unpack[CallOptions]) -> list[ParsedText]:
        """The mentions in each text, in order."""
        request = service_message.ParseMentionsRequest(texts=texts)
        return [decode.parsed_text(each) for each in (await self._answer(self._stub.ParseMentions, request, options)).texts]

    @asynccontextmanager
    async def read_snapshot(
        self,
        locator: str,
        owner_session_id: str,
        **options: Unpack[SnapshotOptions],
    ) -> AsyncGenerator[AsyncIterator[SnapshotChunk]]:
        """A saved transcript in chunks, from an offset. Leaving the block ends the reading."""
        request = encode.snapshot_request(locator, owner_session_id, options)
        call = self._stub.ReadSnapshot(request, **self._settings.arguments(options, SnapshotOptions))
        async with self._values(call, decode.snapshot_chunk) as chunks:
            yield chunks

    async def read_snapshot_text(self, locator: str, owner_session_id: str, **options: Unpack[CallOptions]) -> str:
        """A saved transcript as a whole."""
        async with self.read_snapshot(locator, owner_session_id, **options) as chunks:
            return b"".join([chunk.data async for chunk in chunks]).decode()

    async def service_info(self, **options: Unpack[CallOptions]) -> ServiceInfo:
        """Version, limits and sources of the server."""
        request = service_message.GetServiceInfoRequest()
        return decode.service_info(await self._answer(self._stub.GetServiceInfo, request, options))

    async def _answer(
        self,
        method: aio.UnaryUnaryMultiCallable[_Request, _Response],
        request: _Request,
        options: CallOptions,
    ) -> _Response:
        try:
            return await method(request, **self._settings.arguments(options))
        except grpc.RpcError as error:
            raise error_from_call(error, self._settings.address) from error

    @asynccontextmanager
    async def _values(
        self,
        call: aio.UnaryStreamCall[_Request, _Response],
        decoded: Callable[[_Response], _Value],
    ) -> AsyncGenerator[AsyncIterator[_Value]]:
        """What a stream brings. One that is dropped without a cancel goes on at the server."""
        try:
            async with aclosing(self._received(call, decoded)) as values:
                yield values
        finally:
            call.cancel()

    async def _received(
        self,
        call: aio.UnaryStreamCall[_Request, _Response],
        decoded: Callable[[_Response], _Value],
    ) -> AsyncGenerator[_Value]:
        try:
            while (message := await call.read()) is not aio.EOF:
                yield decoded(cast("_Response", message))
        except grpc.RpcError as error:
            raise error_from_call(error, self._settings.address) from error
