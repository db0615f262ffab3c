from __future__ import annotations

import pytest
from fakes.claude_records import Log, spoken, surface_of
from sessionref_server.adapters.sessions.formats.claude_code.surface import ClaudeSurfaceFold
from sessionref_server.adapters.sessions.log_format import LogEnd


def started() -> Log:
    return Log().user("u1", "first").assistant("a1", "one")


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
