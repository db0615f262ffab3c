"""Batches of sessions put together from kept bytes are what building the messages would give."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sessionref.v1 import candidate_pb2
from sessionref.v1 import session_reference_service_pb2 as service_pb2
from sessionref_server.domain.mention import format_mention
from sessionref_server.domain.ports import SourceCheck
from sessionref_server.domain.session import SessionHead, SessionId
from sessionref_server.wire import encode

CHECKS = (
    SourceCheck(name="dsh", ready=True, listed=12, unreadable=3, empty=1),
    SourceCheck(name="codex", ready=False, failure="folder cannot be read", places=("/secret",)),
)


def head(number: int, title: str | None = "Title \U0001f680") -> SessionHead:
    return SessionHead(
        session_id=SessionId(f"codex:{number}"),
        source="codex",
        title=title,
        cwd=None if number % 2 else "/work/shop",
        created_at_ms=1_788_256_800_000 + number,
        updated_at_ms=None if number % 3 else 1_788_256_900_000,
    )


def candidate(of: SessionHead, *, same_workspace: bool) -> candidate_pb2.SessionReferenceCandidate:
    return candidate_pb2.SessionReferenceCandidate(
        session_id=of.session_id,
        label=of.label,
        display_title=of.display_title,
        cwd=of.cwd,
        same_workspace=same_workspace,
        created_at_ms=of.created_at_ms,
        mention=format_mention(of.session_id, of.display_title),
        source=of.source,
        updated_at_ms=of.updated_at_ms,
    )


def built(
    found: Sequence[tuple[SessionHead, bool]], checks: Sequence[SourceCheck], *, partial: bool
) -> service_pb2.SearchCandidatesResponse:
    candidates = [candidate(of, same_workspace=same) for of, same in found]
    return service_pb2.SearchCandidatesResponse(
        sessions=candidate_pb2.SessionCandidates(candidates=candidates),
        partial=partial,
        source_statuses=[encode.source_status(check) for check in checks],
    )


@pytest.mark.parametrize("count", [0, 1, 2, 50, 1000], ids=lambda count: f"{count} candidates")
@pytest.mark.parametrize("partial", [False, True], ids=["last", "partial"])
def test_batch_equals_the_message_built_field_by_field(count: int, partial: bool) -> None:  # noqa: FBT001
    found = [(head(number), number < count // 2) for number in range(count)]
    for _ in range(2):
        raw = encode.sessions_batch(found, CHECKS, partial=partial)
        assert service_pb2.SearchCandidatesResponse.FromString(raw) == built(found, CHECKS, partial=partial)


def test_batch_without_candidates_still_is_a_batch_of_sessions() -> None:
    raw = encode.sessions_batch([], [], partial=False)
    assert service_pb2.SearchCandidatesResponse.FromString(raw).WhichOneof("candidates") == "sessions"


def test_same_head_is_of_the_workspace_in_one_search_and_not_in_the_next() -> None:
    one = head(1)
    batches = [encode.sessions_batch([(one, same)], [], partial=False) for same in (False, True, False)]
    parsed = [service_pb2.SearchCandidatesResponse.FromString(raw) for raw in batches]
    assert [batch.sessions.candidates[0].same_workspace for batch in parsed] == [False, True, False]


def test_head_that_took_the_place_of_a_dropped_one_never_shows_the_old_bytes() -> None:
    kept = encode.CandidateBytes()
    for number in range(2 * encode.MAX_KEPT_CANDIDATES):
        raw = kept.joined([(head(number, title=None), False)])
        assert candidate_pb2.SessionCandidates.FromString(raw).candidates[0].label == f"codex:{number}"


def test_kept_candidates_are_bounded() -> None:
    kept = encode.CandidateBytes()
    kept.joined([(head(number), False) for number in range(2 * encode.MAX_KEPT_CANDIDATES + 1)])
    assert len(kept) <= encode.MAX_KEPT_CANDIDATES
