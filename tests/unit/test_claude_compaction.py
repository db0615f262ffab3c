from __future__ import annotations

import pytest
from fakes.claude_records import MADE_ID, Log, spoken, surface_of
from sessionref_server.adapters.sessions.formats.claude_code.surface import ClaudeSurfaceFold
from sessionref_server.adapters.sessions.log_format import LogEnd


def compacted(**boundary: object) -> Log:
    log = Log().user("u1", "first").assistant("a1", "one").user("u2", "second").assistant("a2", "two")
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
    log = Log().user("u1", "first").assistant("a1", "one").user("c", text).user("u3", "third")
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


def test_surface_after_each_record_equals_that_of_a_fresh_fold() -> None:
    log = (
        compacted(preservedSegment={"headUuid": "u2", "anchorUuid": "c", "tailUuid": "a2"})
        .user("u3", "third")
        .assistant("a3", "three", "m")
    )
    log.user("s", "side", isSidechain=True, parentUuid=None).assistant("a4", "four", "m", parentUuid="a3").user(
        "u4", "x", parentUuid="gone"
    )
    fold = ClaudeSurfaceFold(MADE_ID, is_subagent=False)
    grown = []
    for line in log.lines:
        fold.feed(line)
        grown.append(fold.surface(LogEnd()))
    assert grown == [surface_of(log.lines[: count + 1]) for count in range(len(log.lines))]
