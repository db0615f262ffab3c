from __future__ import annotations

import pytest
from fakes.codex_records import MADE_ID, Rollout, log_file, message
from sessionref_server.adapters.sessions.formats.codex.head import CodexHeadFold
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.domain.session import ModelRoute

PARENT = "019f9000-0000-7000-8000-0000000000bb"


def test_head_tells_what_the_log_says() -> None:
    rollout = Rollout().meta().add("turn_context", {"cwd": "/other", "model": "gpt-5.5"}).exchange("Question", "Answer")
    head = rollout.event("token_count").head()
    assert (head.native_id, head.title, head.cwd, head.created_at_ms, head.updated_at_ms, head.route, head.status) == (
        MADE_ID,
        "Question",
        "/work/shop",
        1788256800000,
        1788256807000,
        ModelRoute(provider="openai", model="gpt-5.5"),
        "ok",
    )


def test_first_session_meta_alone_is_the_identity() -> None:
    rollout = Rollout().meta(forked_from_id=PARENT).meta(id=PARENT, cwd="/parent").exchange("q", "a")
    head = rollout.head()
    assert (head.native_id, head.cwd, head.parent_native_id, head.is_subagent) == (MADE_ID, "/work/shop", PARENT, False)


@pytest.mark.parametrize(
    ("meta", "parent", "is_subagent"),
    [
        ({"thread_source": "subagent", "parent_thread_id": PARENT, "session_id": "root"}, PARENT, True),
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT}}}}, PARENT, True),
        ({"source": {"subagent": "review"}}, None, True),
        ({"source": "subagent", "forked_from_id": PARENT}, PARENT, True),
        ({"source": "cli", "thread_source": "user"}, None, False),
        ({"history_base": {"thread_id": PARENT}}, PARENT, False),
        ({"history_base": {"thread_id": MADE_ID}}, None, False),
        ({"forked_from_id": 3, "source": [], "history_base": "x"}, None, False),
    ],
)
def test_parent_and_subagent_are_known_by_each_of_their_signs(
    meta: dict[str, object],
    parent: str | None,
    is_subagent: bool,  # noqa: FBT001
) -> None:
    head = Rollout().meta(**meta).exchange("q", "a").head()
    assert (head.parent_native_id, head.is_subagent) == (parent, is_subagent)


def test_subagents_title_is_its_own_prompt_not_its_parents() -> None:
    rollout = Rollout().meta(thread_source="subagent", subagent_history_start_ordinal=5)
    rollout.add("event_msg", {"type": "user_message", "message": "parent's"}, ordinal=2)
    assert rollout.add("event_msg", {"type": "user_message", "message": "own"}, ordinal=6).head().title == "own"


def test_subagent_without_a_prompt_is_called_by_its_nickname() -> None:
    rollout = Rollout().meta(thread_source="subagent", agent_nickname="Noether", agent_role="explorer").item("assistant", "a")
    assert (rollout.head().title, rollout.head().subagent_label) == ("Noether (explorer)", None)


def test_last_name_wins_and_a_removed_one_gives_way_to_the_prompt() -> None:
    rollout = Rollout().meta().exchange("q", "a").event("thread_name_updated", thread_id=MADE_ID, thread_name="One")
    rollout.event("thread_name_updated", thread_id=PARENT, thread_name="Parent's")
    assert rollout.head().title == "One"
    assert rollout.event("thread_name_updated", thread_id=MADE_ID, thread_name=None).head().title == "q"


def test_injected_items_are_no_title_and_an_event_beats_an_item() -> None:
    rollout = Rollout().meta().item("user", "<environment_context>").item("user", "<new_tag>").user("q").assistant("a")
    assert rollout.head().title == "q"


def test_item_is_the_title_where_no_event_tells_a_prompt() -> None:
    assert Rollout().meta().item("user", "q").item("assistant", "a").event("user_message", message="late").head().title == "q"


@pytest.mark.parametrize(
    ("lines", "name", "native_id"),
    [
        (Rollout().item("user", "q").lines, f"rollout-2026-09-01T10-00-00-{PARENT}.jsonl", PARENT),
        (Rollout().meta(id=None, session_id="tree").item("user", "q").lines, "rollout-2026-09-01T10-00-00-x.jsonl", "tree"),
        (Rollout().meta(id="x" * 201).item("user", "q").lines, "rollout-2026-09-01T10-00-00-named.jsonl", "named"),
        (Rollout().item("user", "q").lines, "session_simple.jsonl.zst", "session_simple"),
        (Rollout().line({"id": MADE_ID, "timestamp": "2025-08-01T10:00:00Z"}).lines, "x.jsonl", MADE_ID),
    ],
)
def test_id_falls_back_to_the_header_the_file_name_and_the_tree(lines: list[bytes], name: str, native_id: str) -> None:
    rollout = Rollout()
    rollout.lines = lines
    assert (rollout.head(file=log_file(name)).native_id, rollout.surface(file=log_file(name)).native_id) == (native_id, native_id)


def test_cwd_falls_back_to_the_first_one_an_environment_block_or_a_turn_context_tells() -> None:
    environment = message("user", "<environment_context>\n  <cwd>/env</cwd>\n</environment_context>")
    rollout = Rollout().meta(cwd=None).add("response_item", environment).user("q").assistant("a")
    assert (rollout.head().cwd, rollout.surface().cwd) == ("/env", "/env")
    rollout.add("turn_context", {"cwd": "/turn", "model": "m"})
    assert (rollout.head().cwd, rollout.surface().cwd) == ("/env", "/env")
    rollout = (
        Rollout().meta(cwd="").add("turn_context", {"cwd": "/turn", "model": "m"}).add("response_item", environment).user("q")
    )
    assert (rollout.head().cwd, rollout.surface().cwd) == ("/turn", "/turn")


def test_route_follows_the_newest_model() -> None:
    rollout = Rollout().meta(model_provider=None).add("turn_context", {"model": "one"})
    rollout.event("thread_settings_applied", thread_settings={"model": "two", "model_provider_id": "azure"})
    assert rollout.head().route == ModelRoute(provider="azure", model="two")
    assert rollout.add("turn_context", {"model": "three", "model_provider": "trae"}).head().route == ModelRoute(
        provider="trae", model="three"
    )


def test_route_is_unknown_without_a_model() -> None:
    assert Rollout().meta().exchange("q", "a").head().route is None


def test_settled_fold_needs_marked_lines_only() -> None:
    rollout = Rollout().meta().exchange("q", "a")
    rollout.add("response_item", {"type": "function_call_output", "call_id": "c", "output": '"assistant" "turn_context"'})
    rollout.add("turn_context", {"model": "m"}).exchange("r", "b").event("thread_name_updated", thread_name="N").event(
        "token_count"
    )
    rollout.assistant("end").event("token_count")
    fold, whole = CodexHeadFold(log_file()), CodexHeadFold(log_file())
    unmarked = 0
    for index, line in enumerate(rollout.lines):
        whole.feed(line)
        if not fold.settled or fold.marker.search(line) or index >= len(rollout.lines) - 3:
            fold.feed(line)
        else:
            unmarked += 1
    assert (fold.head(LogEnd()), unmarked) == (whole.head(LogEnd()), 9)


def test_last_activity_is_the_last_message_or_tool_not_what_is_written_after_it() -> None:
    rollout = (
        Rollout().meta().exchange("q", "a").add("response_item", {"type": "function_call_output", "call_id": "c", "output": "x"})
    )
    rollout.event("token_count").event("thread_name_updated", thread_name="N").add("turn_context", {"model": "m"})
    assert rollout.head().updated_at_ms == 1788256807000


def test_head_is_not_changed_by_a_tail_and_reads_a_whole_one() -> None:
    fold = CodexHeadFold(log_file())
    for line in Rollout().meta().exchange("q", "a").lines:
        fold.feed(line)
    before = fold.head(LogEnd())
    tail = Rollout().event("thread_name_updated", thread_name="N").lines[0]
    assert (fold.head(LogEnd(tail=tail)).title, fold.head(LogEnd(tail=tail[:50])).status, fold.head(LogEnd())) == (
        "N",
        "partial",
        before,
    )


def test_history_base_is_partial_until_a_compaction_wrote_the_history_down() -> None:
    rollout = Rollout().meta(history_base={"thread_id": PARENT}).exchange("q", "a")
    assert rollout.head().status == "partial"
    assert rollout.add("compacted", {"message": "", "replacement_history": [message("user", "q")]}).head().status == "ok"


def test_giant_prompt_makes_a_short_title() -> None:
    assert len(Rollout().meta().user("x" * 1_000_000).head().title or "") == 4096
