"""Every case of vectors/prepare.json through the wire."""

from __future__ import annotations

import json
from typing import Any

from golden.vector_cases import each_case, load_vectors
from rpc.failures import failure_of
from rpc.vector_rig import VectorRig, described_context, fill, in_module_loop, stats_of
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import PrepareRequest, PrepareResponse, ReadSnapshotRequest
from sessionref_server.domain.session import ModelRoute, SessionHead, SessionId
from sessionref_server.service.prepare import PrepareLimits

NOT_ON_THE_WIRE = {
    "self is agent id not session id": "a target has one id on the wire",
    "shape null item": "a repeated field holds messages only",
    "shape number item": "a repeated field holds messages only",
    "shape array item": "a repeated field holds messages only",
    "shape number id": "an id is a string",
    "shape null label": "a label is a string or absent",
    "shape bad after good": "an id is a string",
    "cancelled with self": "a call that was cancelled before it began is never sent",
    "cancelled too many": "a call that was cancelled before it began is never sent",
}
VECTORS = load_vectors("prepare")
CASES = [case for case in VECTORS if case["name"] not in NOT_ON_THE_WIRE]
BIG = {"id": "big", "createdAt": 1, "version": 4, "cwd": "/work/a"}


def generated(messages: int) -> dict[str, Any]:
    events = [
        {
            "type": "user/message",
            "data": {"role": "user", "source": {"kind": "user"}, "content": [{"type": "text", "text": f"m{n:03d} " + 995 * "w"}]},
        }
        for n in range(messages)
    ]
    return {"header": BIG, "snapshot": {"capturedThroughSeq": 9, "events": events}}


def target_id(given: dict[str, Any]) -> str:
    return given["agent"].get("sessionId", given["agent"]["id"])


def request_of(given: dict[str, Any]) -> PrepareRequest:
    options = given["agent"].get("options", {})
    return PrepareRequest(
        target=reference_pb2.Target(
            session_id=target_id(given),
            cwd=given["agent"].get("cwd"),
            route=reference_pb2.ModelRoute(provider=options.get("provider"), model=options.get("model")),
        ),
        content=[block_of(block) for block in given.get("content", [])],
        references=[
            reference_pb2.SessionReferenceInput(session_id=reference.get("sessionId"), label=reference.get("label"))
            for reference in given["references"]
        ],
    )


def block_of(block: dict[str, Any]) -> reference_pb2.ContentBlock:
    assert set(block) == {"type", "text"}
    return reference_pb2.ContentBlock(text=reference_pb2.TextBlock(text=block["text"]))


def limits_of(given: dict[str, Any]) -> PrepareLimits:
    config = given.get("config", {})
    return PrepareLimits(
        max_references=config.get("maxReferences", 3),
        max_reference_bytes=config.get("maxReferenceBytes"),
        reference_context_fraction=config.get("referenceContextFraction", 0.2),
    )


def arrange(rig: VectorRig, given: dict[str, Any]) -> None:
    sessions = [generated(given["generated"]["messages"])] if "generated" in given else given["sessions"]
    used = given.get("assembled")
    own = [SessionHead(session_id=SessionId(target_id(given)), source="dsh", route=ModelRoute(**used))] if used else []
    fill(rig.source, sessions, own)
    model = given.get("llm", {})
    rig.models.windows = {("p", "m"): model["contextWindow"]} if "contextWindow" in model else {}
    rig.models.failing = "error" in model


async def described(rig: VectorRig, given: dict[str, Any], response: PrepareResponse) -> dict[str, Any]:
    context = response.additional_context
    saved = [await transcript_of(rig, given, omission) for omission in context.omissions if omission.HasField("saved")]
    return {
        "content": [{"type": "text", "text": block.text.text} for block in response.content],
        "context": described_context(context) if response.HasField("additional_context") else None,
        "saved": saved,
    }


async def transcript_of(rig: VectorRig, given: dict[str, Any], omission: reference_pb2.ReferenceOmission) -> dict[str, Any]:
    """The saved transcript in the words of the vectors."""
    request = ReadSnapshotRequest(locator=omission.saved.locator, owner_session_id=target_id(given))
    content = b"".join([chunk.data async for chunk in rig.served.stub.ReadSnapshot(request, timeout=10)])
    assert omission.saved.size_bytes == len(content)
    lines = content.decode().split("\n")
    capture = next(json.loads(line) for line in lines if line.startswith('{"sessionId"'))
    messages: list[dict[str, Any]] = []
    for line in lines:
        if line.startswith("### Message "):
            number, _, role = line.removeprefix("### Message ").partition(": ")
            messages.append({"index": int(number), "role": role, "fragments": []})
        elif messages and line:
            messages[-1]["fragments"].append(line)
    return {
        "capture": capture,
        "captureKeyOrder": list(capture),
        "messages": messages,
        "endsWithNewline": content.endswith(b"\n"),
    }


def without_places(output: dict[str, Any]) -> dict[str, Any]:
    """A vector's output as far as it is the same everywhere: locators, hints and sizes with prose in them are not."""
    output = json.loads(json.dumps(output))
    output["saved"] = [saved["transcript"] for saved in output["saved"]]
    for notice in (output["context"] or {}).get("notices") or []:
        snapshot = notice["fullSnapshot"]
        notice["fullSnapshot"] = snapshot if snapshot["status"] == "unavailable" else {"status": "saved"}
    return output


def with_saved_only(described: dict[str, Any]) -> dict[str, Any]:
    for notice in (described["context"] or {}).get("notices") or []:
        if notice["fullSnapshot"]["status"] == "saved":
            assert list(notice["fullSnapshot"]) == ["status", "locator", "bytes", "retrievalHint"]
            notice["fullSnapshot"] = {"status": "saved"}
    return described


@in_module_loop
@each_case(CASES)
async def test_prepare_vector_gives_its_output(rig: VectorRig, case: dict[str, Any]) -> None:
    given = case["input"]
    arrange(rig, given)
    stub = await rig.stub(limits=limits_of(given), spill="spill" in given)
    call = stub.Prepare(request_of(given), timeout=20)
    if "error_code" in case:
        assert (await failure_of(call)).reason == case["error_code"]
        return
    response = await call
    if "generated" in given:
        stats = stats_of(response.additional_context.source.references[0])
        del stats["compacted"]
        assert {"jsonBytes": described_context(response.additional_context)["jsonBytes"], "stats": stats} == case["output"]
        return
    assert with_saved_only(await described(rig, given, response)) == without_places(case["output"])


def test_list_of_cases_that_cannot_be_sent_is_not_stale() -> None:
    assert set(NOT_ON_THE_WIRE) == {case["name"] for case in VECTORS if not can_be_sent(case["input"])}


def can_be_sent(given: dict[str, Any]) -> bool:
    references = given["references"]
    is_typed = all(
        isinstance(reference, dict)
        and isinstance(reference.get("sessionId", ""), str)
        and isinstance(reference.get("label", ""), str)
        for reference in references
    )
    has_one_id = all(reference.get("sessionId") != target_id(given) for reference in references if isinstance(reference, dict))
    return is_typed and not given.get("cancelled") and (has_one_id or target_id(given) == given["agent"]["id"])
