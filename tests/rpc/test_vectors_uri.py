"""Every case of vectors/uri.json through the wire: ids and labels as candidates, URIs as mentions in a text."""

from __future__ import annotations

from typing import Any

import grpc
from golden.vector_cases import each_case, load_vectors
from rpc.failures import Failure, failure_of
from rpc.vector_rig import VectorRig, in_module_loop
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import ParseMentionsRequest
from sessionref_server.domain.session import SessionHead, SessionId

SCHEME = "dsh-session:"
BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
VECTORS = load_vectors("uri")
NO_MENTION = {
    "decode edge wrong scheme": "another scheme is plain text",
    "decode edge upper scheme": "another scheme is plain text",
    "decode edge no scheme": "without a scheme it is plain text",
    "decode edge trailing newline": "white space ends a URI in a text",
    "decode edge inner whitespace payload": "white space ends a URI in a text",
    "decode edge tab in payload": "white space ends a URI in a text",
}


def cases(op: str) -> list[dict[str, Any]]:
    return [case for case in VECTORS if case["input"]["op"] == op and case["name"] not in NO_MENTION]


def is_mention(uri: str) -> bool:
    """Whether ``@[label](uri)`` is a mention by its form."""
    return uri.startswith(SCHEME) and not any(character.isspace() or character == ")" for character in uri)


async def mention_of(rig: VectorRig, head: SessionHead) -> str:
    """The mention a candidate comes with."""
    rig.source.fill([head])
    batch = await rig.served.search(target=reference_pb2.Target(session_id="somebody else"))
    (candidate,) = batch.sessions.candidates
    assert candidate.session_id == head.session_id
    return candidate.mention


@in_module_loop
@each_case(cases("encode"))
async def test_candidate_with_the_id_mentions_its_uri(rig: VectorRig, case: dict[str, Any]) -> None:
    head = SessionHead(session_id=SessionId(case["input"]["sessionId"]), source="dsh", title="title")
    assert await mention_of(rig, head) == f"@[title]({case['output']})"


@in_module_loop
@each_case(cases("format"))
async def test_candidate_with_the_label_has_its_mention(rig: VectorRig, case: dict[str, Any]) -> None:
    given = case["input"]
    head = SessionHead(session_id=SessionId(given["sessionId"]), source="dsh", title=given.get("label"))
    assert await mention_of(rig, head) == case["output"]


@in_module_loop
@each_case(cases("decode"))
async def test_mention_of_the_uri_gives_its_id_or_fails_the_call(rig: VectorRig, case: dict[str, Any]) -> None:
    uri = case["input"]["uri"]
    texts = [f"@[x]({uri})"]
    if uri != SCHEME and BARE.issuperset(uri.removeprefix(SCHEME)):
        texts.append(f"see {uri} here")
    for text in texts:
        call = rig.served.stub.ParseMentions(ParseMentionsRequest(texts=[text]), timeout=10)
        if "error_code" in case:
            assert await failure_of(call) == Failure(
                code=grpc.StatusCode.INVALID_ARGUMENT,
                reason=case["error_code"],
                metadata={"field": "texts", "index": "0"},
                fields=["texts[0]"],
            )
        else:
            assert [reference.session_id for reference in (await call).texts[0].references] == [case["output"]]


def test_list_of_uris_that_are_no_mention_is_not_stale() -> None:
    decoded = [case for case in VECTORS if case["input"]["op"] == "decode"]
    assert set(NO_MENTION) == {case["name"] for case in decoded if not is_mention(case["input"]["uri"])}
