from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.prepare.transcript import transcript_bytes
from sessionref_server.domain.session import SessionId
from sessionref_server.service.transcripts import Transcripts

P = ParamSpec("P")
T = TypeVar("T")

LIMIT_BYTES = 1_000_000


class CountingOffload:
    """Works at once, and counts the bytes it built."""

    def __init__(self) -> None:
        self.built_bytes = 0

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)

    async def build_bytes(self, pieces: Callable[P, Iterable[bytes]], /, *args: P.args, **kwargs: P.kwargs) -> bytes:
        built = b"".join(pieces(*args, **kwargs))
        self.built_bytes += len(built)
        return built


def capture_of(*messages: str, session_id: str = "a", cwd: str = "/work") -> Capture:
    """Messages of the user, and of the assistant where a text begins with ``>``."""
    spoken = [Message(Role.ASSISTANT if text.startswith(">") else Role.USER, text) for text in messages]
    return Capture(session_id=SessionId(session_id), cwd=cwd, conversation=Conversation.of(spoken))


async def test_of_a_conversation_that_grew_only_the_added_messages_are_written() -> None:
    offload = CountingOffload()
    transcripts = Transcripts(offload, LIMIT_BYTES)
    await transcripts.build(capture_of("é, 1", ">2" * 1000), "L")
    offload.built_bytes = 0
    grown = capture_of("é, 1", ">2" * 1000, "three", ">4", cwd="/elsewhere")

    built = await transcripts.build(grown, "another label")

    assert built == transcript_bytes(grown, "another label")
    assert offload.built_bytes == len('### Message 3: user\n"three"\n### Message 4: assistant\n">4"\n')


async def test_an_unchanged_conversation_is_not_written_again() -> None:
    offload = CountingOffload()
    transcripts = Transcripts(offload, LIMIT_BYTES)
    await transcripts.build(capture_of("1", ">2"), "L")
    offload.built_bytes = 0
    again = capture_of("1", ">2")
    assert (await transcripts.build(again, "L"), offload.built_bytes) == (transcript_bytes(again, "L"), 0)


async def test_a_conversation_with_another_past_is_written_anew() -> None:
    transcripts = Transcripts(CountingOffload(), LIMIT_BYTES)
    for texts in (("1", "23", "4"), ("1", "23"), ("12", "3", "4"), ("1", ">2", "4"), ("1", "2", "4"), ("5", "2", "4", "6")):
        capture = capture_of(*texts)
        assert await transcripts.build(capture, "L") == transcript_bytes(capture, "L")


async def test_what_is_kept_has_a_limit() -> None:
    offload = CountingOffload()
    transcripts = Transcripts(offload, LIMIT_BYTES)
    large = "x" * (LIMIT_BYTES // 5)
    for session_id in "abcd":
        await transcripts.build(capture_of(large, session_id=session_id), "L")
    offload.built_bytes = 0
    await transcripts.build(capture_of(large, "more", session_id="d"), "L")
    assert offload.built_bytes == len('### Message 2: user\n"more"\n')
    await transcripts.build(capture_of(large, "more", session_id="a"), "L")
    assert offload.built_bytes > len(large)
