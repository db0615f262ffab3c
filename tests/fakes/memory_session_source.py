"""A SessionSource in memory, with faults to order. It passes the contract suite of the real ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.errors import (
    DamagedSessionError,
    ReadFailedError,
    SourceUnavailableError,
    UnknownSessionError,
    UnsupportedVersionError,
)
from sessionref_server.domain.message import Message
from sessionref_server.domain.ports import HeadChanges, SourceCheck
from sessionref_server.domain.session import LISTED_STATUSES, SessionHead, SessionId, SessionStatus


class MemorySessionSource:
    def __init__(self, name: str = "memory") -> None:
        self.name = name
        self.ready = True
        self.failure = ""
        """When set, nothing can be read."""
        self.gate: asyncio.Event | None = None
        """When set, a read waits here."""
        self.crashes = 0
        """So many times ``follow_heads`` fails with an exception of no domain."""
        self.reads: list[SessionId] = []
        self._sessions: dict[SessionId, tuple[SessionHead, Capture]] = {}
        self._publish: Callable[[HeadChanges], None] | None = None

    def put(self, head: SessionHead, messages: Sequence[Message] = ()) -> None:
        """Add a session, or replace it."""
        capture = Capture(
            session_id=head.session_id,
            cwd=head.cwd,
            through_seq=len(messages) or None,
            conversation=Conversation.of(messages),
        )
        before = self._sessions.get(head.session_id)
        if before is not None and before[1].conversation == capture.conversation:
            capture = before[1]
        self._sessions[head.session_id] = head, capture
        if head.status in LISTED_STATUSES:
            self._tell(HeadChanges(changed=[head]))
        else:
            self._tell(HeadChanges(removed=[head.session_id]))

    def remove(self, session_id: SessionId) -> None:
        del self._sessions[session_id]
        self._tell(HeadChanges(removed=[session_id]))

    def check(self) -> SourceCheck:
        statuses = [head.status for head, _ in self._sessions.values()]
        return SourceCheck(
            name=self.name,
            ready=self.ready,
            listed=sum(status in LISTED_STATUSES for status in statuses),
            unreadable=sum(status in {SessionStatus.DAMAGED, SessionStatus.TOO_NEW} for status in statuses),
            empty=statuses.count(SessionStatus.EMPTY),
            failure=self.failure,
        )

    async def follow_heads(self, publish: Callable[[HeadChanges], None]) -> None:
        if self.crashes:
            self.crashes -= 1
            raise RuntimeError("crash to order")
        heads = [head for head, _ in self._sessions.values() if head.status in LISTED_STATUSES]
        self._publish = publish
        publish(HeadChanges(changed=sorted(heads, key=lambda head: -head.created_at_ms)))
        try:
            await asyncio.Event().wait()
        finally:
            self._publish = None

    async def read_surface(self, session_id: SessionId) -> Capture:
        self.reads.append(session_id)
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        if self.failure:
            raise SourceUnavailableError("the source cannot be read now", session_id=session_id, source=self.name)
        found = self._sessions.get(session_id)
        if found is None:
            raise UnknownSessionError("no session has this id", session_id=session_id)
        self._refuse_unusable(found[0])
        return found[1]

    def _refuse_unusable(self, head: SessionHead) -> None:
        refusals: dict[SessionStatus, ReadFailedError] = {
            SessionStatus.DAMAGED: DamagedSessionError("damaged", session_id=head.session_id, source=self.name),
            SessionStatus.TOO_NEW: UnsupportedVersionError(
                "too new", session_id=head.session_id, source=self.name, version=head.status_detail
            ),
            SessionStatus.EMPTY: UnknownSessionError("no messages yet", session_id=head.session_id),
        }
        if head.status in refusals:
            raise refusals[head.status]

    def _tell(self, changes: HeadChanges) -> None:
        if self._publish is not None:
            self._publish(changes)
