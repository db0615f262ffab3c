"""Saves the full text of cut sources, so that a model can read on."""

from __future__ import annotations

import asyncio
import shlex
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary, WeakValueDictionary

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
from sessionref_server.domain.session import SessionId
from sessionref_server.service.transcripts import Transcripts

MAX_KEPT_PER_CAPTURE = 64
"""Targets and labels for which it is known that a capture has been saved. One forgotten is saved again."""

_CAPTURES_PER_TRANSCRIPT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A source as the call will show it, with what was done ahead for saving its full text."""

    source: RetainedSource
    transcript: bytes | None = None
    """Built ahead. ``None`` when nothing is to be saved, or it has been saved, or it could not be built ahead."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class _Kept:
    """A saved transcript and the calls that tell its locator to somebody."""

    ticket: SpillTicket
    calls: int = 0


class SavedSnapshots:
    """What one call saved. Until the call has reached its caller, it may be undone."""

    def __init__(self, store: SpillStore | None, owner: SessionId) -> None:
        self.owner = owner
        self.notices: tuple[OmissionNotice, ...] = ()
        self._store = store
        self._used: list[_Kept] = []

    def use(self, kept: _Kept) -> None:
        """The call will tell this locator."""
        kept.calls += 1
        self._used.append(kept)

    def leave(self, kept: _Kept) -> None:
        """The call will not tell this locator after all."""
        self._used.remove(kept)
        kept.calls -= 1
        if kept.calls == 0 and kept.ticket.fresh and self._store is not None:
            self._store.discard(self.owner, kept.ticket)

    def undo(self) -> None:
        """The call told nobody: remove what it saved and no other call tells of."""
        for kept in tuple(self._used):
            self.leave(kept)


class Snapshots:
    """Saves transcripts, once for each capture, owner and label as long as the capture stays the same."""

    def __init__(self, store: SpillStore | None, offload: Offload, captures_bytes: int) -> None:
        """Save nothing yet.

        Args:
            store: where to save; ``None`` when nowhere.
            offload: builds transcripts.
            captures_bytes: what captures may take in memory; transcripts that may grow take a quarter of that beside them.
        """
        self._store = store
        self._transcripts = Transcripts(offload, captures_bytes // _CAPTURES_PER_TRANSCRIPT)
        self._kept: WeakKeyDictionary[Capture, OrderedDict[tuple[SessionId, str], _Kept]] = WeakKeyDictionary()
        self._by_locator: WeakValueDictionary[str, _Kept] = WeakValueDictionary()
        """Calls that save the same content at the same time must count on one record."""

    async def draft(self, owner: SessionId, source: RetainedSource) -> Draft:
        """Build the transcript of a cut source and save nothing yet: others are still being read, and may fail the call."""
        is_known = (owner, source.reference.label) in self._kept.get(source.capture, ())
        if self._store is None or is_known or not source.retained.truncated:
            return Draft(source=source)
        try:
            return Draft(source=source, transcript=await self._transcript(source))
        except OverloadedError:  # saving tries again, and says so when that fails too
            return Draft(source=source)

    async def save(self, owner: SessionId, drafts: Sequence[Draft]) -> SavedSnapshots:
        """Save what was cut, in parallel, and say where it is. A failed save is said in its notice, never raised.

        When the call is cancelled, what it saved is removed again.
        """
        saved = SavedSnapshots(self._store, owner)
        try:
            cut = [draft for draft in drafts if draft.source.retained.truncated]
            notices = await asyncio.gather(*(self._notice(saved, draft) for draft in cut))
        except BaseException:
            saved.undo()
            raise
        saved.notices = tuple(notices)
        return saved

    async def _notice(self, saved: SavedSnapshots, draft: Draft) -> OmissionNotice:
        source = draft.source
        if self._store is None:
            return omission_notice(source, UnavailableReason.STORAGE_NOT_CONFIGURED)
        try:
            ticket = (await self._keep(self._store, saved, draft)).ticket
        except (SpillFailedError, OverloadedError):
            return omission_notice(source, UnavailableReason.SAVE_FAILED)
        command = f"sessionref read {ticket.locator} --owner {shlex.quote(saved.owner)}"
        hint = f"To read on, have the host call ReadSnapshot with this locator, or run: {command}"
        snapshot = SavedSnapshot(locator=ticket.locator, size_bytes=ticket.size_bytes, retrieval_hint=hint)
        return omission_notice(source, snapshot)

    async def _keep(self, store: SpillStore, saved: SavedSnapshots, draft: Draft) -> _Kept:
        source = draft.source
        of_capture = self._kept.setdefault(source.capture, OrderedDict())
        key = saved.owner, source.reference.label
        known = of_capture.get(key)
        if known is not None:
            saved.use(known)  # before the wait: nobody else may give it up meanwhile
            if await store.renew(saved.owner, known.ticket):
                return known
            saved.leave(known)
        ticket = await store.save(saved.owner, draft.transcript or await self._transcript(source))
        kept = self._by_locator.setdefault(ticket.locator, _Kept(ticket))
        saved.use(kept)
        of_capture[key] = kept
        of_capture.move_to_end(key)
        if len(of_capture) > MAX_KEPT_PER_CAPTURE:
            of_capture.popitem(last=False)
        return kept

    async def _transcript(self, source: RetainedSource) -> bytes:
        return await self._transcripts.build(source.capture, source.reference.label)
