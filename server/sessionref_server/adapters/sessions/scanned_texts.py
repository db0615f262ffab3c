"""What a scan of a conversation found, kept so that the conversation's growth alone is scanned the next time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from sessionref_server.domain.conversation import Conversation

MAX_KEPT_BYTES = 64 * 1024
"""Changed texts kept of one conversation; one with more is scanned from the start again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedTexts:
    """The texts of a conversation, told by a digest, and those in which secrets were found."""

    messages: int = 0
    digest: bytes = b""
    changed: Mapping[int, tuple[bytes, int]] = field(default_factory=dict[int, tuple[bytes, int]])
    """By index of the message: its text without secrets, and how many were taken out."""

    def begins(self, conversation: Conversation) -> bool:
        """Whether these are the first texts of a conversation."""
        return 0 < self.messages <= len(conversation) and self.digest == _digest(conversation, self.messages)


def scanned_texts(conversation: Conversation, changed: Mapping[int, tuple[bytes, int]]) -> ScannedTexts:
    """What to keep of a scan: all but the last message, which may still grow itself. Of one that found too much, nothing."""
    messages = max(0, len(conversation) - 1)
    kept = {index: result for index, result in changed.items() if index < messages}
    if sum(len(text) for text, _ in kept.values()) > MAX_KEPT_BYTES:
        return ScannedTexts()
    return ScannedTexts(messages=messages, digest=_digest(conversation, messages), changed=kept)


def _digest(conversation: Conversation, messages: int) -> bytes:
    texts, ends = conversation.packed_texts(messages)
    return hashlib.sha256(hashlib.sha256(texts).digest() + hashlib.sha256(ends).digest()).digest()
