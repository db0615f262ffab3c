"""Every case of vectors/mentions.json through ParseMentions, and again through Prepare."""

from __future__ import annotations

from typing import Any

from golden.vector_cases import each_case, load_vectors
from rpc.failures import failure_of
from rpc.vector_rig import VectorRig, in_module_loop
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import ParseMentionsRequest, PrepareRequest
from sessionref_server.domain.session import SessionId

NOT_ON_THE_WIRE: dict[str, str] = {}
"""Texts with lone surrogates, which a protobuf string cannot hold."""
VECTORS = load_vectors("mentions")
CASES = [case for case in VECTORS if case["name"] not in NOT_ON_THE_WIRE]


@in_module_loop
@each_case(CASES)
async def test_mention_vector_gives_its_output(rig: VectorRig, case: dict[str, Any]) -> None:
    call = rig.served.stub.ParseMentions(ParseMentionsRequest(texts=["before", case["input"]["text"]]), timeout=10)
    if "error_code" in case:
        failure = await failure_of(call)
        assert (failure.reason, failure.metadata) == (case["error_code"], {"field": "texts", "index": "1"})
        return
    before, parsed = (await call).texts
    assert before.text == "before"
    assert {
        "text": parsed.text,
        "references": [{"sessionId": reference.session_id, "label": reference.label} for reference in parsed.references],
    } == case["output"]


@in_module_loop
@each_case([case for case in CASES if "error_code" in case])
async def test_malformed_mention_fails_prepare_before_anything_is_read(rig: VectorRig, case: dict[str, Any]) -> None:
    rig.source.fill([])
    readings = rig.source.readings
    content = [reference_pb2.ContentBlock(text=reference_pb2.TextBlock(text=case["input"]["text"]))]
    request = PrepareRequest(target=reference_pb2.Target(session_id=SessionId("me")), content=content, parse_mentions=True)
    failure = await failure_of(rig.served.stub.Prepare(request, timeout=10))
    assert (failure.reason, failure.metadata) == (case["error_code"], {"field": "content", "index": "0"})
    assert rig.source.readings == readings


def test_list_of_texts_that_cannot_be_sent_is_not_stale() -> None:
    assert set(NOT_ON_THE_WIRE) == {case["name"] for case in VECTORS if not is_unicode(case["input"]["text"])}


def is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
