from __future__ import annotations

import asyncio
import re

from fakes.memory_session_source import MemorySessionSource
from sessionref_server.adapters.sessions.redacting import RedactingSource, redact_capture, title_redactor
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.session import SessionHead, SessionId

ID = SessionId("memory:one")


class PatternDetector:
    """Finds what a pattern matches, and counts how often it is asked."""

    def __init__(self, pattern: bytes = rb"\bKEY-[0-9]+\b") -> None:
        self._pattern = re.compile(pattern, re.DOTALL)
        self.calls = 0
        self.scanned_bytes = 0

    def find(self, text: bytes) -> list[tuple[int, int]]:
        self.calls += 1
        self.scanned_bytes += len(text)
        return [found.span() for found in self._pattern.finditer(text)]


def user(text: str) -> Message:
    return Message(Role.USER, text)


def source_of(*texts: str) -> MemorySessionSource:
    source = MemorySessionSource()
    source.put(SessionHead(session_id=ID, source="memory", cwd="/work"), [user(text) for text in texts])
    return source


async def test_secrets_are_replaced_and_counted() -> None:
    source = RedactingSource(source_of("use KEY-1 and KEY-22", "nothing", "é KEY-3 <"), PatternDetector())
    capture = await source.read_surface(ID)
    assert [message.text for message in capture.conversation] == [
        "use [redacted secret] and [redacted secret]",
        "nothing",
        "é [redacted secret] <",
    ]
    assert (capture.redactions, capture.cwd, capture.session_id) == (3, "/work", ID)


async def test_a_capture_without_secrets_is_the_inner_one() -> None:
    inner = source_of("nothing")
    assert await RedactingSource(inner, PatternDetector()).read_surface(ID) is await inner.read_surface(ID)


async def test_the_same_inner_capture_gives_the_same_redacted_one_without_another_scan() -> None:
    detector = PatternDetector()
    source = RedactingSource(source_of("KEY-1"), detector)
    first = await source.read_surface(ID)
    calls = detector.calls
    assert await source.read_surface(ID) is first
    assert detector.calls == calls


async def test_parallel_reads_share_one_scan() -> None:
    detector = PatternDetector()
    source = RedactingSource(source_of("nothing"), detector)
    captures = await asyncio.gather(*(source.read_surface(ID) for _ in range(5)))
    assert len(set(map(id, captures))) == 1
    assert detector.calls == 1


async def test_a_changed_session_is_scanned_again() -> None:
    inner = source_of("KEY-1")
    source = RedactingSource(inner, PatternDetector())
    await source.read_surface(ID)
    inner.put(SessionHead(session_id=ID, source="memory"), [user("KEY-1"), user("and KEY-2")])
    assert (await source.read_surface(ID)).redactions == 2


def capture_of(*messages: Message, cwd: str | None = None) -> Capture:
    return Capture(session_id=ID, cwd=cwd, through_seq=1, conversation=Conversation.of(messages))


def test_nothing_reaches_over_the_border_of_two_messages() -> None:
    capture = capture_of(user("BEGIN KEY"), user("text between"), user("END KEY"), cwd="/END")
    assert redact_capture(capture, PatternDetector(rb"BEGIN.*?END")) is capture


def test_a_secret_at_the_end_of_a_message_is_found_though_the_next_begins_with_a_letter() -> None:
    redacted = redact_capture(capture_of(user("KEY-1"), user("2 more words")), PatternDetector())
    assert [message.text for message in redacted.conversation] == ["[redacted secret]", "2 more words"]
    assert redacted.redactions == 1


def test_role_checkpoint_and_sizes_are_those_of_the_new_text() -> None:
    before = capture_of(Message(Role.USER, "KEY-1", checkpoint=True), Message(Role.ASSISTANT, "KEY-2 <"))
    assert redact_capture(before, PatternDetector()).conversation == Conversation.of(
        [Message(Role.USER, "[redacted secret]", checkpoint=True), Message(Role.ASSISTANT, "[redacted secret] <")]
    )


def test_a_secret_in_the_directory_is_taken_out_and_counted() -> None:
    redacted = redact_capture(capture_of(user("plain"), cwd="/work/KEY-1/app"), PatternDetector())
    assert (redacted.cwd, redacted.redactions) == ("/work/[redacted secret]/app", 1)


def test_an_empty_conversation_stays_as_it_is() -> None:
    capture = capture_of()
    assert redact_capture(capture, PatternDetector()) is capture


def test_titles_are_redacted_each_by_itself() -> None:
    redact = title_redactor(PatternDetector())
    assert redact(["fix KEY-1", "plain ü", "", "KEY-2"]) == ["fix [redacted secret]", "plain ü", "", "[redacted secret]"]


def test_many_titles_cost_one_scan() -> None:
    detector = PatternDetector()
    assert title_redactor(detector)(["plain"] * 1000) == ["plain"] * 1000
    assert detector.calls == 1


def test_a_title_with_a_lone_surrogate_is_no_obstacle() -> None:
    assert title_redactor(PatternDetector())(["\ud800 plain", "\ud800 KEY-1"]) == ["\ud800 plain", "? [redacted secret]"]


async def test_of_a_session_that_grew_only_the_last_and_the_added_messages_are_scanned() -> None:
    detector = PatternDetector()
    inner = source_of("KEY-1", "nothing", "KEY-")
    source = RedactingSource(inner, detector)
    await source.read_surface(ID)
    head = SessionHead(session_id=ID, source="memory", cwd="/work")
    inner.put(head, [user(text) for text in ("KEY-1", "nothing", "KEY-2", "new", "KEY-3 KEY-4")])
    scanned_bytes = detector.scanned_bytes

    capture = await source.read_surface(ID)

    assert [message.text for message in capture.conversation] == [
        "[redacted secret]",
        "nothing",
        "[redacted secret]",
        "new",
        "[redacted secret] [redacted secret]",
    ]
    assert capture.redactions == 4
    assert detector.scanned_bytes - scanned_bytes == len(
        b"KEY-2\n\0\nnew\n\0\nKEY-3 KEY-4\n\0\n/work" + b"KEY-2" + b"KEY-3 KEY-4"
    )


async def test_a_session_with_another_past_is_scanned_from_the_start() -> None:
    inner = source_of("KEY-1", "ab", "c")
    source = RedactingSource(inner, PatternDetector())
    await source.read_surface(ID)
    head = SessionHead(session_id=ID, source="memory", cwd="/work")
    for texts in (("KEY-2", "ab", "c", "d"), ("KEY-2", "a", "bc", "KEY-3"), ("KEY-2",), ("a KEY-2", "b")):
        inner.put(head, [user(text) for text in texts])
        capture = await source.read_surface(ID)
        assert [message.text for message in capture.conversation] == [
            re.sub(r"KEY-[0-9]+", "[redacted secret]", text) for text in texts
        ]
