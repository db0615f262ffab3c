"""The gRPC server: services, health, reflection, limits, and a shutdown no client mistakes for its own doing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from grpc_channelz.v1 import channelz
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2
from sessionref.v1 import session_reference_service_pb2 as reference_pb2
from sessionref.v1 import session_store_service_pb2 as store_pb2
from sessionref.v1.session_reference_service_pb2_grpc import add_SessionReferenceServiceServicer_to_server
from sessionref.v1.session_store_service_pb2_grpc import add_SessionStoreServiceServicer_to_server

from sessionref_server.domain.limits import MAX_REQUEST_BYTES
from sessionref_server.wire.guard import Calls
from sessionref_server.wire.hang_up import hang_up
from sessionref_server.wire.listen import Listener, make_room
from sessionref_server.wire.malformed import TolerantHandlers
from sessionref_server.wire.reference_service import ReferenceService
from sessionref_server.wire.store_service import StoreService

SERVICE_NAMES = (
    reference_pb2.DESCRIPTOR.services_by_name["SessionReferenceService"].full_name,
    store_pb2.DESCRIPTOR.services_by_name["SessionStoreService"].full_name,
)
_REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"

_health_aio: Any = vars(health)["aio"]  # the stubs of these two packages leave the asyncio half out
_reflection_aio: Any = vars(reflection)["aio"]

_FAREWELL_SECONDS = 0.1
"""Last answers get out in this time, and callers who are still busy here are told to go elsewhere."""

_MINUTE_MS = 60_000
_AGE_GRACE_MS = 5_000
"""How much longer than a call may take the calls of an aged connection are left alone."""
OPTIONS: Sequence[tuple[str, Any]] = (
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_send_message_length", 16 * MAX_REQUEST_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", 100),
    ("grpc.max_connection_idle_ms", 10 * _MINUTE_MS),
    # What a caller that never reads was sent stays in memory as long as its connection.
    ("grpc.max_connection_age_ms", 30 * _MINUTE_MS),
    ("grpc.keepalive_time_ms", 2 * _MINUTE_MS),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.so_reuseport", 0),
)


class _WithoutRegisteredMethods:
    """A server to which generated code can add handlers by name only.

    Generated code registers each method twice. grpc.aio then waits for the next call of every registered method apart, and takes
    up and drops all these waits again at every call: with the 15 methods here 70 us, a fifth of an empty call.
    """

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Handlers found by name at each call."""
        self._server.add_generic_rpc_handlers(tuple(map(TolerantHandlers, handlers)))

    def add_registered_method_handlers(self, service_name: str, handlers: Any) -> None:  # noqa: ANN401
        """The same handlers once more; not wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server."""

    grpc_server: grpc.aio.Server
    health: Any
    """The health servicer of grpcio-health-checking."""
    calls: Calls
    addresses: tuple[str, ...]
    """Where it really listens (a port 0 is filled in)."""

    async def stop(self, drain_seconds: float) -> None:
        """Say NOT_SERVING, refuse new calls, let running ones finish for a while, end the rest as UNAVAILABLE, stop."""
        await self.health.enter_graceful_shutdown()
        await self.calls.drain(drain_seconds)
        await asyncio.sleep(_FAREWELL_SECONDS)
        await self.close()

    async def close(self) -> None:
        """Stop now. What is still under way is UNAVAILABLE to its callers. Stopping again does nothing."""
        hang_up(self.addresses)
        await self.grpc_server.stop(0)


async def start_server(
    reference: ReferenceService, listeners: Sequence[Listener], *, calls: Calls, with_reflection: bool
) -> Server:
    """Bind and start.

    Raises:
        InvalidConfigError: an address cannot be used.
    """
    grace_ms = int(calls.max_seconds * 1000) + _AGE_GRACE_MS
    server = grpc.aio.server(options=(*OPTIONS, ("grpc.max_connection_age_grace_ms", grace_ms)))
    plain: Any = _WithoutRegisteredMethods(server)
    plain.add_generic_rpc_handlers((_own_handlers(reference),))
    add_SessionReferenceServiceServicer_to_server(reference, plain)
    add_SessionStoreServiceServicer_to_server(StoreService(calls), plain)
    servicer = _health_aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, plain)  # pyright: ignore[reportUnknownMemberType]
    if with_reflection:
        _add_reflection(plain)
        channelz.add_channelz_servicer(plain)  # pyright: ignore[reportUnknownMemberType]
    addresses = tuple(_bind(server, listener) for listener in listeners)
    await server.start()
    for name in ("", *SERVICE_NAMES):
        await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    return Server(grpc_server=server, health=servicer, calls=calls, addresses=addresses)


def _own_handlers(reference: ReferenceService) -> grpc.GenericRpcHandler:
    """Handlers that differ from the generated ones of their names. Added first, they go before those.

    SearchCandidates gives bytes, and its last batch as the result of a unary call, on the wire the end of a stream: batch and
    status then travel together, which saves a tenth of a call. Prepare is a stream of one response, on the wire a unary call:
    this way the method sees whether its answer could be sent.
    """
    search: Any = grpc.unary_unary_rpc_method_handler(  # pyright: ignore[reportUnknownVariableType] - no serializer, no type
        reference.SearchCandidates, request_deserializer=reference_pb2.SearchCandidatesRequest.FromString
    )
    prepare: Any = grpc.unary_stream_rpc_method_handler(
        reference.Prepare,
        request_deserializer=reference_pb2.PrepareRequest.FromString,
        response_serializer=reference_pb2.PrepareResponse.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(SERVICE_NAMES[0], {"SearchCandidates": search, "Prepare": prepare})


def _bind(server: grpc.aio.Server, listener: Listener) -> str:
    if listener.socket_path is None:
        port = server.add_insecure_port(listener.address)
        return f"{listener.address.rpartition(':')[0]}:{port}"
    make_room(listener.socket_path)
    previous = os.umask(0o177)
    try:
        server.add_insecure_port(listener.address)
    finally:
        os.umask(previous)
    return listener.address


def _add_reflection(server: Any) -> None:  # noqa: ANN401 - whatever handlers can be added to
    names = (*SERVICE_NAMES, "grpc.health.v1.Health", reflection.SERVICE_NAME, _REFLECTION_V1)
    reflection.enable_server_reflection(names, server)
    # The two versions of the protocol have the same messages; only the service's name differs.
    servicer = _reflection_aio.ReflectionServicer(names)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_REFLECTION_V1, {"ServerReflectionInfo": handler}),))
