"""Takes secrets out of what a source gives: a decorator for surfaces, and a function for titles."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from sessionref_server.adapters.sessions.shared_calls import CallAbandonedError, SharedCalls
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.errors import SourceUnavailableError
from sessionref_server.domain.message import Message
from sessionref_server.domain.ports import HeadChanges, SecretDetector, SessionSource, SourceCheck
from sessionref_server.domain.session import SessionId

PLACEHOLDER = b"[redacted secret]"

_BORDER = b"\n\0\n"
"""Put between texts that are scanned together, so that the end of one and the start of the next do not look like one word."""


class RedactingSource:
    """Another source, without its secrets. The same inner capture gives the same redacted one again."""

    def __init__(self, inner: SessionSource, detector: SecretDetector) -> None:
        self._inner = inner
        self._detector = detector
        self._redacted: WeakKeyDictionary[Capture, Capture | None] = WeakKeyDictionary()
        """By inner capture; ``None`` for one without secrets, which is given as it is."""
        self._calls: SharedCalls[Capture, Capture] = SharedCalls()

    @property
    def name(self) -> str:
        """The inner source's name."""
        return self._inner.name

    def check(self) -> SourceCheck:
        """The inner source's state."""
        return self._inner.check()

    async def follow_heads(self, publish: Callable[[HeadChanges], None]) -> None:
        """The inner source's heads; whoever makes heads redacts their titles (``title_redactor``)."""
        await self._inner.follow_heads(publish)

    async def read_surface(self, session_id: SessionId) -> Capture:
        """The inner source's capture with ``[redacted secret]`` in the place of each secret, and their number."""
        capture = await self._inner.read_surface(session_id)
        if capture in self._redacted:
            return self._redacted[capture] or capture
        try:
            return await self._calls.run(capture, lambda: self._redact(capture))
        except CallAbandonedError:
            message = "the session's log cannot be read now"
            raise SourceUnavailableError(message, session_id=session_id, source=self.name) from None

    async def _redact(self, capture: Capture) -> Capture:
        conversation, count = await asyncio.to_thread(redact_conversation, capture.conversation, self._detector)
        if not count:
            self._redacted[capture] = None
            return capture
        redacted = replace(capture, conversation=conversation, redactions=capture.redactions + count)
        self._redacted[capture] = redacted
        return redacted


def redact_conversation(conversation: Conversation, detector: SecretDetector) -> tuple[Conversation, int]:
    """The conversation without secrets, and how many were taken out. Without any it is the same object."""
    texts = [conversation.text_utf8(index) for index in range(len(conversation))]
    redacted, count = _redact_texts(texts, detector)
    if not count:
        return conversation, 0
    return Conversation.of(
        message if redacted[index] is texts[index] else Message(message.role, redacted[index].decode(), message.checkpoint)
        for index, message in enumerate(conversation)
    ), count


def title_redactor(detector: SecretDetector) -> Callable[[Sequence[str]], list[str]]:
    """A function that takes secrets out of many titles at once."""

    def redact(titles: Sequence[str]) -> list[str]:
        texts = [title.encode(errors="replace") for title in titles]
        redacted, _ = _redact_texts(texts, detector)
        return [title if new is old else new.decode() for title, new, old in zip(titles, redacted, texts, strict=True)]

    return redact


def _redact_texts(texts: Sequence[bytes], detector: SecretDetector) -> tuple[list[bytes], int]:
    """Scan all texts in one pass, then each one in which something was found by itself, so that nothing reaches over a border."""
    redacted, total = list(texts), 0
    for index in _suspects(texts, detector):
        redacted[index], count = _redact_one(texts[index], detector)
        total += count
    return redacted, total


def _suspects(texts: Sequence[bytes], detector: SecretDetector) -> list[int]:
    starts: array[int] = array("q")
    position = 0
    for text in texts:
        starts.append(position)
        position += len(text) + len(_BORDER)
    suspects: dict[int, None] = {}
    for start, end in detector.find(_BORDER.join(texts)):
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, max(start, end - 1)) - 1
        suspects.update(dict.fromkeys(range(max(0, first), last + 1)))
    return list(suspects)


def _redact_one(text: bytes, detector: SecretDetector) -> tuple[bytes, int]:
    found = detector.find(text)
    if not found:
        return text, 0
    pieces: list[bytes] = []
    position = 0
    for start, end in found:
        pieces += (text[position:start], PLACEHOLDER)
        position = end
    pieces.append(text[position:])
    return b"".join(pieces), len(found)
