"""What every gRPC tool asks a server for, and the parts of the contract that this release does not serve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import ModuleType

import grpc
import pytest
import sessionref_server
from fakes.shelf_session_source import ShelfSessionSource
from fakes.window_catalogue import WindowCatalogue
from grpc_channelz.v1 import channelz_pb2, channelz_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from rpc.failures import Failure, failure_in, failure_of
from rpc.served import Serve, Served
from rpc.vector_rig import VectorRig, in_module_loop
from sessionref.v1 import candidate_pb2, session_reference_service_pb2, session_store_service_pb2
from sessionref.v1.session_reference_service_pb2 import CompleteMentionsRequest, GetServiceInfoRequest, SearchCandidatesRequest
from sessionref_server.domain.session import SessionHead, SessionId

REFERENCE = "sessionref.v1.SessionReferenceService"
STORE = "sessionref.v1.SessionStoreService"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
LIST_SERVICES = reflection_pb2.ServerReflectionRequest(list_services="")
NOT_SERVED = Failure(code=grpc.StatusCode.UNIMPLEMENTED, reason="NOT_SERVED", metadata={})


def shelf(sessions: int = 3) -> ShelfSessionSource:
    source = ShelfSessionSource()
    source.fill(SessionHead(session_id=SessionId(f"s{number}"), source="dsh", created_at_ms=number) for number in range(sessions))
    return source


@in_module_loop
@pytest.mark.parametrize("service", ["", REFERENCE, STORE])
async def test_health_of_every_service_is_serving(rig: VectorRig, service: str) -> None:
    stub = health_pb2_grpc.HealthStub(rig.served.channel)
    assert (await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)).status == SERVING


@in_module_loop
async def test_health_of_an_unknown_service_is_not_found(rig: VectorRig) -> None:
    stub = health_pb2_grpc.HealthStub(rig.served.channel)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.Check(health_pb2.HealthCheckRequest(service="nobody"), timeout=10)
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND


async def test_watcher_learns_of_the_shutdown_before_calls_end(serve: Serve) -> None:
    async with serve(sources=[shelf()], models=WindowCatalogue()) as served:
        watch = health_pb2_grpc.HealthStub(served.channel).Watch(health_pb2.HealthCheckRequest(service=REFERENCE), timeout=20)
        first = await watch.read()
        stopping = asyncio.create_task(served.application.server.stop(1))
        second = await watch.read()
        assert (first.status, second.status) == (SERVING, NOT_SERVING)
        await stopping


async def reflected(
    served: Served, version: str, request: reflection_pb2.ServerReflectionRequest
) -> reflection_pb2.ServerReflectionResponse:
    method = served.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )

    async def ask() -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
        yield request

    (answer,) = [answer async for answer in method(ask(), timeout=10)]
    return answer


@in_module_loop
@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_the_services_and_describes_them(rig: VectorRig, version: str) -> None:
    listed = await reflected(rig.served, version, LIST_SERVICES)
    names = {service.name for service in listed.list_services_response.service}
    assert {REFERENCE, STORE, "grpc.health.v1.Health"} <= names
    described = await reflected(rig.served, version, reflection_pb2.ServerReflectionRequest(file_containing_symbol=REFERENCE))
    assert len(described.file_descriptor_response.file_descriptor_proto) >= 1


@in_module_loop
async def test_channelz_shows_the_server(rig: VectorRig) -> None:
    stub = channelz_pb2_grpc.ChannelzStub(rig.served.channel)
    servers = (await stub.GetServers(channelz_pb2.GetServersRequest(), timeout=10)).server
    assert len(servers) >= 1


async def test_reflection_and_channelz_are_off_when_configured_so(serve: Serve) -> None:
    async with serve(sources=[shelf()], models=WindowCatalogue(), listen__reflection="false") as served:
        for version in ("v1", "v1alpha"):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await reflected(served, version, LIST_SERVICES)
            assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channelz_pb2_grpc.ChannelzStub(served.channel).GetServers(channelz_pb2.GetServersRequest(), timeout=10)
        assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
        assert await served.listed_ids() == ["s2", "s1", "s0"]


def store_methods() -> list[tuple[str, type]]:
    service = session_store_service_pb2.DESCRIPTOR.services_by_name["SessionStoreService"]
    return [(method.name, message_class(session_store_service_pb2, method.input_type.name)) for method in service.methods]


def message_class(module: ModuleType, name: str) -> type:
    return getattr(module, name)


@in_module_loop
@pytest.mark.parametrize(("name", "request_type"), store_methods())
async def test_session_store_is_not_served_yet(rig: VectorRig, name: str, request_type: Callable[[], object]) -> None:
    method = rig.served.channel.unary_unary(
        f"/{STORE}/{name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=lambda content: content,
    )
    assert await failure_of(method(request_type(), timeout=10)) == NOT_SERVED


@in_module_loop
@pytest.mark.parametrize("keystrokes", [0, 1])
async def test_completion_is_not_served_yet(rig: VectorRig, keystrokes: int) -> None:
    async def typed() -> AsyncIterator[CompleteMentionsRequest]:
        for sequence in range(keystrokes):
            yield CompleteMentionsRequest(sequence=sequence, query="x")

    assert await failure_of(rig.served.stub.CompleteMentions(typed(), timeout=10)) == NOT_SERVED


@in_module_loop
@pytest.mark.parametrize(
    ("domains", "kinds"),
    [
        ([], {"files", "sessions"}),
        ([0], {"files", "sessions"}),
        ([1, 2], {"files", "sessions"}),
        ([1], {"files"}),
        ([2], {"sessions"}),
        ([2, 2], {"sessions"}),
        ([99], {"files", "sessions"}),
    ],
)
async def test_files_are_not_served_yet_and_hide_no_session(rig: VectorRig, domains: list[int], kinds: set[str]) -> None:
    rig.source.fill([SessionHead(session_id=SessionId("s"), source="dsh")])
    call = rig.served.stub.SearchCandidates(SearchCandidatesRequest(domains=domains), timeout=10)
    last = {batch.WhichOneof("candidates"): batch async for batch in call}
    assert set(last) == kinds
    assert not any(batch.partial for batch in last.values())
    if "files" in last:
        assert failure_in(last["files"].status) == NOT_SERVED
        assert len(last["files"].files.candidates) == 0
    if "sessions" in last:
        assert not last["sessions"].HasField("status")
        assert [candidate.session_id for candidate in last["sessions"].sessions.candidates] == ["s"]


async def test_service_says_what_it_is_and_what_its_limits_are(serve: Serve) -> None:
    flags = {"prepare__max_references": "2", "prepare__max_reference_bytes": "5000", "spill__expiry_days": "1.5"}
    async with serve(sources=[shelf()], models=WindowCatalogue(), calls__max_seconds="7.5", **flags) as served:
        info = await served.stub.GetServiceInfo(GetServiceInfoRequest(), timeout=10)
        assert info == session_reference_service_pb2.GetServiceInfoResponse(
            version=sessionref_server.__version__,
            limits=session_reference_service_pb2.ServiceLimits(
                maximum_references=2,
                maximum_reference_bytes=5000,
                reference_context_fraction=0.2,
                default_session_candidates=50,
                maximum_candidates=1000,
                maximum_query_bytes=1024,
                maximum_request_bytes=4 * 1024 * 1024,
                maximum_concurrent_prepares=8,
                maximum_call_duration={"seconds": 7, "nanos": 500_000_000},
                snapshot_lifetime={"seconds": 129_600},
            ),
            sources=[candidate_pb2.SourceStatus(source="dsh", ready=True, listed_sessions=3)],
        )


async def test_limits_that_follow_the_model_and_storage_that_is_off_are_absent(serve: Serve) -> None:
    async with serve(sources=[shelf()], models=WindowCatalogue(), spill__enabled="false") as served:
        limits = (await served.stub.GetServiceInfo(GetServiceInfoRequest(), timeout=10)).limits
        assert not limits.HasField("maximum_reference_bytes")
        assert not limits.HasField("snapshot_lifetime")


async def test_source_that_cannot_be_read_does_not_hide_the_others(serve: Serve, tmp_path: object) -> None:
    async with serve({"dsh": tmp_path, "codex": f"{tmp_path}/nowhere"}) as served:
        batch = await served.search()
        assert {status.source: status.failure for status in batch.source_statuses} == {
            "dsh": "",
            "codex": "folder does not exist",
        }
