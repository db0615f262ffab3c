from __future__ import annotations

import pytest
from fakes.codex_records import MADE_ID, Rollout, message, spoken

SUMMARY = "Another language model started to solve this problem and produced a summary of its thinking process. Go on:\nDid A."


def compacted(*items: object, text: str = "") -> dict[str, object]:
    return {"message": text, "replacement_history": list(items)}


def test_text_told_by_item_and_event_appears_once() -> None:
    assert Rollout().meta().exchange("q", "a").spoken() == ["u:q", "a:a"]


def test_text_told_by_event_before_item_appears_once() -> None:
    rollout = Rollout().meta().event("user_message", message="q").item("user", "q")
    assert rollout.event("agent_message", message="a").item("assistant", "a").spoken() == ["u:q", "a:a"]


def test_text_told_by_all_three_channels_appears_once() -> None:
    rollout = Rollout().meta().user("q").completed("UserMessage", content=[{"type": "text", "text": "q"}])
    assert rollout.assistant("a").completed("AgentMessage", content=[{"type": "Text", "text": "a"}]).spoken() == ["u:q", "a:a"]


def test_same_text_said_twice_appears_twice() -> None:
    assert Rollout().meta().user("go").user("go").assistant("ok").assistant("ok").spoken() == ["u:go", "u:go", "a:ok", "a:ok"]


def test_items_before_their_events_pair_in_order() -> None:
    rollout = Rollout().meta().user("q").item("assistant", "one").item("assistant", "two")
    assert rollout.event("agent_message", message="one").event("agent_message", message="two").spoken() == [
        "u:q",
        "a:one",
        "a:two",
    ]


def test_event_without_what_the_terminal_hides_pairs_with_the_whole_item() -> None:
    text = "Done.\n<oai-mem-citation>x</oai-mem-citation>"
    rollout = Rollout().meta().user("q").item("assistant", text).event("agent_message", message="Done.")
    assert rollout.spoken() == ["u:q", f"a:{text}"]


def test_plan_inside_an_item_is_not_repeated_and_alone_is_shown() -> None:
    rollout = Rollout().meta().user("q").item("assistant", "Here:\n<proposed_plan>1. x</proposed_plan>")
    rollout.completed("Plan", text="1. x").completed("Plan", text="2. y")
    assert rollout.spoken() == ["u:q", "a:Here:\n<proposed_plan>1. x</proposed_plan>", "a:2. y"]


def test_events_alone_are_enough() -> None:
    assert Rollout().meta().event("user_message", message="q").event("agent_message", message="a").spoken() == ["u:q", "a:a"]


def test_paginated_items_alone_are_enough() -> None:
    rollout = Rollout().meta(history_mode="paginated").completed("UserMessage", content=[{"type": "text", "text": "q"}])
    assert rollout.completed("AgentMessage", content=[{"type": "Text", "text": "a"}]).spoken() == ["u:q", "a:a"]


@pytest.mark.parametrize(
    "injected",
    [
        "# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
        "<ENVIRONMENT_CONTEXT>\n<cwd>/w</cwd>",
        "\n <user_instructions>x",
        "<skill>x</skill>",
        "<turn_aborted>",
        "<user_shell_command>ls",
        "<subagent_notification>",
        "<recommended_plugins>",
        "The following is the Codex agent history whose request",
        '<hook_prompt hook_run_id="1">x</hook_prompt>',
        "Warning: apply_patch was requested via exec_command. Use the apply_patch tool instead of exec_command.",
        SUMMARY,
    ],
)
def test_injected_text_is_not_the_persons(injected: str) -> None:
    rollout = Rollout().meta().item("user", injected).item("user", "q").item("assistant", "a")
    assert rollout.spoken() == ["u:q", "a:a"]


def test_unknown_user_item_is_not_the_persons_where_events_tell_what_was_typed() -> None:
    rollout = Rollout().meta().item("user", "<new_tag>x").exchange("q", "a").item("user", "<newer_tag>y").assistant("b")
    assert rollout.spoken() == ["u:q", "a:a", "a:b"]


def test_user_items_answered_before_the_first_event_stay() -> None:
    rollout = Rollout().meta().item("user", "old").item("assistant", "answer").item("user", "<new_tag>").exchange("q", "a")
    assert rollout.spoken() == ["u:old", "a:answer", "u:q", "a:a"]


def test_answered_user_item_stays_in_a_log_without_turn_marks() -> None:
    rollout = Rollout().meta().user("Start").item("assistant", "Ok").item("user", "Step 1").item("assistant", "Ok")
    assert rollout.spoken() == ["u:Start", "a:Ok", "u:Step 1", "a:Ok"]


def test_old_events_of_injected_kinds_are_left_out() -> None:
    rollout = Rollout().meta().event("user_message", message="be nice", kind="user_instructions")
    assert rollout.event("user_message", message="q", kind="plain").item("assistant", "a").spoken() == ["u:q", "a:a"]


@pytest.mark.parametrize(
    ("text", "request_text"),
    [
        ("# Context from my IDE setup:\n\n## Open tabs:\n- x\n\n## My request for Codex:\nFix it\n", "u:Fix it"),
        ("## My request for Codex: Fix it", "u:Fix it"),
        ("Explain the heading '## My request for Codex:' please", "u:Explain the heading '## My request for Codex:' please"),
    ],
)
def test_request_follows_the_editors_marker_at_the_start_of_a_line(text: str, request_text: str) -> None:
    assert Rollout().meta().user(text).assistant("a").spoken() == [request_text, "a:a"]


def test_blank_images_developer_and_agent_mail_are_left_out() -> None:
    rollout = Rollout().meta().item("developer", "d").item("user", "<image name=[Image #1]>", "look", "</image>")
    rollout.item("assistant", " \n").item("assistant", '{"author":"/root","recipient":"/root/x","content":"do"}')
    rollout.add("response_item", {"type": "agent_message", "content": [{"type": "input_text", "text": "mail"}]})
    assert rollout.item("assistant", "one", "two").spoken() == ["u:look", "a:one\ntwo"]


def test_replacement_history_stands_in_the_place_of_what_it_replaced() -> None:
    rollout = Rollout().meta().exchange("A", "a").exchange("B", "b")
    rollout.add("compacted", compacted(message("developer", "d"), message("user", "B"), message("user", SUMMARY), text=SUMMARY))
    assert rollout.exchange("C", "c").spoken() == ["u:B", f"c:{SUMMARY}", "u:C", "a:c"]


def test_summary_is_known_by_the_compactions_message_too() -> None:
    rollout = Rollout().meta().exchange("A", "a")
    rollout.add("compacted", compacted(message("user", "A"), message("user", "Own words"), text="Own words"))
    assert rollout.spoken() == ["u:A", "c:Own words"]


def test_newest_replacement_history_wins() -> None:
    rollout = Rollout().meta().exchange("A", "a").add("compacted", compacted(message("user", "A")))
    assert rollout.exchange("B", "b").add("compacted", compacted(message("user", "B"))).spoken() == ["u:B"]


def test_opaque_item_is_told_in_a_note() -> None:
    surface = (
        Rollout()
        .meta()
        .exchange("A", "a")
        .add("compacted", compacted({"type": "compaction", "encrypted_content": "x"}))
        .surface()
    )
    assert (spoken(surface), surface.reading.notes, surface.reading.status) == ([], ("compacted history (encrypted)",), "partial")


def test_legacy_compaction_keeps_user_texts_and_the_summary() -> None:
    rollout = Rollout().meta().exchange("A", "a").exchange("B", "b").add("compacted", {"message": "Sum"})
    assert rollout.exchange("C", "c").spoken() == ["u:A", "u:B", "c:Sum", "u:C", "a:c"]


def test_compaction_without_anything_says_so() -> None:
    surface = Rollout().meta().exchange("A", "a").add("compacted", {"message": "", "replacement_history": None}).surface()
    assert (spoken(surface), surface.reading.notes) == (["u:A"], ("compacted history (no summary recorded)",))


def test_rollback_drops_the_last_turns() -> None:
    rollout = Rollout().meta().exchange("A", "a").exchange("B", "b").exchange("C", "c").event("thread_rolled_back", num_turns=2)
    assert rollout.exchange("D", "d").spoken() == ["u:A", "a:a", "u:D", "a:d"]


@pytest.mark.parametrize("turns", [0, -1, None, True, "2", 1.5])
def test_senseless_rollback_drops_nothing(turns: object) -> None:
    assert Rollout().meta().exchange("A", "a").event("thread_rolled_back", num_turns=turns).spoken() == ["u:A", "a:a"]


def test_rollback_of_everything_leaves_an_empty_session() -> None:
    surface = Rollout().meta().exchange("A", "a").event("thread_rolled_back", num_turns=10**9).surface()
    assert (spoken(surface), surface.reading.status) == ([], "empty")


def test_rollback_undoes_a_compaction_inside_the_dropped_turn() -> None:
    rollout = Rollout().meta().exchange("A", "a").turn().user("B").add("compacted", compacted(message("user", "B")))
    assert rollout.assistant("b").event("thread_rolled_back", num_turns=1).spoken() == ["u:A", "a:a"]


def test_rollback_undoes_a_compaction_at_the_start_of_the_dropped_turn() -> None:
    rollout = Rollout().meta().exchange("A", "a").turn().add("compacted", compacted(message("user", "A"))).user("B")
    assert rollout.assistant("b").event("thread_rolled_back", num_turns=1).spoken() == ["u:A", "a:a"]


def test_rollback_keeps_a_compaction_of_its_own_turn() -> None:
    rollout = Rollout().meta().exchange("A", "a").turn().add("compacted", compacted(message("user", SUMMARY))).exchange("B", "b")
    assert rollout.event("thread_rolled_back", num_turns=1).spoken() == [f"c:{SUMMARY}"]


def test_rollback_past_a_compaction_brings_back_what_it_replaced() -> None:
    rollout = Rollout().meta().exchange("A", "a").exchange("B", "b").turn().add("compacted", compacted(message("user", SUMMARY)))
    assert rollout.exchange("C", "c").event("thread_rolled_back", num_turns=2).spoken() == ["u:A", "a:a"]


def test_history_base_makes_the_surface_partial() -> None:
    reading = Rollout().meta(history_base={"thread_id": "base"}).exchange("A", "a").surface().reading
    assert (reading.status, reading.notes) == ("partial", ("earlier turns are in base",))


def test_history_base_does_not_matter_after_a_full_compaction() -> None:
    rollout = (
        Rollout().meta(history_base={"thread_id": "base"}).exchange("A", "a").add("compacted", compacted(message("user", "A")))
    )
    assert (rollout.surface().reading.status, rollout.surface().reading.notes) == ("ok", ())


def test_bare_log_of_2025_is_read() -> None:
    rollout = Rollout().line({"id": MADE_ID, "timestamp": "2025-08-01T10:00:00.000Z", "instructions": None})
    rollout.line({**message("user", "<environment_context>\nCurrent working directory: /work/old\n</environment_context>")})
    rollout.line({"record_type": "state"}).line(message("user", "q")).line(message("assistant", "a"))
    surface = rollout.surface()
    assert (spoken(surface), surface.cwd, surface.reading.unknown_records) == (["u:q", "a:a"], "/work/old", 0)
