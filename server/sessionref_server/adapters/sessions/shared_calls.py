"""Work that several callers wait for at once, done once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class CallAbandonedError(Exception):
    """The shared work was cancelled by somebody who is none of its callers (the service is closing)."""


class SharedCalls(Generic[K, T]):
    """Runs at most one call per key. A caller's cancellation ends its own waiting; that of the last one ends the work."""

    def __init__(self) -> None:
        self._running: dict[K, tuple[asyncio.Task[T], list[None]]] = {}

    async def run(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of ``work``, begun by this caller or by an earlier one. Raises what it raises, or CallAbandonedError."""
        found = self._running.get(key)
        if found is None:
            task = asyncio.create_task(work())
            found = self._running[key] = (task, [])
            task.add_done_callback(lambda done: self._forget(key, done))
        task, waiters = found
        waiters.append(None)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if task.cancelled() and current is not None and not current.cancelling():
                raise CallAbandonedError from None
            raise
        finally:
            waiters.pop()
            if not waiters and not task.done():
                self._running.pop(key, None)
                task.cancel()

    def _forget(self, key: K, task: asyncio.Task[T]) -> None:
        found = self._running.get(key)
        if found is not None and found[0] is task:
            del self._running[key]
        if not task.cancelled():
            task.exception()  # seen, even when every caller has left
