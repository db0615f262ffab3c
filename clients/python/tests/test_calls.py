"""Every other method of both clients, over Unix sockets and TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.duration_pb2 import Duration
from sessionref.v1 import candidate_pb2 as candidate_message
from sessionref.v1 import reference_pb2 as reference_message
from sessionref.v1 import session_reference_service_pb2 as service_message
from sessionref_client import (
    CapturedReference,
    ContextMessage,
    FileMention,
    ModelRoute,
    Omission,
    ParsedText,
    Prepared,
    ReadingFacts,
    SavedSnapshot,
    ServiceInfo,
    ServiceLimits,
    SessionReference,
    SessionReferenceSource,
    SnapshotChunk,
    SnapshotUnavailable,
    SourceStatus,
    Target,
    TextBlock,
    Trust,
)

if TYPE_CHECKING:
    from conftest import Caller, ScriptedService

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
CAPTURED_MESSAGE = reference_message.CapturedReference(
    session_id="s",
    label="S",
    captured_format_version=2,
    captured_through_seq=0,
    compacted=True,
    original_messages=9,
    retained_messages=4,
    omitted_messages=5,
    omitted_bytes=1234,
    truncated=True,
    input_index=1,
    reading=reference_message.ReadingFacts(
        damaged_records=1, unknown_records=2, torn_tail=True, redactions=3, notes=["no visible messages"]
    ),
)
CAPTURED = CapturedReference(
    session_id="s",
    label="S",
    captured_format_version=2,
    captured_through_seq=0,
    compacted=True,
    original_messages=9,
    retained_messages=4,
    omitted_messages=5,
    omitted_bytes=1234,
    truncated=True,
    input_index=1,
    reading=ReadingFacts(damaged_records=1, unknown_records=2, torn_tail=True, redactions=3, notes=("no visible messages",)),
)


async def test_prepare_gives_content_and_context(caller: Caller, service: ScriptedService) -> None:
    unavailable = reference_message.SNAPSHOT_UNAVAILABLE_REASON_SAVE_FAILED
    omissions = [
        reference_message.ReferenceOmission(
            session_id="s",
            omitted_messages=5,
            omitted_bytes=1234,
            saved=reference_message.SavedSnapshot(locator="l", size_bytes=8, retrieval_hint="ask"),
        ),
        reference_message.ReferenceOmission(session_id="t", captured_through_seq=7, unavailable=unavailable),
        reference_message.ReferenceOmission(session_id="u", captured_through_seq=7),
    ]
    service.answers = [
        service_message.PrepareResponse(
            content=[reference_message.ContentBlock(text=reference_message.TextBlock(text="see @S"))],
            additional_context=reference_message.ContextMessage(
                id="c1",
                content=[reference_message.ContentBlock(text=reference_message.TextBlock(text="## Context"))],
                source=reference_message.SessionReferenceSource(
                    kind="session-reference", form="recall", version=1, references=[CAPTURED_MESSAGE]
                ),
                omissions=omissions,
                trust=reference_message.TRUST_UNTRUSTED,
            ),
        )
    ]

    prepared = await caller.answer("prepare", "see @[S](dsh-session:InMi)", target=TARGET, parse_mentions=True)

    def omission(session_id: str, **fields: object) -> Omission:
        return Omission(
            **{"captured_through_seq": 7, "omitted_messages": 0, "omitted_bytes": 0, "session_id": session_id, **fields}
        )

    assert prepared == Prepared(
        content=(TextBlock("see @S"),),
        additional_context=ContextMessage(
            id="c1",
            content=(TextBlock("## Context"),),
            source=SessionReferenceSource(kind="session-reference", form="recall", version=1, references=(CAPTURED,)),
            omissions=(
                omission(
                    "s",
                    captured_through_seq=None,
                    omitted_messages=5,
                    omitted_bytes=1234,
                    full_snapshot=SavedSnapshot(locator="l", size_bytes=8, retrieval_hint="ask"),
                ),
                omission("t", full_snapshot=SnapshotUnavailable.SAVE_FAILED),
                omission("u", full_snapshot=SnapshotUnavailable.UNKNOWN),
            ),
            trust=Trust.UNTRUSTED,
        ),
    )
    assert prepared.additional_context.text == "## Context"


async def test_prepare_sends_target_content_and_references(caller: Caller, service: ScriptedService) -> None:
    service.answers = [service_message.PrepareResponse()]

    prepared = await caller.answer(
        "prepare",
        ["first", TextBlock("second")],
        target=TARGET,
        references=[SessionReference(session_id="s", label=""), SessionReference(session_id="t")],
    )

    assert prepared == Prepared(content=(), additional_context=None)
    assert service.requests == [
        service_message.PrepareRequest(
            target=TARGET_MESSAGE,
            content=[
                reference_message.ContentBlock(text=reference_message.TextBlock(text="first")),
                reference_message.ContentBlock(text=reference_message.TextBlock(text="second")),
            ],
            references=[
                reference_message.SessionReferenceInput(session_id="s", label=""),
                reference_message.SessionReferenceInput(session_id="t"),
            ],
        )
    ]


async def test_parse_mentions_gives_one_result_for_each_text(caller: Caller, service: ScriptedService) -> None:
    parsed = service_message.ParsedText(
        text="@S @a.py",
        references=[
            reference_message.SessionReferenceInput(session_id="s", label="S"),
            reference_message.SessionReferenceInput(session_id="t"),
        ],
        files=[service_message.FileMention(path="a.py", quoted=True)],
    )
    service.answers = [service_message.ParseMentionsResponse(texts=[parsed, service_message.ParsedText(text="plain")])]

    found = await caller.answer("parse_mentions", ["one", "two"])

    assert found == [
        ParsedText(
            text="@S @a.py",
            references=(SessionReference(session_id="s", label="S"), SessionReference(session_id="t")),
            files=(FileMention(path="a.py", quoted=True),),
        ),
        ParsedText(text="plain", references=(), files=()),
    ]
    assert service.requests == [service_message.ParseMentionsRequest(texts=["one", "two"])]


async def test_read_snapshot_gives_chunks_from_the_offset(caller: Caller, service: ScriptedService) -> None:
    service.answers = [service_message.ReadSnapshotResponse(data=b"\xc3", offset_bytes=4, total_bytes=9)]

    chunks = await caller.stream("read_snapshot", "l", "me", offset_bytes=4, chunk_bytes=1, limit_bytes=1)

    assert chunks == [SnapshotChunk(data=b"\xc3", offset_bytes=4, total_bytes=9)]
    assert service.requests == [
        service_message.ReadSnapshotRequest(locator="l", owner_session_id="me", offset_bytes=4, chunk_bytes=1, limit_bytes=1)
    ]


async def test_read_snapshot_text_joins_characters_cut_between_chunks(caller: Caller, service: ScriptedService) -> None:
    service.answers = [
        service_message.ReadSnapshotResponse(data=b"caf\xc3", offset_bytes=0, total_bytes=5),
        service_message.ReadSnapshotResponse(data=b"\xa9", offset_bytes=4, total_bytes=5),
    ]

    assert await caller.answer("read_snapshot_text", "l", "me") == "café"
    assert service.requests == [service_message.ReadSnapshotRequest(locator="l", owner_session_id="me")]


async def test_service_info_gives_version_limits_and_sources(caller: Caller, service: ScriptedService) -> None:
    numbers = {
        "maximum_references": 3,
        "reference_context_fraction": 0.25,
        "default_session_candidates": 50,
        "maximum_candidates": 500,
        "maximum_query_bytes": 1024,
        "maximum_request_bytes": 262_144,
        "maximum_concurrent_prepares": 8,
    }
    limits = service_message.ServiceLimits(**numbers, maximum_call_duration=Duration(seconds=30, nanos=500_000_000))
    service.answers = [service_message.GetServiceInfoResponse(version="0.1.0", limits=limits, sources=[STATUS_MESSAGE])]

    assert await caller.answer("service_info") == ServiceInfo(
        version="0.1.0",
        limits=ServiceLimits(**numbers, maximum_reference_bytes=None, maximum_call_seconds=30.5, snapshot_lifetime_seconds=None),
        sources=(STATUS,),
    )
