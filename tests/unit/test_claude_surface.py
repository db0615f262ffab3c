from __future__ import annotations

import json

import pytest
from fakes.claude_records import Log, spoken, surface_of
from sessionref_server.adapters.sessions.formats.claude_code.surface import ClaudeSurfaceFold
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.domain.session import SessionStatus


def started() -> Log:
    return Log().user("u1", "first").assistant("a1", "one")


def test_rewind_leaves_the_older_branch_out() -> None:
    log = started().user("u2", "dead end").assistant("a2", "dead").user("u3", "second", parentUuid="a1").assistant("a3", "two")
    assert spoken(surface_of(log.lines)) == [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")]


def test_rewind_to_the_start_leaves_the_older_tree_out() -> None:
    log = started().user("u2", "begin again", parentUuid=None).assistant("a2", "two")
    assert spoken(surface_of(log.lines)) == [("user", "begin again"), ("assistant", "two")]


def test_order_is_that_of_the_links_when_lines_are_shuffled() -> None:
    log = started().user("u2", "second").assistant("a2", "two")
    expected = [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")]
    assert [spoken(surface_of([log.lines[i] for i in order])) for order in ((3, 1, 0, 2), (1, 0, 3, 2))] == [expected] * 2


def test_newest_branch_by_time_is_live_when_the_older_one_lies_later_in_the_file() -> None:
    log = started().user("u2", "newer", timestamp="2026-09-02T10:00:00.000Z").user("u3", "older", parentUuid="a1")
    assert spoken(surface_of(log.lines))[-1] == ("user", "newer")


def test_clock_set_back_does_not_cut_the_branch_short() -> None:
    log = started().user("u2", "later but earlier by the clock", timestamp="2026-08-01T10:00:00.000Z")
    assert spoken(surface_of(log.lines))[-1] == ("user", "later but earlier by the clock")


def test_late_result_of_a_parallel_tool_does_not_become_the_tip() -> None:
    log = (
        started()
        .tool_use("t1", "m")
        .tool_use("t2", "m")
        .tool_result("r2")
        .assistant("a2", "went on")
        .tool_result("r1", parentUuid="t1")
    )
    assert spoken(surface_of(log.lines))[-1] == ("assistant", "went on")


def test_trailing_metadata_on_an_old_parent_does_not_become_the_tip() -> None:
    log = started().user("u2", "second").add("system", "s1", subtype="turn_duration", parentUuid="u1")
    assert spoken(surface_of(log.lines))[-1] == ("user", "second")


def test_records_without_links_are_read_in_file_order() -> None:
    records = [
        {"type": "user", "message": {"content": "first"}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "one"}]}, "parentUuid": None, "uuid": "x"},
        {"type": "user", "message": {"content": "second"}, "parentUuid": None},
    ]
    surface = surface_of([json.dumps(record).encode() for record in records])
    assert (spoken(surface), surface.reading.status) == (
        [("user", "first"), ("assistant", "one"), ("user", "second")],
        SessionStatus.OK,
    )


def test_missing_parent_falls_back_to_file_order_and_is_counted() -> None:
    log = started().user("u2", "second", parentUuid="gone")
    surface = surface_of(log.lines)
    assert spoken(surface) == [("user", "first"), ("assistant", "one"), ("user", "second")]
    assert (surface.reading.status, surface.reading.notes) == (
        SessionStatus.PARTIAL,
        ("1 broken links between records replaced by file order",),
    )


def test_missing_parent_of_the_first_record_is_no_damage() -> None:
    surface = surface_of(Log().user("u1", "first", parentUuid="in another file").lines)
    assert (spoken(surface), surface.reading.status) == ([("user", "first")], SessionStatus.OK)


def test_cycle_and_self_reference_end_with_every_text_once() -> None:
    log = Log().user("u1", "first", parentUuid="a1").assistant("a1", "one").user("u2", "self", parentUuid="u2")
    surface = surface_of(log.lines)
    assert spoken(surface) == [("user", "first"), ("assistant", "one"), ("user", "self")]
    assert surface.reading.status is SessionStatus.PARTIAL


def test_record_written_again_shows_once() -> None:
    log = started().user("u2", "second")
    assert spoken(surface_of([*log.lines, *log.lines[:2]])) == [("user", "first"), ("assistant", "one"), ("user", "second")]


def test_sidechains_in_the_parents_log_are_left_out() -> None:
    log = started().tool_use("t1")
    log.user("s1", "task", isSidechain=True, parentUuid=None).assistant("s2", "done", isSidechain=True)
    log.tool_result("r1", parentUuid="t1").assistant("a2", "two")
    assert spoken(surface_of(log.lines)) == [("user", "first"), ("assistant", "one"), ("assistant", "two")]


@pytest.mark.parametrize("is_subagent", [True, False])
def test_log_of_nothing_but_sidechains_shows_them(*, is_subagent: bool) -> None:
    log = Log().user("s1", "task", isSidechain=True).assistant("s2", "done", isSidechain=True)
    assert spoken(surface_of(log.lines, is_subagent=is_subagent)) == [("user", "task"), ("assistant", "done")]


def test_message_split_over_records_is_joined() -> None:
    log = Log().user("u1", "first").assistant("a1", "one", "m").tool_use("t1", "m").tool_result("r1").assistant("a2", "two", "m")
    assert spoken(surface_of(log.lines)) == [("user", "first"), ("assistant", "one\ntwo")]


def test_text_of_a_split_message_is_kept_once() -> None:
    log = Log().user("u1", "first").assistant("a1", "one", "m").assistant("a2", "one", "m").assistant("a3", "two", "m")
    assert spoken(surface_of(log.lines)) == [("user", "first"), ("assistant", "one\ntwo")]


def test_parts_of_a_split_message_beside_the_branch_are_kept() -> None:
    log = Log().user("u1", "first").assistant("a0", "zero", "m").assistant("a1", "one", "m")
    log.tool_result("r1", parentUuid="a0").assistant("a2", "two")
    assert spoken(surface_of(log.lines)) == [("user", "first"), ("assistant", "zero\none"), ("assistant", "two")]


def test_text_after_a_tool_call_whose_result_carries_the_branch_is_kept() -> None:
    log = Log().user("u1", "first").tool_use("t1", "m").tool_use("t2", "m").assistant("a1", "one", "m")
    log.tool_result("r1", parentUuid="t1").assistant("a2", "two")
    assert spoken(surface_of(log.lines)) == [("user", "first"), ("assistant", "one"), ("assistant", "two")]


def test_reply_beside_the_branch_of_another_message_is_left_out() -> None:
    log = started().assistant("a2", "another").user("u2", "second", parentUuid="a1")
    assert spoken(surface_of(log.lines)) == [("user", "first"), ("assistant", "one"), ("user", "second")]


def compacted(**boundary: object) -> Log:
    log = started().user("u2", "second").assistant("a2", "two")
    log.add("system", "b", subtype="compact_boundary", parentUuid=None, logicalParentUuid="a2", compactMetadata=boundary)
    return log.user("c", "summary of it all", isCompactSummary=True)


def test_compaction_summary_stands_in_place_of_what_it_replaced() -> None:
    log = compacted().user("u3", "third")
    assert spoken(surface_of(log.lines)) == [("summary", "summary of it all"), ("user", "third")]


def test_only_the_newest_compaction_shows() -> None:
    log = compacted().user("u3", "third").add("system", "b2", subtype="compact_boundary", parentUuid=None)
    log.user("c2", "newer summary", isCompactSummary=True)
    assert spoken(surface_of(log.lines)) == [("summary", "newer summary")]


def test_rewind_to_before_a_compaction_brings_the_history_back() -> None:
    log = compacted().user("u3", "third", parentUuid="a1")
    assert spoken(surface_of(log.lines)) == [("user", "first"), ("assistant", "one"), ("user", "third")]


def test_summary_without_mark_or_boundary_is_a_checkpoint() -> None:
    text = "This session is being continued from a previous conversation that ran out of context. It was about tests."
    log = started().user("c", text).user("u3", "third")
    assert spoken(surface_of(log.lines)) == [("summary", text), ("user", "third")]


@pytest.mark.parametrize("parent", ["c", "a2"])
@pytest.mark.parametrize(
    "kept",
    [
        {"preservedSegment": {"headUuid": "u2", "anchorUuid": "c", "tailUuid": "a2"}},
        {"preservedMessages": {"anchorUuid": "c", "uuids": ["u2", "a2"]}},
    ],
)
def test_messages_preserved_by_a_compaction_follow_its_summary(kept: dict[str, object], parent: str) -> None:
    log = compacted(**kept).user("u3", "third", parentUuid=parent)
    expected = [("summary", "summary of it all"), ("user", "second"), ("assistant", "two"), ("user", "third")]
    assert spoken(surface_of(log.lines)) == expected


def test_preserved_messages_show_when_nothing_follows_the_compaction() -> None:
    log = compacted(preservedSegment={"headUuid": "u2", "anchorUuid": "c", "tailUuid": "a2"})
    assert spoken(surface_of(log.lines)) == [("summary", "summary of it all"), ("user", "second"), ("assistant", "two")]


def test_segment_anchored_at_the_boundary_comes_before_the_summary() -> None:
    log = compacted(preservedSegment={"headUuid": "u1", "anchorUuid": "b", "tailUuid": "a1"}).user("u3", "third")
    expected = [("user", "first"), ("assistant", "one"), ("summary", "summary of it all"), ("user", "third")]
    assert spoken(surface_of(log.lines)) == expected


@pytest.mark.parametrize("segment", [{"headUuid": "gone", "tailUuid": "a2"}, {"headUuid": "a2", "tailUuid": "u1"}, [], "x", {}])
def test_segment_that_makes_no_sense_is_ignored(segment: object) -> None:
    log = compacted(preservedSegment=segment).user("u3", "third")
    assert spoken(surface_of(log.lines)) == [("summary", "summary of it all"), ("user", "third")]


@pytest.mark.parametrize(
    "fields",
    [{"isMeta": True}, {"origin": {"kind": "task-notification"}}, {"origin": {"kind": "cli"}}],
)
def test_user_record_from_no_person_is_dropped(fields: dict[str, object]) -> None:
    assert spoken(surface_of(started().user("u2", "injected", **fields).lines)) == [("user", "first"), ("assistant", "one")]


@pytest.mark.parametrize("fields", [{"isMeta": False}, {"origin": {"kind": "human"}}, {"origin": {}}, {"promptSource": "typed"}])
def test_user_record_from_a_person_is_kept(fields: dict[str, object]) -> None:
    assert spoken(surface_of(started().user("u2", "typed", **fields).lines))[-1] == ("user", "typed")


def test_user_record_with_a_tool_result_is_dropped_with_its_text() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": "t", "content": "x"},
        {"type": "text", "text": "[Request interrupted by user]"},
    ]
    assert spoken(surface_of(started().user("u2", content).lines)) == [("user", "first"), ("assistant", "one")]


def test_blocks_of_one_prompt_are_joined_without_the_injected_ones() -> None:
    blocks = ["<ide_opened_file>x</ide_opened_file>", "one", "<system-reminder>y</system-reminder>", "two"]
    surface = surface_of(Log().user("u1", [{"type": "text", "text": block} for block in blocks]).lines)
    assert spoken(surface) == [("user", "one\ntwo")]


@pytest.mark.parametrize(
    ("queued", "typed"),
    [
        ({"prompt": "and the tests", "commandMode": "prompt"}, "and the tests"),
        ({"prompt": [{"type": "text", "text": "look"}, {"type": "image", "source": {}}]}, "look"),
        ({"prompt": "<task-notification>done</task-notification>", "commandMode": "prompt"}, None),
        ({"prompt": "done", "commandMode": "task-notification"}, None),
        ({"prompt": "done", "origin": {"kind": "coordinator"}}, None),
        ({"prompt": "done", "isMeta": True}, None),
        ({"prompt": 7}, None),
    ],
)
def test_text_queued_while_the_agent_worked_is_the_persons_when_typed(queued: dict[str, object], typed: str | None) -> None:
    log = started().add("attachment", "q", attachment={"type": "queued_command", **queued}).assistant("a2", "two")
    added = [("user", typed)] if typed else []
    assert spoken(surface_of(log.lines)) == [("user", "first"), ("assistant", "one"), *added, ("assistant", "two")]


@pytest.mark.parametrize(
    "fields",
    [{"isApiErrorMessage": True}, {"message": {"model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}}],
)
def test_text_the_program_wrote_as_the_model_is_dropped(fields: dict[str, object]) -> None:
    assert spoken(surface_of(started().assistant("a2", "API Error", **fields).lines)) == [("user", "first"), ("assistant", "one")]


def test_reasoning_and_tool_calls_are_dropped() -> None:
    content = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "said"},
        {"type": "tool_use", "input": {"text": "x"}},
    ]
    assert spoken(surface_of(Log().user("u1", "first").reply("a1", content).lines))[-1] == ("assistant", "said")


def test_reply_taken_back_by_a_later_record_is_dropped() -> None:
    log = (
        started()
        .assistant("a2", "half")
        .assistant("a3", "whole", parentUuid="a1", supersedesUuids=["a2"])
        .assistant("a4", "refused")
    )
    log.add("system", "s", subtype="api_refusal", retractedMessageUuids=["a4", 7])
    assert spoken(surface_of(log.lines)) == [("user", "first"), ("assistant", "one"), ("assistant", "whole")]


def test_attachments_of_prompts_are_counted_by_type_and_never_kept() -> None:
    def image(media_type: str) -> dict[str, object]:
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": "QUJD" * 1000}}

    blocks = [
        image("image/png"),
        image("image/jpeg"),
        {"type": "document", "source": {"media_type": "<evil>"}},
        {"type": "text", "text": "see"},
    ]
    fold = ClaudeSurfaceFold("x", is_subagent=False)
    fold.feed(Log().user("u1", blocks).lines[0])
    surface = fold.surface(LogEnd())
    assert spoken(surface) == [("user", "see")]
    assert surface.reading.notes == ("2 images omitted (image/jpeg, image/png)", "1 document omitted")


def test_context_of_a_forked_agent_is_named_as_missing() -> None:
    log = Log().meta("fork-context-ref", parentSessionId="p").user("s1", "task", isSidechain=True)
    assert surface_of(log.lines, is_subagent=True).reading.notes == (
        "the context this agent was forked with is in another session",
    )


def test_torn_tail_is_left_out_and_told() -> None:
    log = started().user("u2", "second")
    surface = surface_of(log.lines[:2], LogEnd(tail=log.lines[2][:-9]))
    assert (spoken(surface), surface.reading.torn_tail) == ([("user", "first"), ("assistant", "one")], True)
    assert surface.reading.status is SessionStatus.PARTIAL


def test_whole_last_record_without_newline_counts_and_is_not_kept() -> None:
    log = started().user("u2", "second").assistant("a2", "two")
    fold = ClaudeSurfaceFold("x", is_subagent=False)
    for line in log.lines[:2]:
        fold.feed(line)
    seen = [spoken(fold.surface(LogEnd(tail=log.lines[2]))), spoken(fold.surface(LogEnd()))]
    for line in log.lines[2:]:
        fold.feed(line)
    whole = [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")]
    assert [*seen, spoken(fold.surface(LogEnd()))] == [whole[:3], whole[:2], whole]


def test_surface_after_each_record_equals_that_of_a_fresh_fold() -> None:
    log = (
        compacted(preservedSegment={"headUuid": "u2", "anchorUuid": "c", "tailUuid": "a2"})
        .user("u3", "third")
        .assistant("a3", "three", "m")
    )
    log.user("s", "side", isSidechain=True, parentUuid=None).assistant("a4", "four", "m", parentUuid="a3").user(
        "u4", "x", parentUuid="gone"
    )
    fold = ClaudeSurfaceFold("5f0c0000-0000-4000-8000-000000000001", is_subagent=False)
    grown = []
    for line in log.lines:
        fold.feed(line)
        grown.append(fold.surface(LogEnd()))
    assert grown == [surface_of(log.lines[: count + 1]) for count in range(len(log.lines))]


def test_damaged_and_unknown_records_are_skipped_and_counted() -> None:
    lines = started().meta("kind-of-next-week", value=1).user("u2", "second", parentUuid="a1").lines
    bad = [
        b'{"type":"user","mess',
        b"\0\0\0",
        b"42",
        b'"text"',
        b"[1]",
        b"",
        b"  ",
        b'{"type":"user","uuid":"x","message":"error"}',
    ]
    reading = surface_of([*lines[:2], *bad, *lines[2:]], LogEnd(skipped_lines=2)).reading
    assert (reading.status, reading.damaged_records, reading.unknown_records) == (SessionStatus.PARTIAL, 8, 1)


def test_deeply_nested_record_is_skipped_and_counted() -> None:
    nested = b'{"type":"user","uuid":"n","message":{"content":' + b"[" * 5000 + b"]" * 5000 + b"}}"
    reading = surface_of([*started().lines, nested]).reading
    assert (reading.status, reading.damaged_records) == (SessionStatus.PARTIAL, 1)


@pytest.mark.parametrize(
    ("lines", "end", "status"),
    [
        ([], LogEnd(), SessionStatus.EMPTY),
        ([b""], LogEnd(), SessionStatus.EMPTY),
        (Log().meta("mode", mode="normal").meta("file-history-snapshot", snapshot={}).lines, LogEnd(), SessionStatus.EMPTY),
        (Log().user("u1", "<command-name>/exit</command-name>").lines, LogEnd(), SessionStatus.EMPTY),
        ([], LogEnd(tail=b'{"type":"user","mess'), SessionStatus.EMPTY),
        ([b'{"type":"user","mess'] * 3, LogEnd(), SessionStatus.DAMAGED),
        (Log().meta("mode", mode="x").lines, LogEnd(skipped_lines=1), SessionStatus.DAMAGED),
        ([], LogEnd(tail=b"\0" * 8192), SessionStatus.DAMAGED),
        (Log().tool_use("t1").tool_result("r1", toolUseResult="x" * (1 << 20)).lines, LogEnd(), SessionStatus.DAMAGED),
        ([b'{"type":"session_meta","payload":{}}', b'{"type":"response_item"}'], LogEnd(), SessionStatus.NOT_A_SESSION),
        ([b"{", b'  "loglines": [', b"  ]"], LogEnd(tail=b"}"), SessionStatus.NOT_A_SESSION),
        ([b'{"loglines":[]}'], LogEnd(), SessionStatus.NOT_A_SESSION),
        ([b"# notes", b"not a log"], LogEnd(), SessionStatus.NOT_A_SESSION),
        ([], LogEnd(tail=b"plain text"), SessionStatus.NOT_A_SESSION),
        ([b'{"type":"user","content":"of another agent","id":"1"}'], LogEnd(), SessionStatus.NOT_A_SESSION),
    ],
)
def test_log_without_a_message_says_why(lines: list[bytes], end: LogEnd, status: SessionStatus) -> None:
    surface = surface_of(lines, end)
    assert (surface.reading.status, surface.messages) == (status, [])
    assert surface.reading.notes != ()


def test_coordinate_is_the_number_of_the_last_record() -> None:
    lines = started().lines
    assert [surface_of(lines[:count]).through_seq for count in (0, 1, 2)] == [None, 0, 1]
