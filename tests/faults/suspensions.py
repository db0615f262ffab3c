"""Every place at which a piece of asynchronous work gives control away, counted, and cancelled at one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


class Suspensions:
    """Runs work, the tasks it starts included, and cancels it as a whole when it is suspended for the ``cancel_at``-th time."""

    def __init__(self, cancel_at: int) -> None:
        self.count = 0
        self._cancel_at = cancel_at
        self._main: asyncio.Task[Any] | None = None

    async def run(self, work: Coroutine[Any, Any, object]) -> object:
        """The result of the work. Raises CancelledError when it was cancelled."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._make_task)
        self._main = loop.create_task(work)
        try:
            return await self._main
        finally:
            loop.set_task_factory(None)

    def suspended(self) -> None:
        self.count += 1
        if self.count == self._cancel_at and self._main is not None:
            self._main.cancel()

    def _make_task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(_Counted(work, self), loop=loop, **options)


class _Counted(Coroutine[Any, Any, Any]):
    """A coroutine that tells whenever it is suspended."""

    def __init__(self, work: Coroutine[Any, Any, Any], suspensions: Suspensions) -> None:
        self._work = work
        self._suspensions = suspensions

    def send(self, value: Any) -> Any:
        return self._told(self._work.send(value))

    def throw(self, *error: Any) -> Any:
        return self._told(self._work.throw(*error))

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._work.__await__()

    def _told(self, waited_for: Any) -> Any:
        self._suspensions.suspended()
        return waited_for
