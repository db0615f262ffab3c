"""Saves the full text of cut sources, so that a model can read on."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.errors import OverloadedError
from sessionref_server.domain.ports import Offload, SpillFailedError, SpillStore, SpillTicket
from sessionref_server.domain.prepare.render import (
    OmissionNotice,
    RetainedSource,
    SavedSnapshot,
    UnavailableReason,
    omission_notice,
)
from sessionref_server.domain.prepare.transcript import transcript_chunks
from sessionref_server.domain.session import SessionId


@dataclass(slots=True, eq=False)
class _Kept:
    """A saved transcript and the calls that tell its locator to somebody."""

    ticket: SpillTicket
    calls: int = 0


class SavedSnapshots:
    """What one call saved. Until the call has reached its caller, it may be undone."""

    def __init__(self, store: SpillStore | None, owner: SessionId) -> None:
        self.notices: tuple[OmissionNotice, ...] = ()
        self._store = store
        self._owner = owner
        self._used: list[_Kept] = []

    def use(self, kept: _Kept) -> None:
        """The call will tell this locator."""
        kept.calls += 1
        self._used.append(kept)

    def undo(self) -> None:
        """The call told nobody: remove what it saved and no other call tells of."""
        used, self._used = self._used, []
        for kept in used:
            kept.calls -= 1
            if kept.calls == 0 and kept.ticket.fresh and self._store is not None:
                self._store.discard(self._owner, kept.ticket)


class Snapshots:
    """Saves transcripts, once for each capture, owner and label as long as the capture stays the same."""

    def __init__(self, store: SpillStore | None, offload: Offload) -> None:
        self._store = store
        self._offload = offload
        self._kept: WeakKeyDictionary[Capture, dict[tuple[SessionId, str], _Kept]] = WeakKeyDictionary()

    async def save(self, owner: SessionId, sources: Sequence[RetainedSource]) -> SavedSnapshots:
        """Save what was cut, in parallel, and say where it is. A failed save is said in its notice, never raised.

        When the call is cancelled, what it saved is removed again.
        """
        saved = SavedSnapshots(self._store, owner)
        try:
            notices = await asyncio.gather(*(self._notice(saved, owner, source) for source in sources))
        except BaseException:
            saved.undo()
            raise
        saved.notices = tuple(notices)
        return saved

    async def _notice(self, saved: SavedSnapshots, owner: SessionId, source: RetainedSource) -> OmissionNotice:
        if self._store is None:
            return omission_notice(source, UnavailableReason.STORAGE_NOT_CONFIGURED)
        try:
            kept = await self._keep(self._store, owner, source)
        except (SpillFailedError, OverloadedError):
            return omission_notice(source, UnavailableReason.SAVE_FAILED)
        saved.use(kept)
        ticket = kept.ticket
        command = f"sessionref read {ticket.locator} --owner {shlex.quote(owner)}"
        hint = f"To read on, have the host call ReadSnapshot with this locator, or run: {command}"
        snapshot = SavedSnapshot(locator=ticket.locator, size_bytes=ticket.size_bytes, retrieval_hint=hint)
        return omission_notice(source, snapshot)

    async def _keep(self, store: SpillStore, owner: SessionId, source: RetainedSource) -> _Kept:
        of_capture = self._kept.setdefault(source.capture, {})
        key = owner, source.reference.label
        known = of_capture.get(key)
        if known is not None and await store.renew(owner, known.ticket):
            return known
        content = await self._offload.build_bytes(transcript_chunks, source.capture, source.reference.label)
        ticket = await store.save(owner, content)
        # Another call may have saved the same meanwhile; both must count on one record.
        known = of_capture.get(key)
        if known is None or known.ticket.locator != ticket.locator:
            known = of_capture[key] = _Kept(ticket)
        return known
