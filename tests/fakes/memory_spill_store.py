"""A SpillStore in memory, with faults to order. It passes the contract suite of the real one."""

from __future__ import annotations

import asyncio
import secrets

from sessionref_server.domain.errors import UnknownSessionError
from sessionref_server.domain.ports import SpillFailedError, SpillTicket
from sessionref_server.domain.session import SessionId


class MemorySpillStore:
    def __init__(self) -> None:
        self.saved: dict[tuple[SessionId, str], bytes] = {}
        self.failing = False
        """Every save is refused."""
        self.gate: asyncio.Event | None = None
        """When set, a save waits here before anything is visible."""

    async def save(self, owner: SessionId, content: bytes) -> SpillTicket:
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        if self.failing:
            raise SpillFailedError("storage refused: EIO")
        for (other, locator), kept in self.saved.items():
            if other == owner and kept == content:
                return SpillTicket(locator=locator, size_bytes=len(content), fresh=False)
        locator = f"spill:{secrets.token_hex(32)}"
        self.saved[owner, locator] = bytes(content)
        return SpillTicket(locator=locator, size_bytes=len(content))

    async def renew(self, owner: SessionId, ticket: SpillTicket) -> bool:
        await asyncio.sleep(0)
        return (owner, ticket.locator) in self.saved

    def discard(self, owner: SessionId, ticket: SpillTicket) -> None:
        self.saved.pop((owner, ticket.locator), None)

    async def read(self, locator: str, owner: SessionId, offset_bytes: int, limit_bytes: int) -> tuple[bytes, int]:
        await asyncio.sleep(0)
        try:
            content = self.saved[owner, locator]
        except KeyError:
            raise UnknownSessionError("the locator is unknown or has expired", session_id=owner) from None
        return content[offset_bytes : offset_bytes + limit_bytes], len(content)
