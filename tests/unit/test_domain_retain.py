from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.errors import BudgetExceededError
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.prepare.retain import Retained, retain
from sessionref_server.domain.prepare.truncate import shorten
from sessionref_server.domain.session import SessionId

TEXTS = st.text(st.sampled_from('ab<"\\\n\x01é数🚀'), min_size=1, max_size=120)
MESSAGES = st.lists(st.builds(Message, st.sampled_from(Role), TEXTS, st.booleans()), max_size=12)


def capture_of(messages: list[Message]) -> Capture:
    return Capture(session_id=SessionId("s<1"), cwd=None, through_seq=7, conversation=Conversation.of(messages))


def naive_size(messages: list[Message]) -> int:
    conversation = [{"role": message.role.value, "text": message.text} for message in messages]
    preview = {"sessionId": "s<1", "label": "L", "cwd": None, "capturedThroughSeq": 7, "conversation": conversation}
    compact = json.dumps(preview, ensure_ascii=False, separators=(",", ":"))
    return len(compact.replace("<", "\\u003c").encode())


def naive_retain(messages: list[Message], limit_bytes: int) -> list[Message] | None:
    """The rule to the letter, measuring everything anew at each step."""
    kept = [[message, message.text] for message in messages]

    def shown() -> list[Message]:
        return [Message(message.role, text) for message, text in kept]

    while naive_size(shown()) > limit_bytes:
        droppable = [item for item in kept[:-1] if not item[0].checkpoint]
        if droppable:
            kept.remove(droppable[0])
            continue
        longest = max(kept, key=lambda item: len(item[1].encode()), default=None)
        if longest is None or not longest[1]:
            return None
        overflow = naive_size(shown()) - limit_bytes
        longest[1] = shorten(longest[0].text.encode(), max(0, len(longest[1].encode()) - overflow))[0]
    return shown()


def outcome(messages: list[Message], limit_bytes: int) -> Retained | None:
    try:
        return retain(capture_of(messages), "L", limit_bytes)
    except BudgetExceededError:
        return None


def previewed(retained: Retained) -> list[Message]:
    return [Message(Role(item["role"]), item["text"]) for item in json.loads(retained.preview_json)["conversation"]]


@given(MESSAGES, st.integers(0, 1_500))
def test_what_is_kept_is_what_the_rule_says(messages: list[Message], limit_bytes: int) -> None:
    retained = outcome(messages, limit_bytes)

    assert (None if retained is None else previewed(retained)) == naive_retain(messages, limit_bytes)


@given(MESSAGES, st.integers(0, 1_500))
def test_a_preview_is_within_its_budget_and_accounts_for_every_byte(messages: list[Message], limit_bytes: int) -> None:
    retained = outcome(messages, limit_bytes)
    if retained is None:
        return
    shown = previewed(retained)
    checkpoints = sum(message.checkpoint for message in messages[:-1])

    assert len(retained.preview_json) <= limit_bytes
    assert b"<" not in retained.preview_json
    assert retained.original_messages == len(messages)
    assert retained.retained_messages + retained.omitted_messages == len(messages)
    assert retained.retained_messages == len(shown) >= min(1, len(messages)) + checkpoints
    assert retained.compacted is any(message.checkpoint for message in messages)
    assert retained.truncated is (shown != [Message(message.role, message.text) for message in messages])
    assert retained == outcome(messages, limit_bytes)


@given(TEXTS, st.integers(0, 400))
def test_a_shortened_text_says_exactly_what_is_missing(text: str, limit_bytes: int) -> None:
    original = text.encode()
    if limit_bytes >= len(original):
        return
    shortened, missing = shorten(original, limit_bytes)

    assert len(shortened.encode()) <= limit_bytes
    head_and_tail, marker, _ = shortened.rpartition("\n[… omitted ")
    assert not shortened or marker
    assert len(head_and_tail.encode()) + missing == len(original)
    assert not shortened or shortened.endswith(f"\n[… omitted {missing} UTF-8 bytes …]")


def test_a_giant_message_goes_and_the_newest_stays_whole() -> None:
    small = [Message(Role.USER, f"small {number}") for number in range(20)]
    messages = [*small, Message(Role.ASSISTANT, "g" * 2_000_000), Message(Role.USER, "newest")]

    retained = retain(capture_of(messages), "L", 65_536)

    assert previewed(retained) == [Message(Role.USER, "newest")]


def test_an_empty_session_has_an_empty_preview() -> None:
    retained = retain(capture_of([]), "L", 1_000)

    assert (previewed(retained), retained.truncated) == ([], False)


def test_a_source_that_cannot_fit_is_named_with_its_budget() -> None:
    with pytest.raises(BudgetExceededError) as raised:
        retain(capture_of([Message(Role.USER, "x")]), "L", 10)

    assert raised.value.metadata == {"session_id": "s<1", "maximum_bytes": "10"}


@given(MESSAGES)
def test_a_packed_conversation_knows_its_checkpoints_and_roles(messages: list[Message]) -> None:
    conversation = Conversation.of(messages)

    assert conversation.checkpoint_indices() == [index for index, message in enumerate(messages) if message.checkpoint]
    assert [conversation.role(index) for index in range(len(messages))] == [message.role for message in messages]
    assert list(conversation) == messages
