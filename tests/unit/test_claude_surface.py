from __future__ import annotations

import json

import pytest
from fakes.claude_records import Log, spoken, surface_of
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
