"""Cuts a captured conversation to its byte budget, the same way every time.

All checkpoints and the newest message stay; of the rest the oldest go first. When that is not enough, the longest text that is
left is shortened, then the next. The size that counts is that of the preview as tag-safe JSON, as it is sent.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation, message_json_bytes
from sessionref_server.domain.errors import BudgetExceededError
from sessionref_server.domain.prepare.truncate import shorten
from sessionref_server.domain.tag_safe_json import tag_safe_json

_COMMA_BYTES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """The preview of one source, and what it lacks."""

    preview_json: bytes
    """``{sessionId, label, cwd, capturedThroughSeq, conversation: [{role, text}]}`` as tag-safe JSON."""
    compacted: bool
    original_messages: int
    retained_messages: int
    omitted_messages: int
    omitted_bytes: int
    """UTF-8 bytes of text that the preview lacks, of dropped messages and in shortened ones."""

    @property
    def truncated(self) -> bool:
        """Whether the preview lacks anything."""
        return self.omitted_messages > 0 or self.omitted_bytes > 0


def retain(capture: Capture, label: str, limit_bytes: int) -> Retained:
    """Make the preview of a capture. Takes time for what is kept, not for what is dropped.

    Args:
        capture: The captured session.
        label: Label of the reference.
        limit_bytes: Most bytes of the preview's tag-safe JSON.

    Raises:
        BudgetExceededError: It does not fit even with every text cut away.
    """
    conversation = capture.conversation
    frame_bytes = len(_preview(capture, label, []))
    kept, size_bytes = _newest_that_fit(conversation, frame_bytes, limit_bytes)
    shortened = _Shortening(conversation, kept)
    if not shortened.reduce(size_bytes, limit_bytes):
        raise BudgetExceededError(
            "a referenced session does not fit into its budget", session_id=capture.session_id, maximum_bytes=limit_bytes
        )
    kept_bytes = sum(map(conversation.text_bytes, kept))
    return Retained(
        preview_json=_preview(capture, label, shortened.messages()),
        compacted=conversation.compacted,
        original_messages=len(conversation),
        retained_messages=len(kept),
        omitted_messages=len(conversation) - len(kept),
        omitted_bytes=conversation.total_text_bytes - kept_bytes + shortened.omitted_bytes,
    )


def _preview(capture: Capture, label: str, messages: Sequence[dict[str, str]]) -> bytes:
    return tag_safe_json(
        {
            "sessionId": capture.session_id,
            "label": label,
            "cwd": capture.cwd,
            "capturedThroughSeq": capture.through_seq,
            "conversation": messages,
        }
    )


def _newest_that_fit(conversation: Conversation, frame_bytes: int, limit_bytes: int) -> tuple[list[int], int]:
    """Indices to keep, ascending, and the size of the preview with them.

    Dropping from the oldest until the rest fits leaves the longest run of newest messages that fits beside those that always
    stay; walking back from the newest finds it without looking at what is dropped.
    """
    always = set(conversation.checkpoint_indices())
    if len(conversation) > 0:
        always.add(len(conversation) - 1)
    size_bytes = frame_bytes + sum(map(conversation.json_bytes, always)) + _COMMA_BYTES * max(0, len(always) - 1)
    kept: list[int] = []
    for index in reversed(range(len(conversation))):
        if index in always:
            continue
        grown_bytes = size_bytes + _COMMA_BYTES + conversation.json_bytes(index)
        if grown_bytes > limit_bytes:
            break
        kept.append(index)
        size_bytes = grown_bytes
    return sorted([*kept, *always]), size_bytes


class _Shortening:
    """The kept messages with their texts shortened as far as needed, the longest first."""

    def __init__(self, conversation: Conversation, kept: Sequence[int]) -> None:
        self._conversation = conversation
        self._kept = kept
        self._texts: dict[int, str] = {}
        self._missing: dict[int, int] = {}

    @property
    def omitted_bytes(self) -> int:
        return sum(self._missing.values())

    def reduce(self, size_bytes: int, limit_bytes: int) -> bool:
        """Shorten until the preview of ``size_bytes`` fits. False when nothing is left to shorten.

        Each step takes the overflow off the longest text, so a text takes one step, or two when escapes eat the first one's gain.
        """
        if size_bytes <= limit_bytes:
            return True
        longest_first = [(-self._conversation.text_bytes(index), index) for index in self._kept]
        heapq.heapify(longest_first)
        while size_bytes > limit_bytes:
            if not longest_first or longest_first[0][0] == 0:
                return False
            negative_bytes, index = longest_first[0]
            before_bytes = self._json_bytes(index)
            self._shorten(index, max(0, -negative_bytes - (size_bytes - limit_bytes)))
            size_bytes += self._json_bytes(index) - before_bytes
            heapq.heapreplace(longest_first, (-len(self._texts[index].encode()), index))
        return True

    def messages(self) -> list[dict[str, str]]:
        """The kept messages in order, as the preview shows them."""
        return [{"role": self._conversation.role(index).value, "text": self._text(index)} for index in self._kept]

    def _text(self, index: int) -> str:
        shortened = self._texts.get(index)
        return self._conversation.text_utf8(index).decode() if shortened is None else shortened

    def _shorten(self, index: int, limit_bytes: int) -> None:
        self._texts[index], self._missing[index] = shorten(self._conversation.text_utf8(index), limit_bytes)

    def _json_bytes(self, index: int) -> int:
        text = self._texts.get(index)
        if text is None:
            return self._conversation.json_bytes(index)
        return message_json_bytes(self._conversation.role(index), text)
