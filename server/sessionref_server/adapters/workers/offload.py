"""Pure functions in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar, cast

from sessionref_server.adapters.workers.job import Job, WorkerFailedError
from sessionref_server.adapters.workers.pool import WorkerPool
from sessionref_server.domain.errors import OverloadedError

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FunctionJob:
    """Calls a function. Its cost is bounded by its input, so it is not interrupted."""

    function: Callable[[], object]

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        """Call it, unless nobody waits any more."""
        return None if is_cancelled() else self.function()


@dataclass(frozen=True, slots=True)
class JoinJob:
    """Joins the pieces a function yields."""

    pieces: Callable[[], Iterable[bytes]]

    def run(self, is_cancelled: Callable[[], bool]) -> bytes:
        """Collect piece after piece until there is none left, or nobody waits any more."""
        joined = bytearray()
        for piece in self.pieces():
            if is_cancelled():
                break
            joined += piece
        return bytes(joined)


class PoolOffload:
    """An Offload over a pool of worker processes."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a module-level function of bounded cost."""
        return cast("T", await self._run(FunctionJob(partial(function, *args, **kwargs))))

    async def build_bytes(self, pieces: Callable[P, Iterable[bytes]], /, *args: P.args, **kwargs: P.kwargs) -> bytes:
        """Run a module-level function that yields pieces, and join them."""
        return cast("bytes", await self._run(JoinJob(partial(pieces, *args, **kwargs))))

    async def _run(self, job: Job) -> object:
        try:
            return await self._pool.run(job)
        except WorkerFailedError as error:
            raise OverloadedError("a worker process failed; try again later") from error
