"""A SessionSource that holds exactly the heads and captures a test puts on its shelf, whatever a real log could say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.errors import SourceUnavailableError, UnknownSessionError
from sessionref_server.domain.ports import HeadChanges, SourceCheck
from sessionref_server.domain.session import SessionHead, SessionId


class ShelfSessionSource:
    def __init__(self, name: str = "dsh") -> None:
        self.name = name
        self.captures: dict[SessionId, Capture] = {}
        self.unavailable: set[SessionId] = set()
        """Sessions whose reading fails."""
        self.broken: Exception | None = None
        """When set, every reading ends with it."""
        self.gate: asyncio.Event | None = None
        """When set, a reading waits here."""
        self.readings = 0
        self.begun: asyncio.Queue[SessionId] = asyncio.Queue()
        """Every session whose reading has begun."""
        self._heads: dict[SessionId, SessionHead] = {}
        self._publish: Callable[[HeadChanges], None] | None = None

    def fill(self, heads: Iterable[SessionHead], captures: Iterable[Capture] = ()) -> None:
        """Empty the shelf and fill it anew."""
        gone = list(self._heads)
        self._heads = {head.session_id: head for head in heads}
        self.captures = {capture.session_id: capture for capture in captures}
        self.unavailable = set()
        if self._publish is not None:
            self._publish(HeadChanges(removed=gone))
            self._publish(HeadChanges(changed=list(self._heads.values())))

    def check(self) -> SourceCheck:
        return SourceCheck(name=self.name, ready=True, listed=len(self._heads))

    async def follow_heads(self, publish: Callable[[HeadChanges], None]) -> None:
        self._publish = publish
        publish(HeadChanges(changed=list(self._heads.values())))
        try:
            await asyncio.Event().wait()
        finally:
            self._publish = None

    async def read_surface(self, session_id: SessionId) -> Capture:
        self.readings += 1
        self.begun.put_nowait(session_id)
        if self.gate is not None:
            await self.gate.wait()
        if self.broken is not None:
            raise self.broken
        if session_id in self.unavailable:
            raise SourceUnavailableError("the source cannot be read now", session_id=session_id, source=self.name)
        if session_id not in self.captures:
            raise UnknownSessionError("no session has this id", session_id=session_id)
        return self.captures[session_id]
