"""How much a spill folder holds, and making room in it."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from sessionref_server.adapters.spill.private_folder import (
    TEMPORARY_SUFFIX,
    StoredFile,
    list_files,
    list_folders,
    open_folder,
    open_root,
    remove_abandoned,
    remove_file,
)
from sessionref_server.adapters.spill.steady_clock import SteadyClock
from sessionref_server.domain.ports import SpillFailedError

MIN_SWEEP_INTERVAL_NS = 60 * 1_000_000_000
"""A store that stays full is not searched for expired files at every save."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file of the store: the folder of its owner, and its name there."""

    owner_name: str
    name: str


class Space:
    """Counts bytes, reserves them for saves under way, and removes what has expired. Thread-safe; does I/O."""

    def __init__(self, folder: Path, quota_bytes: int, expiry_ns: int, clock: SteadyClock) -> None:
        self._folder = folder
        self._quota_bytes = quota_bytes
        self._expiry_ns = expiry_ns
        self._clock = clock
        self._lock = threading.Lock()
        self._used_bytes = 0
        self._swept_ns: int | None = None
        self._under_way: dict[Place, int] = {}
        """Saves that have not ended, with their sizes; not part of ``_used_bytes``."""
        self._unwanted: set[Place] = set()

    def reserve(self, place: Place, size_bytes: int) -> None:
        """Count a file that is about to be written; ends with ``keep`` or ``give_back``. Expired files make room. Raises
        SpillFailedError when that is not enough, and OSError when the folder cannot be read.
        """
        with self._lock:
            if self._swept_ns is None or (not self._fits(size_bytes) and self._is_time_to_sweep(self._swept_ns)):
                self._sweep()
            if not self._fits(size_bytes):
                raise SpillFailedError("the snapshot store is full")
            self._under_way[place] = size_bytes

    def keep(self, place: Place) -> None:
        """The reserved file is there now."""
        with self._lock:
            self._used_bytes += self._under_way.pop(place)

    def give_back(self, place: Place) -> None:
        """The reserved file was not written, or is removed again."""
        with self._lock:
            self._under_way.pop(place)

    def forget(self, size_bytes: int) -> None:
        """A file that had been kept is removed."""
        with self._lock:
            self._used_bytes = max(0, self._used_bytes - size_bytes)

    def remove_later(self, place: Place) -> None:
        """Leave a file that could not be removed to the next sweep."""
        with self._lock:
            self._unwanted.add(place)

    def sweep(self) -> int:
        """Remove expired, abandoned and unwanted files, and count the rest. Returns how many were removed."""
        with self._lock:
            try:
                return self._sweep()
            except OSError:
                return 0

    def _fits(self, size_bytes: int) -> bool:
        return self._used_bytes + sum(self._under_way.values()) + size_bytes <= self._quota_bytes

    def _is_time_to_sweep(self, swept_ns: int) -> bool:
        return self._clock.now_ns() - swept_ns >= MIN_SWEEP_INTERVAL_NS

    def _sweep(self) -> int:
        removed = used_bytes = 0
        with open_root(self._folder) as root:
            for owner_name in list_folders(root):
                # A folder that cannot be read neither counts nor keeps the others from being looked through.
                with contextlib.suppress(OSError), open_folder(root, owner_name, create=False) as folder:
                    removed_here, used_here = self._sweep_folder(folder, owner_name)
                    removed += removed_here
                    used_bytes += used_here
                with contextlib.suppress(OSError):
                    os.rmdir(owner_name, dir_fd=root)  # only ever an empty one
        self._used_bytes = used_bytes
        self._swept_ns = self._clock.now_ns()
        return removed

    def _sweep_folder(self, folder: int, owner_name: str) -> tuple[int, int]:
        removed = used_bytes = 0
        for file in list_files(folder):
            place = Place(owner_name, file.name)
            if place in self._under_way:
                continue
            if self._remove_if_done_with(folder, place, file):
                removed += 1
            else:
                used_bytes += file.size_bytes
        return removed, used_bytes

    def _remove_if_done_with(self, folder: int, place: Place, file: StoredFile) -> bool:
        if file.name.endswith(TEMPORARY_SUFFIX):
            return remove_abandoned(folder, file.name)
        if place not in self._unwanted and self._clock.now_ns() - file.stamp_ns < self._expiry_ns:
            return False
        try:
            remove_file(folder, file.name)
        except OSError:
            return False
        self._unwanted.discard(place)
        return True
