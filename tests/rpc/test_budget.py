"""The byte budget of a source: never exceeded by a byte, never cut inside a character, and every missing byte is counted."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rpc.agent_logs import dsh_assistant, dsh_checkpoint, dsh_header, dsh_lines, dsh_tool_result, dsh_user
from rpc.context_text import ContextText, read_context
from rpc.failures import failure_of
from rpc.served import Serve
from rpc.vector_rig import VectorRig, in_module_loop
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import PrepareRequest
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.session import SessionId
from sessionref_server.service.prepare import PrepareLimits

SOURCE = "source"
CUT = re.compile(r"\n\[… omitted (\d+) UTF-8 bytes …\]")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def user(text: str, *, checkpoint: bool = False) -> Message:
    return Message(Role.USER, text, checkpoint)


def assistant(text: str) -> Message:
    return Message(Role.ASSISTANT, text)


CONVERSATIONS: dict[str, list[Message]] = {
    "one long message": [user("y" * 400)],
    "ten alphabets": [user(ALPHABET * 10)],
    "wide characters": [user("中" * 4000)],
    "characters outside the basic plane": [user("🚀" * 500), assistant("🚀" * 100)],
    "combining characters": [user("e\u0301" * 600)],
    "a family": [user("👩\u200d👩\u200d👧" * 200)],
    "every character is escaped": [assistant("<" * 3000)],
    "quotes and line breaks": [user('"\\\n\t' * 300)],
    "control characters": [user("\x00\x1b\x1f" * 300)],
    "many small messages": [user(f"message {number} " + "x" * 50) for number in range(60)],
    "checkpoint and turns": [
        user("summary " * 20, checkpoint=True),
        *(user(f"turn {number} " + "x" * 90) for number in range(9)),
    ],
    "three checkpoints": [user(f"{number}" * 200, checkpoint=True) for number in range(3)],
    "newest is the longest": [user("a" * 50), assistant("b" * 60), user("c" * 700)],
    "all of one length": [user("d" * 100), assistant("e" * 100), user("f" * 100)],
    "text that looks like a notice": [user("x\n[… omitted 5 UTF-8 bytes …]" * 20)],
    "text of one character": [user("x"), assistant("y")],
}
each_conversation = pytest.mark.parametrize("messages", list(CONVERSATIONS.values()), ids=list(CONVERSATIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    text: ContextText
    reference: reference_pb2.CapturedReference


def capture(messages: list[Message]) -> Capture:
    return Capture(session_id=SessionId(SOURCE), cwd=None, through_seq=len(messages), conversation=Conversation.of(messages))


async def prepared(rig: VectorRig, budget_bytes: int) -> Outcome:
    stub = await rig.stub(limits=PrepareLimits(max_reference_bytes=budget_bytes), spill=False)
    context = (await stub.Prepare(request(), timeout=20)).additional_context
    return Outcome(text=read_context(context), reference=context.source.references[0])


def request() -> PrepareRequest:
    return PrepareRequest(
        target=reference_pb2.Target(session_id="me"), references=[reference_pb2.SessionReferenceInput(session_id=SOURCE)]
    )


async def smallest_budget(rig: VectorRig, whole_bytes: int) -> int:
    """The smallest budget that works; one byte less is refused."""
    fails, works = 0, whole_bytes
    while works - fails > 1:
        middle = (fails + works) // 2
        stub = await rig.stub(limits=PrepareLimits(max_reference_bytes=middle), spill=False)
        call = stub.Prepare(request(), timeout=20)
        fails, works = (fails, middle) if (await call.code()).value[0] == 0 else (middle, works)
    return works


def check_facts(messages: list[Message], budget_bytes: int, outcome: Outcome) -> None:
    (preview,) = outcome.text.previews
    assert outcome.text.previews_bytes - len("[]") <= budget_bytes
    kept = preview["conversation"]
    reference = outcome.reference
    assert (reference.original_messages, reference.retained_messages) == (len(messages), len(kept))
    assert reference.omitted_messages == len(messages) - len(kept)
    originals = matched(messages, kept)
    missing = sum(len(message.text.encode()) for message in messages) - sum(len(message.text.encode()) for message in originals)
    missing += sum(missing_bytes(message.text, shown["text"]) for message, shown in zip(originals, kept, strict=True))
    assert reference.omitted_bytes == missing
    assert reference.truncated == (missing > 0 or len(kept) < len(messages))
    assert originals[-1] is messages[-1]
    assert [message for message in messages if message.checkpoint] == [message for message in originals if message.checkpoint]


def matched(messages: list[Message], kept: list[dict[str, Any]]) -> list[Message]:
    """The messages that were kept: all checkpoints and the newest run of the others."""
    plain = [message for message in messages[:-1] if not message.checkpoint]
    newest = messages[-1]
    checkpoints = sum(message.checkpoint for message in messages[:-1])
    survivors = plain[len(plain) - (len(kept) - checkpoints - 1) :] if len(kept) > checkpoints + 1 else []
    alive = {id(message) for message in [*survivors, newest]}
    return [message for message in messages if message.checkpoint or id(message) in alive]


def missing_bytes(original: str, shown: str) -> int:
    """Bytes a shown text lacks; head and tail are whole parts of the original that do not overlap."""
    if shown == original:
        return 0
    if not shown:
        return len(original.encode())
    notice = [*CUT.finditer(shown)][-1]
    assert notice.end() == len(shown)
    visible, stated = shown[: notice.start()], int(notice[1])
    assert len(visible.encode()) + stated == len(original.encode())
    assert any(original.startswith(visible[:cut]) and original.endswith(visible[cut:]) for cut in range(len(visible) + 1))
    return stated


@in_module_loop
@each_conversation
async def test_every_budget_from_the_smallest_on_is_kept(rig: VectorRig, messages: list[Message]) -> None:
    rig.source.fill([], [capture(messages)])
    whole_bytes = (await prepared(rig, 10_000_000)).text.previews_bytes - len("[]")
    smallest = await smallest_budget(rig, whole_bytes)
    if smallest > 1:
        stub = await rig.stub(limits=PrepareLimits(max_reference_bytes=smallest - 1), spill=False)
        assert (await failure_of(stub.Prepare(request(), timeout=20))).reason == "SESSION_REFERENCE_BUDGET_EXCEEDED"
    budgets = {*range(smallest, smallest + 65, 3), *range(smallest, whole_bytes, max(1, (whole_bytes - smallest) // 20))}
    for budget_bytes in sorted({*budgets, smallest + 1, whole_bytes - 1, whole_bytes}):
        check_facts(messages, budget_bytes, await prepared(rig, budget_bytes))
    assert not (await prepared(rig, whole_bytes)).reference.truncated


@in_module_loop
async def test_cut_never_falls_inside_a_character_at_neighbouring_budgets(rig: VectorRig) -> None:
    messages = [user("中" * 4000)]
    rig.source.fill([], [capture(messages)])
    for budget_bytes in range(300, 372):
        outcome = await prepared(rig, budget_bytes)
        check_facts(messages, budget_bytes, outcome)
        assert set(outcome.text.previews[0]["conversation"][0]["text"].partition("\n")[0]) == {"中"}


@in_module_loop
async def test_the_same_budget_gives_the_same_preview_every_time(rig: VectorRig) -> None:
    rig.source.fill([], [capture(CONVERSATIONS["checkpoint and turns"])])
    seen = {json.dumps((await prepared(rig, 600)).text.previews) for _ in range(5)}
    assert len(seen) == 1


@in_module_loop
@pytest.mark.parametrize("place", [0, 10, 18, 19])
async def test_giant_message_costs_no_newer_one(rig: VectorRig, place: int) -> None:
    messages = [user(f"small {number}") for number in range(20)]
    messages[place] = user("g" * 2_000_000)
    rig.source.fill([], [capture(messages)])
    outcome = await prepared(rig, 65_536)
    check_facts(messages, 65_536, outcome)
    shown = [message["text"] for message in outcome.text.previews[0]["conversation"]]
    assert shown[-(19 - place) :] == [f"small {number}" for number in range(place + 1, 20)] or place == 19


async def test_blocks_that_are_no_text_neither_show_nor_count(serve: Serve, tmp_path: Path) -> None:
    image = {"type": "image", "mediaType": "image/png", "data": "aW1hZ2U" * 4000}
    call = {"type": "tool-call", "callId": "c", "name": "t", "arguments": "{}"}
    lines = [
        dsh_header("b-10"),
        dsh_user(1, "look"),
        dsh_assistant(2, "<" * 3000, image, call, {"type": "reasoning", "text": "private"}),
        dsh_tool_result(3, "aW1hZ2U" * 4000),
    ]
    (tmp_path / "b-10.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    async with serve({"dsh": tmp_path}, prepare__max_reference_bytes="2048") as served:
        context = (await served.prepare("b-10")).additional_context
        text = read_context(context)
        assert text.previews_bytes - len("[]") <= 2048
        everything = (
            context.content[0].text.text + (await served.read_snapshot(context.omissions[0].saved.locator, "me")).decode()
        )
        assert [hidden for hidden in ("aW1hZ2U", "private", "tool-call", "callId") if hidden in everything] == []
        assert context.source.references[0].original_messages == 2


async def test_replaced_turns_never_show_and_the_checkpoint_outlives_every_cut(serve: Serve, tmp_path: Path) -> None:
    old = dsh_lines("k-2", [("user", "old-one"), ("assistant", "old-two"), ("user", "old-three"), ("assistant", "old-four")])
    later = [dsh_user(seq, f"later {seq} " + "x" * 200) for seq in range(6, 26)]
    (tmp_path / "k-2.jsonl").write_bytes(b"\n".join([*old, dsh_checkpoint(5, "summary", 1, 4), *later]) + b"\n")
    async with serve({"dsh": tmp_path}, prepare__max_reference_bytes="1000") as served:
        context = (await served.prepare("k-2")).additional_context
        (preview,) = read_context(context).previews
        assert preview["conversation"][0] == {"role": "user", "text": "summary"}
        assert preview["conversation"][-1]["text"].startswith("later 25")
        saved = await served.read_snapshot(context.omissions[0].saved.locator, "me")
        assert "old-" not in context.content[0].text.text + saved.decode()
        assert context.source.references[0].compacted


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([dsh_tool_result(1, "out"), dsh_assistant(2, {"type": "reasoning", "text": "x"})], id="tools and reasoning"),
        pytest.param([dsh_assistant(1, {"type": "image", "mediaType": "image/png", "data": "x"})], id="an image"),
        pytest.param([dsh_user(1, "<env>", kind="plugin", plugin="env")], id="injected text"),
        pytest.param([dsh_user(1, "")], id="an empty text"),
        pytest.param([], id="a header"),
    ],
)
async def test_session_with_nothing_to_show_is_refused(serve: Serve, tmp_path: Path, rows: list[bytes]) -> None:
    (tmp_path / "k-4.jsonl").write_bytes(b"\n".join([dsh_header("k-4"), *rows]) + b"\n")
    async with serve({"dsh": tmp_path}) as served:
        assert (await failure_of(served.prepare("k-4"))).reason == "SESSION_REFERENCE_READ_FAILED"
        (status,) = (await served.search()).source_statuses
        assert (status.listed_sessions, status.empty_sessions) == (0, 1)


@in_module_loop
async def test_capture_with_nothing_to_show_says_so_in_text_and_fields(rig: VectorRig) -> None:
    rig.source.fill([], [capture([])])
    outcome = await prepared(rig, 1000)
    assert list(outcome.reference.reading.notes) == ["no visible messages"]
    assert ["no visible messages" in fact for fact in outcome.text.facts] == [True]
