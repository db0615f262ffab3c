"""How each refusal is really met by a client, and what it costs the server."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from fakes.shelf_session_source import ShelfSessionSource
from fakes.window_catalogue import WindowCatalogue
from rpc.failures import REQUEST_ID_KEY, Failure, failure_of, refusal_of
from rpc.served import Serve
from rpc.vector_rig import VectorRig, in_module_loop
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import (
    GetServiceInfoRequest,
    ParseMentionsRequest,
    PrepareRequest,
    ReadSnapshotRequest,
    SearchCandidatesRequest,
)
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.session import ModelRoute, SessionHead, SessionId
from sessionref_server.service.prepare import PrepareLimits
from sessionref_server.telemetry import LOGGER

SOURCE = SessionId("source")


def capture(text: str = "hello") -> Capture:
    return Capture(session_id=SOURCE, cwd=None, through_seq=1, conversation=Conversation.of([Message(Role.USER, text)]))


def prepare_request(*session_ids: str, target: str = "me", **fields: object) -> PrepareRequest:
    references = [reference_pb2.SessionReferenceInput(session_id=session_id) for session_id in session_ids]
    return PrepareRequest(target=reference_pb2.Target(session_id=target), references=references, **fields)


def text_block(text: str) -> reference_pb2.ContentBlock:
    return reference_pb2.ContentBlock(text=reference_pb2.TextBlock(text=text))


def invalid(reason: str, field: str, index: int | None = None) -> Failure:
    metadata = {"field": field} if index is None else {"field": field, "index": str(index)}
    path = field if index is None else f"{field}[{index}]"
    return Failure(code=grpc.StatusCode.INVALID_ARGUMENT, reason=reason, metadata=metadata, fields=[path])


REFERENCE = "SESSION_REFERENCE_INVALID_REFERENCE"
REQUEST = "INVALID_REQUEST"


@in_module_loop
@pytest.mark.parametrize(
    ("request_", "failure"),
    [
        pytest.param(prepare_request(SOURCE, target=""), invalid(REQUEST, "target.session_id"), id="no target"),
        pytest.param(prepare_request(SOURCE, ""), invalid(REFERENCE, "references", 1), id="empty reference"),
        pytest.param(
            prepare_request(content=[text_block("fine"), text_block("@[x](dsh-session:%)")], parse_mentions=True),
            invalid(REFERENCE, "content", 1),
            id="mention that does not decode",
        ),
        pytest.param(
            prepare_request(content=[text_block("fine"), reference_pb2.ContentBlock()]),
            invalid(REQUEST, "content", 1),
            id="content block without a kind",
        ),
        pytest.param(
            PrepareRequest(target=reference_pb2.Target(session_id="me", route=reference_pb2.ModelRoute(context_window_tokens=0))),
            invalid(REFERENCE, "target.route.context_window_tokens"),
            id="window of no tokens",
        ),
        pytest.param(
            PrepareRequest(
                target=reference_pb2.Target(session_id="me", route=reference_pb2.ModelRoute(context_window_tokens=-1))
            ),
            invalid(REFERENCE, "target.route.context_window_tokens"),
            id="negative window",
        ),
    ],
)
async def test_malformed_prepare_is_refused_by_the_name_of_its_field(
    rig: VectorRig, request_: PrepareRequest, failure: Failure
) -> None:
    assert await failure_of(rig.served.stub.Prepare(request_, timeout=10)) == failure


@in_module_loop
@pytest.mark.parametrize(
    ("request_", "failure"),
    [
        pytest.param(SearchCandidatesRequest(limit=0), invalid(REFERENCE, "limit"), id="limit of zero"),
        pytest.param(SearchCandidatesRequest(limit=-5), invalid(REFERENCE, "limit"), id="negative limit"),
        pytest.param(SearchCandidatesRequest(limit=0, domains=[1]), invalid(REFERENCE, "limit"), id="limit of zero for files"),
        pytest.param(SearchCandidatesRequest(query="x" * 1025), invalid(REQUEST, "query"), id="query over a kilobyte"),
        pytest.param(SearchCandidatesRequest(query="é" * 513), invalid(REQUEST, "query"), id="query over a kilobyte as UTF-8"),
        pytest.param(SearchCandidatesRequest(query="x" * 2**20), invalid(REQUEST, "query"), id="query of a megabyte"),
        pytest.param(
            SearchCandidatesRequest(query="x" * 2**20, domains=[1]), invalid(REQUEST, "query"), id="query of a megabyte for files"
        ),
        pytest.param(SearchCandidatesRequest(sources=["dsh", "nobody"]), invalid(REQUEST, "sources"), id="unknown source"),
        pytest.param(
            SearchCandidatesRequest(sources=["nobody"], domains=[1]), invalid(REQUEST, "sources"), id="unknown source for files"
        ),
        pytest.param(SearchCandidatesRequest(subagents=7), invalid(REQUEST, "subagents"), id="unknown visibility"),
    ],
)
async def test_malformed_search_is_refused_by_the_name_of_its_field(
    rig: VectorRig, request_: SearchCandidatesRequest, failure: Failure
) -> None:
    assert await failure_of(rig.served.stub.SearchCandidates(request_, timeout=10)) == failure


@in_module_loop
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"offset_bytes": -1}, "offset_bytes"),
        ({"chunk_bytes": 0}, "chunk_bytes"),
        ({"chunk_bytes": -1}, "chunk_bytes"),
        ({"chunk_bytes": 2**20 + 1}, "chunk_bytes"),
        ({"limit_bytes": 0}, "limit_bytes"),
        ({"limit_bytes": -1}, "limit_bytes"),
    ],
)
async def test_malformed_range_of_a_snapshot_is_refused(rig: VectorRig, fields: dict[str, int], field: str) -> None:
    request = ReadSnapshotRequest(locator="x", owner_session_id="me", **fields)
    assert await failure_of(rig.served.stub.ReadSnapshot(request, timeout=10)) == invalid(REQUEST, field)


@in_module_loop
async def test_too_many_texts_are_refused(rig: VectorRig) -> None:
    request = ParseMentionsRequest(texts=["x"] * 1001)
    assert await failure_of(rig.served.stub.ParseMentions(request, timeout=10)) == invalid(REQUEST, "texts")


@in_module_loop
@pytest.mark.parametrize("spill", [True, False], ids=["with a store", "without one"])
@pytest.mark.parametrize(
    "locator", ["", "x", "../../etc/passwd", "/etc/passwd", "spill:" + "0" * 64, "\x00", "x" * 100_000, "日本語"]
)
async def test_unknown_locator_is_not_found_whatever_it_looks_like(rig: VectorRig, locator: str, spill: bool) -> None:  # noqa: FBT001
    stub = await rig.stub(spill=spill)
    failure = await failure_of(stub.ReadSnapshot(ReadSnapshotRequest(locator=locator, owner_session_id="me"), timeout=10))
    assert failure == Failure(
        code=grpc.StatusCode.NOT_FOUND, reason="SESSION_REFERENCE_READ_FAILED", metadata={"session_id": "me"}
    )


@in_module_loop
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("@[bad](dsh-session:" + "%" * 65536 + ")", id="64 KB of no base64"),
        pytest.param("@[" + "SECRET" * 12000 + "](dsh-session:%)", id="64 KB label"),
        pytest.param("dsh-session:" + "A" * 65536, id="64 KB bare URI"),
        pytest.param("x" * 2**21 + " dsh-session:SECRET", id="after two megabytes"),
        pytest.param("@[SECRET\n\x1b[31m](dsh-session:\ud7ff)", id="control characters"),
    ],
)
async def test_malformed_mention_is_refused_without_an_echo(rig: VectorRig, text: str) -> None:
    refusal = await refusal_of(rig.served.stub.ParseMentions(ParseMentionsRequest(texts=[text]), timeout=10))
    assert refusal.failure == invalid(REFERENCE, "texts", 0)
    assert not any(echo in refusal.details for echo in (b"SECRET", b"%%", b"AAAA", b"xxxx", b"\x1b"))


@in_module_loop
async def test_request_larger_than_allowed_is_refused_and_the_server_goes_on(rig: VectorRig) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rig.served.stub.ParseMentions(ParseMentionsRequest(texts=["x" * (4 * 2**20 + 1)]), timeout=10)
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len((await rig.served.stub.ParseMentions(ParseMentionsRequest(texts=["x" * 4_000_000]), timeout=10)).texts) == 1


@in_module_loop
async def test_first_failure_in_the_order_of_work_wins(rig: VectorRig) -> None:
    rig.source.fill([])
    stub = rig.served.stub
    too_many = ["a", "b", "c", "d"]
    reasons = [
        (await failure_of(stub.Prepare(prepare_request(*ids), timeout=10))).reason
        for ids in ([*too_many, "me"], ["me", ""], ["", "me"], too_many, ["a", "a", "b", "b", "c"])
    ]
    assert reasons == [
        "SESSION_REFERENCE_SELF_REFERENCE",
        "SESSION_REFERENCE_SELF_REFERENCE",
        "SESSION_REFERENCE_INVALID_REFERENCE",
        "SESSION_REFERENCE_TOO_MANY",
        "SESSION_REFERENCE_READ_FAILED",
    ]


@in_module_loop
async def test_failing_read_names_the_first_session_in_mention_order(rig: VectorRig) -> None:
    rig.source.fill([], [capture()])
    failure = await failure_of(rig.served.stub.Prepare(prepare_request(SOURCE, "zzz", "aaa"), timeout=10))
    assert failure.metadata == {"session_id": "zzz"}


@in_module_loop
async def test_failing_catalogue_rejects_a_prepare_with_references_only(rig: VectorRig) -> None:
    rig.source.fill([], [capture()])
    rig.models.failing = True
    route = reference_pb2.ModelRoute(provider="p", model="m")
    try:
        with_reference = PrepareRequest(
            target=reference_pb2.Target(session_id="me", route=route),
            references=[reference_pb2.SessionReferenceInput(session_id=SOURCE)],
        )
        assert await failure_of(rig.served.stub.Prepare(with_reference, timeout=10)) == Failure(
            code=grpc.StatusCode.UNAVAILABLE,
            reason="MODEL_METADATA_FAILED",
            metadata={"provider": "p", "model": "m"},
            retry_after_ms=1000,
        )
        with_reference.target.route.context_window_tokens = 100_000
        assert (await rig.served.stub.Prepare(with_reference, timeout=10)).HasField("additional_context")
        without = PrepareRequest(target=with_reference.target, content=[text_block("x")])
        assert not (await rig.served.stub.Prepare(without, timeout=10)).HasField("additional_context")
        fixed = await rig.stub(limits=PrepareLimits(max_reference_bytes=1000))
        assert (await fixed.Prepare(with_reference, timeout=10)).HasField("additional_context")
    finally:
        rig.models.failing = False


@in_module_loop
async def test_route_of_the_target_s_own_log_goes_before_the_one_in_the_request(rig: VectorRig) -> None:
    own = SessionHead(session_id=SessionId("me"), source="dsh", route=ModelRoute(provider="own", model="m"))
    rig.source.fill([own], [capture()])
    rig.models.asked.clear()
    request = prepare_request(SOURCE)
    request.target.route.provider = "asked"
    await rig.served.stub.Prepare(request, timeout=10)
    rig.source.fill([], [capture()])
    await rig.served.stub.Prepare(request, timeout=10)
    assert rig.models.asked == [ModelRoute(provider="own", model="m"), ModelRoute(provider="asked")]


async def test_call_that_outlasts_the_server_s_maximum_ends_with_the_deadline_s_code(serve: Serve) -> None:
    source = ShelfSessionSource()
    source.fill([], [capture()])
    source.gate = asyncio.Event()
    async with serve(sources=[source], models=WindowCatalogue(), calls__max_seconds="0.1") as served:
        assert await failure_of(served.stub.Prepare(prepare_request(SOURCE), timeout=20)) == Failure(
            code=grpc.StatusCode.DEADLINE_EXCEEDED, reason="SESSION_REFERENCE_CANCELLED", metadata={}
        )


async def test_calls_beyond_the_limit_are_shed_with_advice_to_retry(serve: Serve) -> None:
    source = ShelfSessionSource()
    source.fill([], [capture()])
    flags = {"prepare__max_concurrent": "1", "prepare__max_queued": "0"}
    async with serve(sources=[source], models=WindowCatalogue(), **flags) as served:
        for _ in range(3):
            source.gate = asyncio.Event()
            first = served.stub.Prepare(prepare_request(SOURCE), timeout=20)
            await source.begun.get()
            assert await failure_of(served.stub.Prepare(prepare_request(SOURCE), timeout=20)) == Failure(
                code=grpc.StatusCode.RESOURCE_EXHAUSTED, reason="OVERLOADED", metadata={}, retry_after_ms=500
            )
            source.gate.set()
            assert (await first).HasField("additional_context")


@in_module_loop
@pytest.mark.parametrize("request_id", ["a", "0123456789abcdef-._XYZ", "x" * 64])
async def test_request_id_comes_back_from_every_call(rig: VectorRig, request_id: str) -> None:
    metadata = ((REQUEST_ID_KEY, request_id),)
    info = rig.served.stub.GetServiceInfo(GetServiceInfoRequest(), metadata=metadata, timeout=10)
    search = rig.served.stub.SearchCandidates(SearchCandidatesRequest(), metadata=metadata, timeout=10)
    await info
    assert [batch async for batch in search]
    assert [dict(await call.trailing_metadata())[REQUEST_ID_KEY] for call in (info, search)] == [request_id] * 2
    refusal = await refusal_of(rig.served.stub.Prepare(prepare_request(target=""), metadata=metadata, timeout=10))
    assert refusal.request_id == request_id


@in_module_loop
@pytest.mark.parametrize("request_id", ["x" * 65, "a b", "a/b", "{}", '"', "%0a"])
async def test_request_id_that_is_none_is_replaced(rig: VectorRig, request_id: str) -> None:
    metadata = ((REQUEST_ID_KEY, request_id),)
    refusal = await refusal_of(rig.served.stub.Prepare(prepare_request(target=""), metadata=metadata, timeout=10))
    assert (len(refusal.request_id), refusal.request_id.isalnum()) == (16, True)


@in_module_loop
async def test_fault_of_the_server_is_in_its_log_under_the_request_id(rig: VectorRig, caplog: pytest.LogCaptureFixture) -> None:
    rig.source.broken = RuntimeError("broken to order")
    LOGGER.propagate = True
    try:
        refusal = await refusal_of(rig.served.stub.Prepare(prepare_request(SOURCE), timeout=10))
    finally:
        rig.source.broken = None
    (record,) = [record for record in caplog.records if record.exc_info]
    assert (record.__dict__["request_id"], record.__dict__["method"]) == (refusal.request_id, "Prepare")
