"""Every case of vectors/candidates.json through SearchCandidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from golden.vector_cases import each_case, load_vectors
from rpc.failures import failure_of
from rpc.vector_rig import VectorRig, in_module_loop
from sessionref.v1 import candidate_pb2, reference_pb2
from sessionref.v1.session_reference_service_pb2 import SearchCandidatesRequest
from sessionref_server.config import load_config
from sessionref_server.domain.errors import InvalidConfigError
from sessionref_server.domain.session import SessionHead, SessionId

INT32 = range(-(2**31), 2**31)
NOT_ON_THE_WIRE = {
    "bad limit 1.5": "a limit is a 32-bit integer",
    "bad limit 9007199254740992": "a limit is a 32-bit integer",
    "bad limit -0.0": "a limit is a 32-bit integer",
    "cancelled but bad limit first": "a call that was cancelled before it began is never sent",
}
KEYS = {
    "candidateLimit": "search.candidate_limit",
    "maxReferences": "prepare.max_references",
    "maxReferenceBytes": "prepare.max_reference_bytes",
    "referenceContextFraction": "prepare.reference_context_fraction",
}
VECTORS = load_vectors("candidates")
SENT = [case for case in VECTORS if case["name"] not in NOT_ON_THE_WIRE and "INVALID_CONFIG" not in case.get("error_code", "")]
CONFIGURED = [case for case in VECTORS if "config" in case["input"]]


def head_of(session: dict[str, Any]) -> SessionHead:
    header = session["header"]
    projected = session if session.get("projection") != "none" else {}
    return SessionHead(
        session_id=SessionId(header["id"]),
        source="dsh",
        title=projected.get("title"),
        subagent_label=(projected.get("subagent") or {}).get("label"),
        cwd=header.get("cwd"),
        created_at_ms=header["createdAt"],
        is_subagent=bool(projected.get("subagent")),
    )


def described(candidate: candidate_pb2.SessionReferenceCandidate, *, with_mention: bool) -> dict[str, Any]:
    return {
        "sessionId": candidate.session_id,
        "label": candidate.label,
        "displayTitle": candidate.display_title,
        **({"cwd": candidate.cwd} if candidate.HasField("cwd") else {}),
        "sameWorkspace": candidate.same_workspace,
        "createdAt": candidate.created_at_ms,
        **({"mention": candidate.mention} if with_mention else {}),
    }


@in_module_loop
@each_case(SENT)
async def test_candidates_vector_gives_its_output(rig: VectorRig, case: dict[str, Any]) -> None:
    given = case["input"]
    rig.source.fill(map(head_of, given["sessions"]))
    stub = await rig.stub(session_candidates=given.get("config", {}).get("candidateLimit", 50))
    target = reference_pb2.Target(session_id=given["agent"]["id"], cwd=given["agent"].get("cwd"))
    request = SearchCandidatesRequest(
        target=target, query=given.get("query", ""), limit=given.get("limit"), domains=[candidate_pb2.CANDIDATE_DOMAIN_SESSIONS]
    )
    call = stub.SearchCandidates(request, timeout=10)
    if "error_code" in case:
        assert (await failure_of(call)).reason == case["error_code"]
        return
    batch = [batch async for batch in call][-1]
    found = [described(candidate, with_mention="remote" in given) for candidate in batch.sessions.candidates]
    assert found == case["output"]


@each_case(CONFIGURED)
def test_configuration_of_the_vector_is_taken_or_refused_by_its_key(case: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "sessionref.toml"
    config = case["input"]["config"]
    file.write_text("".join(f"{KEYS[key]} = {toml(value)}\n" for key, value in config.items()))
    if "error_code" not in case:
        load_config(file=file)
        return
    with pytest.raises(InvalidConfigError) as refused:
        load_config(file=file)
    assert (refused.value.reason, refused.value.metadata) == (case["error_code"], {"key": KEYS[next(iter(config))]})


def toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_list_of_cases_that_cannot_be_sent_is_not_stale() -> None:
    assert set(NOT_ON_THE_WIRE) == {case["name"] for case in VECTORS if not can_be_sent(case["input"])}


def can_be_sent(given: dict[str, Any]) -> bool:
    limit = given.get("limit", 1)
    return type(limit) is int and limit in INT32 and not given.get("cancelled")
