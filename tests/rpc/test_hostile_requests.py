"""Requests made to hurt: bytes that are no message, lists without end. Each is refused by name, at once, and costs nothing."""

from __future__ import annotations

import random

import grpc
import grpc.aio
import pytest
from google.protobuf.message import Message
from rpc.failures import DETAILS_KEY, Failure, failure_of
from rpc.served import Served
from rpc.vector_rig import VectorRig, in_module_loop
from sessionref.v1 import reference_pb2
from sessionref.v1 import session_reference_service_pb2 as service_pb2
from sessionref.v1 import session_store_service_pb2 as store_pb2

REFERENCE_SERVICE = "/sessionref.v1.SessionReferenceService/"
STORE = store_pb2.DESCRIPTOR.services_by_name["SessionStoreService"]
STORE_SERVICE = f"/{STORE.full_name}/"
MUTANTS = 400
SENSIBLE = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.FAILED_PRECONDITION,
}


def text_block(text: str) -> reference_pb2.ContentBlock:
    return reference_pb2.ContentBlock(text=reference_pb2.TextBlock(text=text))


def opaque_block() -> reference_pb2.ContentBlock:
    return reference_pb2.ContentBlock(opaque=reference_pb2.OpaqueBlock(type="t"))


def target() -> reference_pb2.Target:
    route = reference_pb2.ModelRoute(provider="p", model="m", context_window_tokens=9)
    return reference_pb2.Target(session_id="me", cwd="/work", route=route)


VALID: dict[str, Message] = {
    "SearchCandidates": service_pb2.SearchCandidatesRequest(target=target(), query="q", limit=5, domains=[2], subagents=1),
    "Prepare": service_pb2.PrepareRequest(
        target=target(),
        content=[
            text_block("see @[x](dsh-session:InMxIg)"),
            reference_pb2.ContentBlock(opaque=reference_pb2.OpaqueBlock(type="t")),
        ],
        references=[reference_pb2.SessionReferenceInput(session_id="nobody", label="l")],
        parse_mentions=True,
    ),
    "ParseMentions": service_pb2.ParseMentionsRequest(texts=["see @[x](dsh-session:InMxIg)", "plain"]),
    "ReadSnapshot": service_pb2.ReadSnapshotRequest(locator="spill:" + "0" * 64, owner_session_id="me", offset_bytes=1),
    "GetServiceInfo": service_pb2.GetServiceInfoRequest(),
}
STREAMING = {"SearchCandidates", "ReadSnapshot"}


def call(served: Served, path: str, data: bytes) -> grpc.aio.UnaryUnaryCall | grpc.aio.UnaryStreamCall:
    """Send bytes as they are."""
    if path.rpartition("/")[2] in STREAMING:
        return served.channel.unary_stream(path)(data, timeout=10)
    return served.channel.unary_unary(path)(data, timeout=10)


NO_MESSAGE = Failure(
    code=grpc.StatusCode.INVALID_ARGUMENT, reason="INVALID_REQUEST", metadata={"field": "request"}, fields=["request"]
)


@in_module_loop
@pytest.mark.parametrize("method", list(VALID))
@pytest.mark.parametrize(
    "data", [b"\x0a\xff\xff\xff\xff\x0f", b"\x0b", b"\xff", b"\x0a\x05abc"], ids=["length", "group", "tag", "cut"]
)
async def test_bytes_that_are_no_message_are_an_invalid_request(rig: VectorRig, method: str, data: bytes) -> None:
    assert await failure_of(call(rig.served, REFERENCE_SERVICE + method, data)) == NO_MESSAGE


@in_module_loop
@pytest.mark.parametrize(
    ("method", "data"),
    [
        pytest.param("SearchCandidates", b"\x12\x01\xff", id="query"),
        pytest.param("Prepare", b"\x0a\x03\x0a\x01\xff", id="target"),
        pytest.param("ParseMentions", b"\x0a\x02\xed\xa0", id="text"),
        pytest.param("ReadSnapshot", b"\x0a\x01\x80", id="locator"),
    ],
)
async def test_string_that_is_not_utf_8_is_an_invalid_request(rig: VectorRig, method: str, data: bytes) -> None:
    assert await failure_of(call(rig.served, REFERENCE_SERVICE + method, data)) == NO_MESSAGE


@in_module_loop
@pytest.mark.parametrize(
    "method", [method.name for method in store_pb2.DESCRIPTOR.services_by_name["SessionStoreService"].methods]
)
async def test_bytes_that_are_no_message_are_refused_by_the_store_too(rig: VectorRig, method: str) -> None:
    assert await failure_of(call(rig.served, STORE_SERVICE + method, b"\xff")) == NO_MESSAGE


@in_module_loop
async def test_content_nested_past_the_parsers_limit_is_an_invalid_request(rig: VectorRig) -> None:
    value = b"\x1a\x01a"
    for _ in range(200):
        for tag in (b"\x12", b"\x0a", b"\x2a"):
            value = tag + _varint(len(value)) + value
    block = b"\x1a" + _varint(len(value) + 5) + b"\x0a\x01t" + b"\x1a" + _varint(len(value)) + value
    data = VALID["Prepare"].SerializeToString() + b"\x12" + _varint(len(block)) + block
    assert await failure_of(call(rig.served, REFERENCE_SERVICE + "Prepare", data)) == NO_MESSAGE


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


@in_module_loop
@pytest.mark.parametrize("method", list(VALID))
async def test_any_bytes_get_a_sensible_answer(rig: VectorRig, method: str) -> None:
    chance = random.Random(method)
    seen: set[grpc.StatusCode] = set()
    for _ in range(MUTANTS):
        answer = call(rig.served, REFERENCE_SERVICE + method, mutated(VALID[method].SerializeToString(), chance))
        seen.add(await code_of(answer))
    assert seen <= SENSIBLE


async def code_of(answer: grpc.aio.UnaryUnaryCall | grpc.aio.UnaryStreamCall) -> grpc.StatusCode:
    """The status; a refusal has details, and short ones."""
    try:
        if isinstance(answer, grpc.aio.UnaryStreamCall):
            async for _ in answer:
                pass
        else:
            await answer
    except grpc.aio.AioRpcError as error:
        details = dict(error.trailing_metadata() or ())[DETAILS_KEY]
        return error.code() if len(details) <= 1024 else grpc.StatusCode.UNKNOWN
    return grpc.StatusCode.OK


def mutated(data: bytes, chance: random.Random) -> bytes:
    spot = chance.randrange(len(data) + 1)
    odd = chance.choice([b"", b"\xff", b"\x00", b"\xff" * 9 + b"\x01", chance.randbytes(chance.randrange(1, 20)), data])
    return data[:spot] + odd + data[spot + chance.choice([0, 1, 5, len(data)]) :]


MANY = 10_000


def invalid(reason: str, **metadata: str) -> Failure:
    fields = [metadata["field"]] if "field" in metadata else []
    return Failure(code=grpc.StatusCode.INVALID_ARGUMENT, reason=reason, metadata=metadata, fields=fields)


@in_module_loop
@pytest.mark.parametrize(
    ("method", "request_", "failure"),
    [
        pytest.param(
            "Prepare",
            service_pb2.PrepareRequest(target=target(), content=[text_block("x")] * MANY),
            invalid("INVALID_REQUEST", field="content"),
            id="content blocks",
        ),
        pytest.param(
            "Prepare",
            service_pb2.PrepareRequest(target=target(), references=[reference_pb2.SessionReferenceInput(session_id="x")] * MANY),
            invalid("SESSION_REFERENCE_TOO_MANY", count=str(MANY), maximum="1000"),
            id="references",
        ),
        pytest.param(
            "SearchCandidates",
            service_pb2.SearchCandidatesRequest(sources=["dsh"] * MANY),
            invalid("INVALID_REQUEST", field="sources"),
            id="sources",
        ),
        pytest.param(
            "SearchCandidates",
            service_pb2.SearchCandidatesRequest(domains=[2] * MANY),
            invalid("INVALID_REQUEST", field="domains"),
            id="domains",
        ),
        pytest.param(
            "ParseMentions",
            service_pb2.ParseMentionsRequest(texts=[""] * MANY),
            invalid("INVALID_REQUEST", field="texts"),
            id="texts",
        ),
    ],
)
async def test_list_of_ten_thousand_is_refused(rig: VectorRig, method: str, request_: Message, failure: Failure) -> None:
    assert await failure_of(call(rig.served, REFERENCE_SERVICE + method, request_.SerializeToString())) == failure


@in_module_loop
async def test_source_named_twice_is_searched_once(rig: VectorRig) -> None:
    (source, *_) = [status.source for status in (await rig.served.search()).source_statuses]
    batch = await rig.served.search(sources=[source, source])
    assert [status.source for status in batch.source_statuses] == [source]
