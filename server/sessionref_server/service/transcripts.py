"""Transcripts, built where they cannot block. Of a conversation that grew, only what was added is written anew."""

from __future__ import annotations

from collections import OrderedDict

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.ports import Offload
from sessionref_server.domain.prepare.transcript import transcript_body, transcript_head
from sessionref_server.domain.session import SessionId


class Transcripts:
    """Builds transcripts and keeps the latest for the next time their sessions have grown."""

    def __init__(self, offload: Offload, limit_bytes: int) -> None:
        """Keep nothing yet; ``limit_bytes`` is for conversations and what was written of them, together."""
        self._offload = offload
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[SessionId, tuple[Conversation, bytes]] = OrderedDict()
        self._kept_bytes = 0

    async def build(self, capture: Capture, label: str) -> bytes:
        """The whole transcript. Raises what the offload raises."""
        conversation, written = capture.conversation, b""
        first = 0
        kept = self._kept.get(capture.session_id)
        if kept is not None and conversation.begins_with(kept[0]):
            first, written = len(kept[0]), kept[1]
        if first < len(conversation):
            added = conversation.since(first)
            written += await self._offload.build_bytes(transcript_body, added, first)
            self._keep(capture.session_id, conversation, written)
        return transcript_head(capture, label) + written

    def _keep(self, session_id: SessionId, conversation: Conversation, written: bytes) -> None:
        self._drop(session_id)
        self._kept[session_id] = conversation, written
        self._kept_bytes += _size_bytes(conversation, written)
        while self._kept_bytes > self._limit_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, session_id: SessionId) -> None:
        kept = self._kept.pop(session_id, None)
        if kept is not None:
            self._kept_bytes -= _size_bytes(*kept)


def _size_bytes(conversation: Conversation, written: bytes) -> int:
    return conversation.total_text_bytes + len(written)
