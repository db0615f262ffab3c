"""Every case of vectors/rewrite.json through the wire: each message a person typed is one Prepare that looks for mentions."""

from __future__ import annotations

from typing import Any

from golden.vector_cases import each_case, load_vectors
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from rpc.failures import failure_of
from rpc.vector_rig import VectorRig, described_context, fill, in_module_loop
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import PrepareRequest
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub
from sessionref_server.service.prepare import PrepareLimits

LEFT_TO_THE_HOST = {
    "non-user source untouched": "a host sends only what a person typed",
    "reject decision passes": "a host sends nothing that is rejected",
}
VECTORS = load_vectors("rewrite")


def is_for_the_server(given: dict[str, Any], message: dict[str, Any]) -> bool:
    return given.get("kind", "enter") == "enter" and message["source"]["kind"] == "user"


def block_of(block: dict[str, Any]) -> reference_pb2.ContentBlock:
    if block["type"] == "text":
        return reference_pb2.ContentBlock(text=reference_pb2.TextBlock(text=block["text"]))
    value = Struct()
    value.update(block)
    return reference_pb2.ContentBlock(opaque=reference_pb2.OpaqueBlock(type=block["type"], json=value))


def described_block(block: reference_pb2.ContentBlock) -> dict[str, Any]:
    if block.WhichOneof("block") == "text":
        return {"type": "text", "text": block.text.text}
    return MessageToDict(block.opaque.json)


async def prepared(stub: SessionReferenceServiceStub, target: str, message: dict[str, Any]) -> list[dict[str, Any]]:
    request = PrepareRequest(
        target=reference_pb2.Target(session_id=target),
        content=[block_of(block) for block in message["content"]],
        parse_mentions=True,
    )
    response = await stub.Prepare(request, timeout=20)
    entered = [{**message, "content": [described_block(block) for block in response.content]}]
    if response.HasField("additional_context"):
        context = described_context(response.additional_context)
        del context["jsonBytes"]
        entered.append({"context": context})
    return entered


async def entered_messages(stub: SessionReferenceServiceStub, given: dict[str, Any]) -> list[dict[str, Any]]:
    """What a host ends up with."""
    entered: list[dict[str, Any]] = []
    for message in given["messages"]:
        is_sent = is_for_the_server(given, message)
        entered += await prepared(stub, given["agent"]["id"], message) if is_sent else [message]
    return entered


@in_module_loop
@each_case(VECTORS)
async def test_rewrite_vector_gives_its_output(rig: VectorRig, case: dict[str, Any]) -> None:
    given = case["input"]
    fill(rig.source, given["sessions"])
    stub = await rig.stub(limits=PrepareLimits(), spill=False)
    entering = entered_messages(stub, given)
    if "error_code" in case:
        assert (await failure_of(entering)).reason == case["error_code"]
    else:
        assert await entering == case["output"]["messages"]


def test_list_of_cases_left_to_the_host_is_not_stale() -> None:
    unsent = [
        case["name"]
        for case in VECTORS
        if case["input"]["messages"] and not any(is_for_the_server(case["input"], m) for m in case["input"]["messages"])
    ]
    assert sorted(LEFT_TO_THE_HOST) == sorted(unsent)
