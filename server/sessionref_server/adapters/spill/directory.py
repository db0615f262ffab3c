"""Full transcripts of cut sources, kept as private files of this user.

``<folder>/<hash of the owner>/<128 random bits><128 bits of the SHA-256>.md``. The locator is the file's name without folder and
suffix, so it says nothing about where things are, and is of no use with another owner. Content is checked against the name when
it is read.

A save that is cancelled leaves nothing: it is asked whether it is still wanted before the file appears, and again after; only a
save that reaches its caller is kept. The store never exceeds its quota; expired files go first, and then a save is refused.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import secrets
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sessionref_server.adapters.spill.private_folder import SUFFIX, open_folder, open_root, publish_file, remove_file
from sessionref_server.adapters.spill.reading import VerifiedReader, refresh_file
from sessionref_server.adapters.spill.space import Place, Space
from sessionref_server.adapters.spill.steady_clock import SteadyClock
from sessionref_server.domain.ports import SpillFailedError, SpillTicket
from sessionref_server.domain.session import SessionId

LOCATOR_PREFIX = "spill:"
DEFAULT_EXPIRY_SECONDS = 30 * 24 * 3600
DEFAULT_QUOTA_BYTES = 1024 * 1024 * 1024
MAX_REMEMBERED_SAVES = 4096
MAX_REMEMBERED_DISCARDS = 512
"""Their files are gone as soon as a thread comes to it; only saves of the same content at that time must know."""
THREADS = 4
PUBLISH_ATTEMPTS = 2


class _Save:
    """Whether one save is still wanted, shared by the event loop and a thread. The lock is never held during a system call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._acknowledged = False

    def is_wanted(self) -> bool:
        """Whether the caller still waits."""
        return not self._cancelled

    def acknowledge(self) -> bool:
        """Called by the thread when all is done. ``False``: the caller has left meanwhile, undo it."""
        with self._lock:
            self._acknowledged = not self._cancelled
            return self._acknowledged

    def cancel(self) -> bool:
        """Called by the loop. ``True``: the thread had finished, so undoing is up to the loop."""
        with self._lock:
            self._cancelled = True
            return self._acknowledged


class DirectorySpillStore:
    """A SpillStore in a folder of this machine."""

    def __init__(
        self,
        folder: Path,
        *,
        expiry_seconds: float = DEFAULT_EXPIRY_SECONDS,
        quota_bytes: int = DEFAULT_QUOTA_BYTES,
        clock: SteadyClock | None = None,
    ) -> None:
        """Touch nothing yet; the folder is made by the first save or sweep.

        Args:
            folder: becomes 0700; its parents must be trusted.
            expiry_seconds: life of a file since it was last saved or saved again.
            quota_bytes: what all files together may hold.
            clock: the time expiry goes by.
        """
        self._folder = folder
        self._expiry_ns = int(expiry_seconds * 1_000_000_000)
        self._clock = clock or SteadyClock()
        self._space = Space(folder, quota_bytes, self._expiry_ns, self._clock)
        self._reader = VerifiedReader(folder, self._expiry_ns, self._clock)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="sessionref-spill")
        self._saved: OrderedDict[tuple[str, str], str] = OrderedDict()
        """Saves that reached their callers, by owner and digest. Used on the event loop only."""
        self._discarded: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Saves that were given up, by owner and token. Used on the event loop only."""

    async def save(self, owner: SessionId, content: bytes) -> SpillTicket:
        """Save whole or not at all. The same content again gives the same ticket while more than half of its life is left, and a
        new life. Raises SpillFailedError when storage or quota refuse.
        """
        owner_name = _owner_name(owner)
        digest = await asyncio.get_running_loop().run_in_executor(self._threads, _digest, content)
        while True:
            known_token = self._saved.get((owner_name, digest))
            token = await self._save_once(owner_name, known_token or "0" * 32 + digest, content)
            if (owner_name, token) not in self._discarded:
                break
            # It was an earlier save, and whoever made it gave it up while this one took it over. The next round makes a new one.
        self._remember(owner_name, digest, token)
        return SpillTicket(locator=LOCATOR_PREFIX + token, size_bytes=len(content), fresh=token != known_token)

    async def renew(self, owner: SessionId, ticket: SpillTicket) -> bool:
        """Give a ticket a new life, unless its file is gone, or has less than half of its life left."""
        key = _owner_name(owner), ticket.locator.removeprefix(LOCATOR_PREFIX)
        loop = asyncio.get_running_loop()
        refreshed = await loop.run_in_executor(
            self._threads, refresh_file, self._folder, key, self._clock.now_ns(), self._expiry_ns // 2
        )
        return refreshed and key not in self._discarded

    def discard(self, owner: SessionId, ticket: SpillTicket) -> None:
        """Remove a fresh save. From now on nobody takes it over; the file is removed in a thread."""
        owner_name, token = _owner_name(owner), ticket.locator.removeprefix(LOCATOR_PREFIX)
        if (owner_name, token) in self._discarded:
            return
        self._saved.pop((owner_name, token[32:]), None)
        self._discarded[owner_name, token] = None
        if len(self._discarded) > MAX_REMEMBERED_DISCARDS:
            self._discarded.popitem(last=False)
        self._threads.submit(self._remove_kept, Place(owner_name, token + SUFFIX), ticket.size_bytes)

    async def read(self, locator: str, owner: SessionId, offset_bytes: int, limit_bytes: int) -> tuple[bytes, int]:
        """One page and the total size; an empty page beyond the end.

        Raises:
            UnknownSessionError: no such locator, expired, or another owner's.
            DamagedSessionError: the content is not what was saved.
            SourceUnavailableError: storage fails.
        """
        token = locator.removeprefix(LOCATOR_PREFIX) if locator.startswith(LOCATOR_PREFIX) else ""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, self._reader.read, owner, (_owner_name(owner), token), offset_bytes, limit_bytes
        )

    async def sweep(self) -> int:
        """Remove what has expired and what interrupted saves left; called at start-up and hourly. Returns the number of files
        removed. A failing file system is left for the next sweep.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._space.sweep)

    async def close(self) -> None:
        """Finish removals under way and end the threads."""
        await asyncio.to_thread(self._threads.shutdown)

    async def _save_once(self, owner_name: str, token: str, content: bytes) -> str:
        """Take over the file of ``token`` when it is there and young enough, else make a new one. Returns its token."""
        save = _Save()
        running = self._threads.submit(self._save, save, owner_name, token, content)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if save.cancel() and (saved_token := running.result()) != token:
                self._threads.submit(self._remove_kept, Place(owner_name, saved_token + SUFFIX), len(content))
            raise

    def _remember(self, owner_name: str, digest: str, token: str) -> None:
        self._saved[owner_name, digest] = token
        self._saved.move_to_end((owner_name, digest))
        if len(self._saved) > MAX_REMEMBERED_SAVES:
            self._saved.popitem(last=False)

    def _save(self, save: _Save, owner_name: str, token: str, content: bytes) -> str:
        now_ns = self._clock.now_ns()
        if refresh_file(self._folder, (owner_name, token), now_ns, self._expiry_ns // 2):
            save.acknowledge()
            return token
        token = secrets.token_hex(16) + token[32:]
        place = Place(owner_name, token + SUFFIX)
        try:
            self._space.reserve(place, len(content))
            if self._publish_or_give_back(save, place, content):
                self._keep_or_remove(save, place)
        except OSError as error:
            raise SpillFailedError(f"storage refused: {errno.errorcode.get(error.errno or 0, type(error).__name__)}") from None
        return token

    def _publish_or_give_back(self, save: _Save, place: Place, content: bytes) -> bool:
        published = False
        try:
            published = self._publish(save, place, content)
        finally:
            if not published:
                self._space.give_back(place)
        return published

    def _publish(self, save: _Save, place: Place, content: bytes) -> bool:
        for attempt in range(PUBLISH_ATTEMPTS):
            try:
                with open_root(self._folder) as root, open_folder(root, place.owner_name, create=True) as folder:
                    return publish_file(folder, place.name, content, self._clock.now_ns(), save.is_wanted)
            except FileNotFoundError:
                # A sweep may remove an empty folder just before the file appears in it.
                if attempt + 1 == PUBLISH_ATTEMPTS:
                    raise
        return False

    def _keep_or_remove(self, save: _Save, place: Place) -> None:
        if save.acknowledge():
            self._space.keep(place)
        elif self._removed(place):
            self._space.give_back(place)
        else:
            self._space.keep(place)

    def _remove_kept(self, place: Place, size_bytes: int) -> None:
        if self._removed(place):
            self._space.forget(size_bytes)

    def _removed(self, place: Place) -> bool:
        """Remove a file nobody was told of. ``False``: not now, but a sweep will."""
        try:
            with open_root(self._folder) as root, open_folder(root, place.owner_name, create=False) as folder:
                remove_file(folder, place.name)
        except OSError:
            self._space.remove_later(place)
            return False
        return True


def _owner_name(owner: SessionId) -> str:
    """The owner's folder: an id is never part of a path."""
    return hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
