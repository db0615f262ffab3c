"""Searching with both clients, over Unix sockets and TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest
from google.rpc.status_pb2 import Status
from sessionref.v1 import candidate_pb2 as candidate_message
from sessionref.v1 import reference_pb2 as reference_message
from sessionref.v1 import session_reference_service_pb2 as service_message
from sessionref_client import (
    Domain,
    FileCandidate,
    FileKind,
    ModelRoute,
    ReadFailedError,
    SearchBatch,
    SessionCandidate,
    SourceStatus,
    Target,
)

if TYPE_CHECKING:
    from conftest import Caller, Refusal, ScriptedService

SESSION_MESSAGE = candidate_message.SessionReferenceCandidate(
    session_id="codex:1",
    label="Fix the build",
    display_title="Fixer",
    cwd="/src",
    same_workspace=True,
    created_at_ms=1_700_000_000_000,
    mention="@[Fixer](dsh-session:ImNvZGV4OjEi)",
    source="codex",
)
SESSION = SessionCandidate(
    session_id="codex:1",
    label="Fix the build",
    display_title="Fixer",
    cwd="/src",
    same_workspace=True,
    created_at_ms=1_700_000_000_000,
    mention="@[Fixer](dsh-session:ImNvZGV4OjEi)",
    source="codex",
    updated_at_ms=None,
)
STATUS_MESSAGE = candidate_message.SourceStatus(
    source="codex", ready=True, listed_sessions=3, unreadable_sessions=2, empty_sessions=1, failure="it is down"
)
STATUS = SourceStatus(
    source="codex", ready=True, listed_sessions=3, unreadable_sessions=2, empty_sessions=1, failure="it is down"
)
TARGET = Target(session_id="me", cwd="/src", route=ModelRoute(provider="anthropic", context_window_tokens=200_000))
TARGET_MESSAGE = reference_message.Target(
    session_id="me", cwd="/src", route=reference_message.ModelRoute(provider="anthropic", context_window_tokens=200_000)
)


def sessions_answer(
    *sessions: candidate_message.SessionReferenceCandidate, **fields: object
) -> service_message.SearchCandidatesResponse:
    return service_message.SearchCandidatesResponse(sessions=candidate_message.SessionCandidates(candidates=sessions), **fields)


async def test_search_gives_batches_of_each_domain_in_order_of_arrival(caller: Caller, service: ScriptedService) -> None:
    file = candidate_message.FileReferenceCandidate(
        path="a\u202eb", kind=candidate_message.FILE_KIND_DIRECTORY, mention="", display_path="a\\u202eb"
    )
    service.answers = [
        service_message.SearchCandidatesResponse(files=candidate_message.FileCandidates(candidates=[file]), truncated=True),
        sessions_answer(partial=True, source_statuses=[STATUS_MESSAGE]),
        sessions_answer(SESSION_MESSAGE),
    ]

    batches = await caller.stream("search", "fix")

    empty = {"sessions": (), "files": (), "partial": False, "truncated": False, "source_statuses": (), "error": None}
    directory = FileCandidate(path="a\u202eb", kind=FileKind.DIRECTORY, mention="", display_path="a\\u202eb")
    assert batches == [
        SearchBatch(**{**empty, "domain": Domain.FILES, "files": (directory,), "truncated": True}),
        SearchBatch(**{**empty, "domain": Domain.SESSIONS, "partial": True, "source_statuses": (STATUS,)}),
        SearchBatch(**{**empty, "domain": Domain.SESSIONS, "sessions": (SESSION,)}),
    ]


async def test_search_without_options_sends_the_query_alone(caller: Caller, service: ScriptedService) -> None:
    await caller.stream("search", "fix")

    assert service.requests == [service_message.SearchCandidatesRequest(query="fix")]


async def test_search_with_all_options_sends_them(caller: Caller, service: ScriptedService) -> None:
    await caller.stream("search", "fix", target=TARGET, domains=[Domain.FILES], limit=0, sources=["codex"], subagents=False)

    assert service.requests == [
        service_message.SearchCandidatesRequest(
            target=TARGET_MESSAGE,
            query="fix",
            domains=[candidate_message.CANDIDATE_DOMAIN_FILES],
            limit=0,
            sources=["codex"],
            subagents=candidate_message.SUBAGENT_VISIBILITY_EXCLUDE,
        )
    ]


async def test_search_sessions_gives_the_last_batch(caller: Caller, service: ScriptedService) -> None:
    service.answers = [sessions_answer(partial=True), sessions_answer(SESSION_MESSAGE)]

    found = await caller.answer("search_sessions", "fix", limit=5, subagents=True)

    assert found == [SESSION]
    assert service.requests == [
        service_message.SearchCandidatesRequest(
            query="fix",
            domains=[candidate_message.CANDIDATE_DOMAIN_SESSIONS],
            limit=5,
            subagents=candidate_message.SUBAGENT_VISIBILITY_INCLUDE,
        )
    ]


async def test_search_sessions_without_a_batch_is_empty(caller: Caller) -> None:
    assert await caller.answer("search_sessions") == []


async def test_search_sessions_raises_the_error_of_the_domain(
    caller: Caller, service: ScriptedService, refusal: type[Refusal]
) -> None:
    reported = refusal(code=grpc.StatusCode.UNAVAILABLE, reason="SESSION_REFERENCE_READ_FAILED", metadata={"source": "codex"})
    service.answers = [sessions_answer(status=reported.status())]

    with pytest.raises(ReadFailedError) as caught:
        await caller.answer("search_sessions")

    assert (caught.value.kind, caught.value.metadata) == ("unavailable", {"source": "codex"})


async def test_search_keeps_a_failed_domain_beside_the_other_one(caller: Caller, service: ScriptedService) -> None:
    service.answers = [
        service_message.SearchCandidatesResponse(files=candidate_message.FileCandidates(), status=Status(code=99)),
        sessions_answer(SESSION_MESSAGE),
    ]

    files, sessions = await caller.stream("search")

    assert (files.domain, files.error.code, sessions.sessions) == (Domain.FILES, "UNKNOWN", (SESSION,))


async def test_search_gives_no_domain_for_one_of_a_newer_server(caller: Caller, service: ScriptedService) -> None:
    service.answers = [service_message.SearchCandidatesResponse()]

    assert [batch.domain for batch in await caller.stream("search")] == [None]
