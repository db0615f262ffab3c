"""Takes secrets out of what a source gives: a decorator for surfaces, and a function for titles."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from sessionref_server.adapters.sessions.scanned_texts import ScannedTexts, scanned_texts
from sessionref_server.adapters.sessions.shared_calls import CallAbandonedError, SharedCalls
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.errors import SourceUnavailableError
from sessionref_server.domain.message import Message
from sessionref_server.domain.ports import HeadChanges, SecretDetector, SessionSource, SourceCheck
from sessionref_server.domain.session import SessionId

PLACEHOLDER = b"[redacted secret]"
MAX_KEPT_SCANS = 64

_BORDER = b"\n\0\n"
"""Put between texts that are scanned together, so that the end of one and the start of the next do not look like one word."""


class RedactingSource:
    """Another source, without its secrets. The same inner capture gives the same redacted one again."""

    def __init__(self, inner: SessionSource, detector: SecretDetector) -> None:
        self._inner = inner
        self._detector = detector
        self._redacted: WeakKeyDictionary[Capture, Capture | None] = WeakKeyDictionary()
        """By inner capture; ``None`` for one without secrets, which is given as it is."""
        self._scanned: OrderedDict[SessionId, ScannedTexts] = OrderedDict()
        """What the last scan of a session found: of a session that grew, only what was added is scanned."""
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
        before = self._scanned.get(capture.session_id, ScannedTexts())
        redacted, scanned = await asyncio.to_thread(_redact_grown, capture, self._detector, before)
        self._redacted[capture] = None if redacted is capture else redacted
        self._scanned[capture.session_id] = scanned
        self._scanned.move_to_end(capture.session_id)
        if len(self._scanned) > MAX_KEPT_SCANS:
            self._scanned.popitem(last=False)
        return redacted


def redact_capture(capture: Capture, detector: SecretDetector) -> Capture:
    """The capture without secrets in its texts and its directory. Without any it is the same object."""
    return _redact_grown(capture, detector, ScannedTexts())[0]


def _redact_grown(capture: Capture, detector: SecretDetector, before: ScannedTexts) -> tuple[Capture, ScannedTexts]:
    """Scan what is new since an earlier scan, or all when that was of other texts."""
    conversation = capture.conversation
    known = before if before.begins(conversation) else ScannedTexts()
    texts = [conversation.text_utf8(index) for index in range(known.messages, len(conversation))]
    directory = (capture.cwd or "").encode()
    found = _redact_texts([*texts, directory], detector)
    clean_directory, in_directory = found.pop(len(texts), (directory, 0))
    changed = {**known.changed, **{known.messages + index: text for index, text in found.items()}}
    scanned = scanned_texts(conversation, changed)
    count = in_directory + sum(count for _, count in changed.values())
    if not count:
        return capture, scanned
    redacted = replace(
        capture,
        conversation=_with_texts(conversation, changed) if changed else conversation,
        cwd=clean_directory.decode() if in_directory else capture.cwd,
        redactions=capture.redactions + count,
    )
    return redacted, scanned


def _with_texts(conversation: Conversation, changed: Mapping[int, tuple[bytes, int]]) -> Conversation:
    return Conversation.of(
        Message(message.role, changed[index][0].decode(), message.checkpoint) if index in changed else message
        for index, message in enumerate(conversation)
    )


def title_redactor(detector: SecretDetector) -> Callable[[Sequence[str]], list[str]]:
    """A function that takes secrets out of many titles at once."""

    def redact(titles: Sequence[str]) -> list[str]:
        redacted = _redact_texts([title.encode(errors="replace") for title in titles], detector)
        return [redacted[index][0].decode() if index in redacted else title for index, title in enumerate(titles)]

    return redact


def _redact_texts(texts: Sequence[bytes], detector: SecretDetector) -> dict[int, tuple[bytes, int]]:
    """Scan all texts in one pass, then each one in which something was found by itself, so that nothing reaches over a border.

    Returns:
        By index: each text that has secrets, without them, and their number.
    """
    redacted = {index: _redact_one(texts[index], detector) for index in sorted(_suspects(texts, detector))}
    return {index: result for index, result in redacted.items() if result[1]}


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
