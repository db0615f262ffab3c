"""The blocking client. Safe to share between threads."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import grpc
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
    from collections.abc import Callable, Generator, Iterable, Iterator
    from types import TracebackType
    from typing import Unpack

    from sessionref_client.candidate import SearchBatch, SessionCandidate
    from sessionref_client.content import ContentBlock
    from sessionref_client.reference import ParsedText, Prepared, SessionReference, SnapshotChunk, Target
    from sessionref_client.service import ServiceInfo

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Value = TypeVar("_Value")
_Received_co = TypeVar("_Received_co", covariant=True)


class _StreamCall(Protocol[_Received_co]):
    def __iter__(self) -> Iterator[_Received_co]: ...
    def cancel(self) -> bool: ...


def connect(
    address: str | None = None,
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    tls: ClientTls | None = None,
) -> SyncClient:
    """A client of the server at an address: ``unix:/path``, ``unix:///path``, ``host:port``, or the default address.

    It connects with the first call. ``timeout_seconds`` is the deadline of each call that does not bring its own.

    Raises:
        ValueError: the address or the timeout makes no sense.
        PermissionError: the directory of the default socket belongs to somebody else.
    """
    settings = ClientSettings.of(address, timeout_seconds)
    if tls is None:
        return SyncClient(grpc.insecure_channel(settings.target, CHANNEL_OPTIONS), settings)
    return SyncClient(grpc.secure_channel(settings.target, tls.credentials(), CHANNEL_OPTIONS), settings)


class SyncClient:
    """Calls a sessionref server, blocking. Every method may raise ``SessionReferenceError``. Close it, or use it in ``with``."""

    def __init__(self, channel: grpc.Channel, settings: ClientSettings) -> None:
        self._channel = channel
        self._settings = settings
        self._stub = SessionReferenceServiceStub(channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Cancels what is running and disconnects."""
        self._channel.close()

    @contextmanager
    def search(self, query: str = "", **options: Unpack[SearchOptions]) -> Generator[Iterator[SearchBatch]]:
        """Ranked batches as they come; a later one of a domain replaces the earlier. Leaving the block ends the search."""
        request = encode.search_request(query, options)
        call = self._stub.SearchCandidates(request, **self._settings.arguments(options, SearchOptions))
        with self._ended(call):
            yield self._values(call, decode.search_batch)

    def search_sessions(self, query: str = "", **options: Unpack[SessionSearchOptions]) -> list[SessionCandidate]:
        """The sessions found once the search is complete, best first. A domain that failed is raised."""
        last = None
        with self.search(query, domains=(Domain.SESSIONS,), **options) as batches:
            for batch in batches:
                last = batch
        return decode.sessions_of(last)

    def prepare(
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
        return decode.prepared(self._answer(self._stub.Prepare, request, options))

    def parse_mentions(self, texts: Iterable[str], **options: Unpack[CallOptions]) -> list[ParsedText]:
        """The mentions in each text, in order."""
        request = service_message.ParseMentionsRequest(texts=texts)
        return [decode.parsed_text(each) for each in self._answer(self._stub.ParseMentions, request, options).texts]

    @contextmanager
    def read_snapshot(
        self,
        locator: str,
        owner_session_id: str,
        **options: Unpack[SnapshotOptions],
    ) -> Generator[Iterator[SnapshotChunk]]:
        """A saved transcript in chunks, from an offset. Leaving the block ends the reading."""
        request = encode.snapshot_request(locator, owner_session_id, options)
        call = self._stub.ReadSnapshot(request, **self._settings.arguments(options, SnapshotOptions))
        with self._ended(call):
            yield self._values(call, decode.snapshot_chunk)

    def read_snapshot_text(self, locator: str, owner_session_id: str, **options: Unpack[CallOptions]) -> str:
        """A saved transcript as a whole."""
        with self.read_snapshot(locator, owner_session_id, **options) as chunks:
            return b"".join(chunk.data for chunk in chunks).decode()

    def service_info(self, **options: Unpack[CallOptions]) -> ServiceInfo:
        """Version, limits and sources of the server."""
        request = service_message.GetServiceInfoRequest()
        return decode.service_info(self._answer(self._stub.GetServiceInfo, request, options))

    def _answer(
        self,
        method: grpc.UnaryUnaryMultiCallable[_Request, _Response],
        request: _Request,
        options: CallOptions,
    ) -> _Response:
        try:
            return method(request, **self._settings.arguments(options))
        except grpc.RpcError as error:
            raise error_from_call(error, self._settings.address) from error

    def _values(self, call: _StreamCall[_Response], decoded: Callable[[_Response], _Value]) -> Iterator[_Value]:
        try:
            for message in call:
                yield decoded(message)
        except grpc.RpcError as error:
            raise error_from_call(error, self._settings.address) from error

    @staticmethod
    @contextmanager
    def _ended(call: _StreamCall[_Response]) -> Generator[None]:
        """A stream that is dropped without a cancel goes on at the server."""
        try:
            yield
        finally:
            call.cancel()
