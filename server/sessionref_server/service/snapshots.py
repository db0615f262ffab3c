"""Saves the full text of cut sources, so that a model can read on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
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

_RETRIEVAL_HINT = (
    "The full text of this snapshot is kept by the host's session reference service: ask for ReadSnapshot with this locator "
    "(`sessionref read LOCATOR --owner THIS_SESSION`)."
)


class Snapshots:
    """Saves transcripts, once for each capture, owner and label as long as the capture stays the same."""

    def __init__(self, store: SpillStore | None, offload: Offload) -> None:
        self._store = store
        self._offload = offload
        self._tickets: WeakKeyDictionary[Capture, dict[tuple[SessionId, str], SpillTicket]] = WeakKeyDictionary()

    async def save(self, owner: SessionId, sources: Sequence[RetainedSource]) -> tuple[OmissionNotice, ...]:
        """Save what was cut, in parallel, and say where it is. A failed save is said in its notice, never raised.

        When the call is cancelled, what it saved is removed again.
        """
        store = self._store
        if store is None:
            return tuple(omission_notice(source, UnavailableReason.STORAGE_NOT_CONFIGURED) for source in sources)
        fresh: list[SpillTicket] = []
        try:
            return tuple(await asyncio.gather(*(self._notice(store, owner, source, fresh) for source in sources)))
        except BaseException:
            for ticket in fresh:
                store.discard(owner, ticket)
            raise

    async def _notice(
        self, store: SpillStore, owner: SessionId, source: RetainedSource, fresh: list[SpillTicket]
    ) -> OmissionNotice:
        try:
            ticket = await self._ticket(store, owner, source)
        except (SpillFailedError, OverloadedError):
            return omission_notice(source, UnavailableReason.SAVE_FAILED)
        if ticket.fresh:
            fresh.append(ticket)
        saved = SavedSnapshot(locator=ticket.locator, size_bytes=ticket.size_bytes, retrieval_hint=_RETRIEVAL_HINT)
        return omission_notice(source, saved)

    async def _ticket(self, store: SpillStore, owner: SessionId, source: RetainedSource) -> SpillTicket:
        tickets = self._tickets.setdefault(source.capture, {})
        key = owner, source.reference.label
        known = tickets.get(key)
        if known is not None and await store.renew(owner, known):
            return known
        content = await self._offload.build_bytes(transcript_chunks, source.capture, source.reference.label)
        ticket = await store.save(owner, content)
        tickets[key] = SpillTicket(locator=ticket.locator, size_bytes=ticket.size_bytes, fresh=False)
        return ticket
