from __future__ import annotations

from pathlib import Path

import pytest
from fakes.claude_records import MADE_ID, Log, head_of
from sessionref_server.adapters.sessions.formats.claude_code.head import ClaudeHeadFold
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.adapters.sessions.log_reader import FoldReader
from sessionref_server.domain.session import ModelRoute, SessionStatus

OTHER_ID = "5f0c0000-0000-4000-8000-00000000000f"


def started() -> Log:
    return Log().user("u1", "first").assistant("a1", "one")


@pytest.mark.parametrize(
    ("titles", "title"),
    [
        ([], "first"),
        ([("summary", {"summary": "S", "leafUuid": "a1"})], "S"),
        ([("summary", {"summary": "of another session", "leafUuid": "gone"})], "first"),
        ([("ai-title", {"aiTitle": "AI"}), ("summary", {"summary": "S", "leafUuid": "a1"})], "AI"),
        ([("agent-name", {"agentName": "Agent"}), ("ai-title", {"aiTitle": "AI"})], "Agent"),
        ([("custom-title", {"customTitle": "Mine"}), ("agent-name", {"agentName": "Agent"})], "Mine"),
        ([("ai-title", {"aiTitle": "old"}), ("ai-title", {"aiTitle": "new"})], "new"),
        ([("custom-title", {"customTitle": "Mine"}), ("custom-title", {"customTitle": " "})], "first"),
        ([("custom-title", {"customTitle": "two\nlines"})], "two\nlines"),
        ([("custom-title", {"customTitle": 7}), ("custom-title", {})], "first"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_title_is_the_strongest_wherever_it_stands(
    titles: list[tuple[str, dict[str, object]]], title: str, *, first: bool
) -> None:
    log = started()
    named = Log()
    for kind, fields in titles:
        named.meta(kind, **fields)
    assert head_of([*named.lines, *log.lines] if first else [*log.lines, *named.lines]).title == title


def test_summary_of_a_dead_branch_is_no_title() -> None:
    log = started().user("u2", "dead").assistant("a2", "dead").user("u3", "live", parentUuid="a1")
    log.meta("summary", summary="dead", leafUuid="a2").meta("summary", summary="live", leafUuid="u3").meta(
        "summary", summary="older", leafUuid="u1"
    )
    assert head_of(log.lines).title == "live"


def test_summary_of_history_before_a_compaction_is_still_a_title() -> None:
    log = started().add("system", "b", subtype="compact_boundary", parentUuid=None, logicalParentUuid="a1")
    log.user("c", "summary", isCompactSummary=True).meta("summary", summary="S", leafUuid="a1")
    assert head_of(log.lines).title == "S"


def test_title_is_the_first_real_prompt_of_the_whole_log() -> None:
    log = Log().user("m", "<command-name>/clear</command-name>").user("i", "injected", isMeta=True).user("u1", "first")
    log.user("u2", "live", parentUuid="i")
    assert head_of(log.lines).title == "first"


@pytest.mark.parametrize("as_block", [True, False])
def test_title_of_a_session_of_slash_commands_is_the_first_of_them(*, as_block: bool) -> None:
    text = "<command-message>x</command-message>\n<command-name>/fix</command-name>\n<command-args>all of it</command-args>"
    content = [{"type": "text", "text": text}] if as_block else text
    assert head_of(Log().user("u1", content).assistant("a1", "one").lines).title == "/fix all of it"


def test_cwd_is_the_first_recorded_outside_sidechains() -> None:
    log = (
        Log()
        .meta("mode", mode="x")
        .user("s", "task", isSidechain=True, cwd="/side")
        .user("u1", "first", cwd="/main")
        .user("u2", "x", cwd="/main/sub")
    )
    assert head_of(log.lines).cwd == "/main"


def test_cwd_of_a_relocated_session_is_where_it_went() -> None:
    log = started().meta("relocated", relocatedCwd="/a").meta("relocated", relocatedCwd="/b").user("u2", "x")
    assert head_of(log.lines).cwd == "/b"


def test_cwd_is_absent_when_no_record_names_one() -> None:
    assert head_of(Log().user("u1", "first", cwd=None).lines).cwd is None


def test_times_are_of_the_first_record_and_of_the_last_message() -> None:
    log = started().meta("queue-operation", timestamp="2027-01-01T00:00:00.000Z")
    head = head_of([*Log().meta("queue-operation", timestamp="2026-08-31T00:00:00Z").lines, *log.lines])
    assert (head.created_at_ms, head.updated_at_ms) == (1788134400000, 1788256920000)


def test_model_is_that_of_the_last_reply_of_the_main_conversation() -> None:
    def said(model: str) -> dict[str, object]:
        return {"message": {"model": model, "content": [{"type": "text", "text": "x"}]}}

    log = started().assistant("a2", "x", **said("claude-opus-5")).assistant("a3", "x", **said("<synthetic>"))
    log.assistant("s", "x", isSidechain=True, **said("claude-haiku-5"))
    assert head_of(log.lines).route == ModelRoute(provider="anthropic", model="claude-opus-5")


def test_log_without_a_reply_has_no_route() -> None:
    assert head_of(Log().user("u1", "first").lines).route is None


@pytest.mark.parametrize("is_subagent", [True, False])
def test_log_of_nothing_but_sidechains_is_a_subagent_with_its_parent(*, is_subagent: bool) -> None:
    log = (
        Log()
        .user("s1", "task", isSidechain=True, sessionId=OTHER_ID)
        .assistant("s2", "done", isSidechain=True, sessionId=OTHER_ID)
    )
    head = head_of(log.lines, is_subagent=is_subagent)
    assert (head.is_subagent, head.parent_native_id, head.title, head.status) == (True, OTHER_ID, "task", SessionStatus.OK)


def test_forked_agent_names_its_parent_in_a_pointer() -> None:
    log = Log().meta("fork-context-ref", parentSessionId=OTHER_ID, agentId="a").user("s1", "task", isSidechain=True)
    assert head_of(log.lines, is_subagent=True).parent_native_id == OTHER_ID


def test_session_with_inline_sidechains_is_no_subagent() -> None:
    head = head_of(started().user("s", "task", isSidechain=True, sessionId=OTHER_ID).lines)
    assert (head.is_subagent, head.parent_native_id, head.native_id) == (False, None, MADE_ID)


def test_whole_last_record_without_newline_counts_and_is_not_kept() -> None:
    log = started().meta("custom-title", customTitle="Mine")
    fold = ClaudeHeadFold(MADE_ID, None, is_subagent=False)
    for line in log.lines[:2]:
        fold.feed(line)
    assert [fold.head(LogEnd(tail=log.lines[2])).title, fold.head(LogEnd()).title] == ["Mine", "first"]


@pytest.mark.parametrize(
    ("lines", "end", "status"),
    [
        (started().lines, LogEnd(), SessionStatus.OK),
        (started().lines, LogEnd(tail=b'{"type":'), SessionStatus.PARTIAL),
        ([*started().lines, b"{bad"], LogEnd(), SessionStatus.PARTIAL),
        (started().user("u2", "x", parentUuid="gone").lines, LogEnd(), SessionStatus.PARTIAL),
        ([], LogEnd(), SessionStatus.EMPTY),
        ([b'{"type":"user","mess'], LogEnd(), SessionStatus.DAMAGED),
        ([b'{"type":"response_item","payload":{}}'], LogEnd(), SessionStatus.NOT_A_SESSION),
    ],
)
def test_state_is_that_of_the_surface(lines: list[bytes], end: LogEnd, status: SessionStatus) -> None:
    head = head_of(lines, end)
    assert (head.status, head.status_detail != "") == (status, status is not SessionStatus.OK)


def padded(log: Log) -> ClaudeHeadFold:
    fold = ClaudeHeadFold(MADE_ID, None, is_subagent=False)
    for line in log.user("p", [{"type": "tool_result", "content": "x" * 70_000}]).lines:
        fold.feed(line)
    return fold


def test_head_is_settled_once_the_beginning_has_told_all() -> None:
    settled = [padded(log).settled for log in (started(), Log().assistant("a1", "one"), Log().user("u1", "first"))]
    assert settled == [True, False, False]


def test_short_log_is_never_settled() -> None:
    fold = ClaudeHeadFold(MADE_ID, None, is_subagent=False)
    for line in started().lines:
        fold.feed(line)
    assert fold.settled is False


def test_summary_keeps_the_head_open_until_a_stronger_title_comes() -> None:
    log = started().meta("summary", summary="S", leafUuid="a9")
    assert padded(log).settled is False
    assert padded(started().meta("summary", summary="S", leafUuid="a9").meta("ai-title", aiTitle="AI")).settled is True


def test_links_broken_by_skipped_lines_are_no_damage() -> None:
    fold = padded(started())
    assert fold.settled
    fold.feed(Log().user("u9", "much later", parentUuid="skipped").lines[0])
    assert fold.head(LogEnd()).status is SessionStatus.OK


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"custom-title","customTitle":"x"}',
        b'{"type": "custom-title", "customTitle": "x"}',
        b'{"sessionId":"s","type":"ai-title"}',
        b'{"type":"agent-name"}',
        b'{"type":"summary"}',
        b'{"type":"relocated"}',
    ],
)
def test_marker_matches_every_record_that_can_change_the_head(line: bytes) -> None:
    assert ClaudeHeadFold.marker.search(line) is not None


def test_marker_does_not_match_such_a_record_quoted_in_a_text() -> None:
    assert ClaudeHeadFold.marker.search(rb'{"type":"user","message":{"content":"{\"type\":\"custom-title\"}"}}') is None


def test_long_log_tells_title_and_last_times_without_being_read_whole(tmp_path: Path) -> None:
    log = started()
    for number in range(300):
        log.tool_use(f"t{number}").tool_result(f"r{number}", toolUseResult="x" * 2000)
        if number == 150:
            log.meta("custom-title", customTitle="Mine")
    log.user("u9", "last").assistant("a9", "end")
    path = tmp_path / f"{MADE_ID}.jsonl"
    path.write_bytes(b"\n".join(log.lines) + b"\n")
    fold = ClaudeHeadFold(MADE_ID, None, is_subagent=False)
    head = fold.head(FoldReader(str(path), fold, is_head=True).read())
    whole = head_of(log.lines)
    assert head == whole
    assert (head.title, head.status, fold.settled) == ("Mine", SessionStatus.OK, True)
