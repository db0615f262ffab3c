"""Which recorded directories are one directory under several names (links). No search ever waits for a disk to find that out."""

from __future__ import annotations

import asyncio
import os
import stat
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

TARGET_SECONDS = 5.0
"""How long what was found of a target's directory holds before it is looked at again."""
PATIENCE_SECONDS = 0.25
"""A directory that does not answer by then (a dead network drive) counts as no directory here."""
MAX_TARGETS = 256
MAX_RECORDED = 50_000
"""Recorded directories that are looked at; more cost more than links are worth."""

Identity = tuple[int, int]
"""Device and inode."""


@dataclass(slots=True)
class _Target:
    identity: Identity | None = None
    looked_at: float | None = None
    """Monotonic time of the last answer; ``None`` before the first."""
    asked_at: float | None = None
    """Monotonic time of a question that is not answered yet."""


class SameDirectories:
    """Identities of recorded and of target directories. Used on one event loop; looking is done in two threads of its own."""

    def __init__(self) -> None:
        self._recorded: dict[str, Identity | None] = {}
        self._by_identity: dict[Identity, tuple[str, ...]] = {}
        self._expected: set[str] = set()
        self._expected_since = 0.0
        self._targets: OrderedDict[str, _Target] = OrderedDict()
        self._questions: set[asyncio.Task[None]] = set()
        self._for_recorded = ThreadPoolExecutor(max_workers=1, thread_name_prefix="recorded-directories")
        self._for_targets = ThreadPoolExecutor(max_workers=1, thread_name_prefix="target-directories")
        self.answers = 0
        """Grows whenever ``others`` may give something new."""

    def expect(self, directories: Iterable[str | None]) -> bool:
        """Sessions with these directories came in; returns whether one of them is to be looked at."""
        fresh = {path for path in directories if path is not None and path not in self._recorded and _may_be_here(path)}
        if fresh and not self._expected:
            self._expected_since = _now()
        self._expected |= fresh
        return bool(fresh)

    async def look_at_expected(self) -> None:
        """Look at directories that are new."""
        expected = list(self._expected)
        if expected and len(self._recorded) < MAX_RECORDED:
            found = await asyncio.get_running_loop().run_in_executor(self._for_recorded, _identities, expected)
            self._remember({**self._recorded, **found})
        self._expected.difference_update(expected)

    async def look_at_recorded(self, directories: Collection[str]) -> None:
        """Look at all recorded directories again, and forget what is not among them."""
        paths = [path for path in directories if _may_be_here(path)][:MAX_RECORDED]
        self._remember(await asyncio.get_running_loop().run_in_executor(self._for_recorded, _identities, paths))

    def others(self, target: str) -> Collection[str]:
        """Recorded directories that are the target's under another name, by what is known now."""
        if not _may_be_here(target):
            return ()
        identity = self._identity(target)
        return () if identity is None else [path for path in self._by_identity.get(identity, ()) if path != target]

    def is_settled(self, target: str) -> bool:
        """Whether the target's directory and all recorded ones were looked at, or do not answer."""
        if self._expected and _now() - self._expected_since <= PATIENCE_SECONDS:
            return False
        found = self._targets.get(target)
        if found is None or found.looked_at is not None or found.asked_at is None:
            return True
        return _now() - found.asked_at > PATIENCE_SECONDS

    def close(self) -> None:
        """Stop waiting for answers."""
        for question in self._questions:
            question.cancel()
        self._for_recorded.shutdown(wait=False, cancel_futures=True)
        self._for_targets.shutdown(wait=False, cancel_futures=True)

    def _identity(self, target: str) -> Identity | None:
        found = self._targets.setdefault(target, _Target())
        self._targets.move_to_end(target)
        if len(self._targets) > MAX_TARGETS:
            self._targets.popitem(last=False)
        is_fresh = found.looked_at is not None and _now() - found.looked_at < TARGET_SECONDS
        if not is_fresh and found.asked_at is None:
            found.asked_at = _now()
            question = asyncio.get_running_loop().create_task(self._ask(target, found))
            self._questions.add(question)
            question.add_done_callback(self._questions.discard)
        return found.identity

    async def _ask(self, target: str, found: _Target) -> None:
        identities = await asyncio.get_running_loop().run_in_executor(self._for_targets, _identities, [target])
        found.identity = identities[target]
        found.looked_at, found.asked_at = _now(), None
        self.answers += 1

    def _remember(self, recorded: dict[str, Identity | None]) -> None:
        if recorded != self._recorded:
            self._recorded = recorded
            self._by_identity = _grouped(recorded)
            self.answers += 1


def _may_be_here(path: str) -> bool:
    """Only an absolute path of this system's own flavour can name a directory here."""
    return path.startswith("/") if os.name == "posix" else path[1:2] == ":" or path.startswith("\\\\")


def _identities(paths: Sequence[str]) -> dict[str, Identity | None]:
    return {path: _identity(path) for path in paths}


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - a recorded path is text; no rule of pathlib is to touch it
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def _grouped(found: Mapping[str, Identity | None]) -> dict[Identity, tuple[str, ...]]:
    groups: dict[Identity, list[str]] = {}
    for path, identity in found.items():
        if identity is not None:
            groups.setdefault(identity, []).append(path)
    return {identity: tuple(paths) for identity, paths in groups.items()}


def _now() -> float:
    return asyncio.get_running_loop().time()
