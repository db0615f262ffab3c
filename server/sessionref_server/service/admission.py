"""Bounded admission: the work is refused before it is begun, so that an overloaded server stays fast for what it accepts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import monotonic

from sessionref_server.domain.errors import OverloadedError

_SMOOTHING = 0.2
_PATIENCE_SECONDS = 0.5
"""A wait that nobody minds."""


class Admission:
    """At most ``max_concurrent`` holders at a time and ``max_queued`` waiting; everyone else is refused at once.

    A caller whose remaining time is shorter than the wait to be expected is refused as well: its answer would come too late, and
    working on it would only take the place of one that can still be in time. So is one who would wait for more than half a second
    and longer than a call takes: a queue that long is no burst, and all who wait in it would only see the server slow.
    """

    def __init__(self, max_concurrent: int, max_queued: int) -> None:
        self.max_concurrent = max_concurrent
        self.max_queued = max_queued
        self._free = asyncio.Semaphore(max_concurrent)
        self._running = 0
        self._waiting = 0
        self._typical_seconds = 0.0

    @asynccontextmanager
    async def admit(self, remaining_seconds: float | None) -> AsyncGenerator[None]:
        """Hold a place while the body runs.

        Raises:
            OverloadedError: no place is free in time.
        """
        self._refuse_if_hopeless(remaining_seconds)
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        self._running += 1
        begun, ended_well = monotonic(), False
        try:
            yield
            ended_well = True
        finally:
            self._running -= 1
            self._free.release()
            self._learn(monotonic() - begun, ended_well=ended_well)

    def _learn(self, seconds: float, *, ended_well: bool) -> None:
        """Adjust what is expected. A call that failed or was cancelled shows how long calls take at least, never how short."""
        if ended_well or seconds > self._typical_seconds:
            self._typical_seconds += _SMOOTHING * (seconds - self._typical_seconds)

    def _refuse_if_hopeless(self, remaining_seconds: float | None) -> None:
        ahead = self._running + self._waiting - self.max_concurrent + 1
        if ahead <= 0:
            return
        if self._waiting >= self.max_queued:
            raise OverloadedError("too many calls at once; try again later")
        wait_seconds = self._typical_seconds * ahead / self.max_concurrent
        if remaining_seconds is not None and remaining_seconds < wait_seconds:
            raise OverloadedError("the deadline is shorter than the queue; try again later")
        if wait_seconds > max(_PATIENCE_SECONDS, self._typical_seconds):
            raise OverloadedError("the queue is too long; try again later")
