from __future__ import annotations

from typing import Any

from golden.vector_cases import each_case, load_vectors
from sessionref_server.domain.errors import InvalidReferenceError
from sessionref_server.domain.limits import DEFAULT_SESSION_CANDIDATES
from sessionref_server.domain.mention import format_mention
from sessionref_server.domain.session import SessionHead, SessionId
from sessionref_server.domain.suggest.rank_sessions import RankedSession, SessionIndex, SessionQuery

# Cases about the configuration file are the configuration's.
CASES = [case for case in load_vectors("candidates") if case.get("error_code") != "SESSION_REFERENCE_INVALID_CONFIG"]


def head_of(session: dict[str, Any]) -> SessionHead:
    header = session["header"]
    readable = session.get("projection") != "none"
    subagent = (session["subagent"] or {}) if readable else {}
    return SessionHead(
        session_id=SessionId(header["id"]),
        source="dsh",
        title=session["title"] if readable else None,
        subagent_label=subagent.get("label"),
        cwd=header.get("cwd"),
        created_at_ms=header["createdAt"],
        is_subagent=bool(subagent),
    )


def described(candidate: RankedSession, *, with_mention: bool) -> dict[str, Any]:
    head = candidate.head
    described = {
        "sessionId": head.session_id,
        "label": head.label,
        "displayTitle": head.display_title,
        "cwd": head.cwd,
        "sameWorkspace": candidate.same_workspace,
        "createdAt": head.created_at_ms,
        "mention": format_mention(head.session_id, head.display_title) if with_mention else None,
    }
    return {key: value for key, value in described.items() if value is not None}


def outcome(given: dict[str, Any]) -> dict[str, Any]:
    index = SessionIndex(sources_listing_subagents=["dsh"])
    index.replace(map(head_of, given["sessions"]))
    query = SessionQuery(
        target_id=SessionId(given["agent"]["id"]),
        target_cwd=given["agent"].get("cwd"),
        text=given.get("query", ""),
        limit=given.get("limit", given.get("config", {}).get("candidateLimit", DEFAULT_SESSION_CANDIDATES)),
    )
    try:
        return {"output": [described(found, with_mention="remote" in given) for found in index.search(query)]}
    except InvalidReferenceError as error:
        return {"error_code": error.reason}


@each_case(CASES)
def test_candidates_vector_gives_its_output(case: dict[str, Any]) -> None:
    assert outcome(case["input"]) == {key: case[key] for key in ("output", "error_code") if key in case}
