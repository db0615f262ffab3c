"""What a process holds at a moment: more afterwards than before means that something was left behind."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from faults.server_process import children_of
from rpc.served import Served
from sessionref_server.adapters.sessions.log_directory import LogDirectorySource

_OWN_THREADS = ("sessionref-", "logs-")
"""gRPC's own threads come and go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    tasks: int
    threads: int
    """Threads of the server's adapters."""
    descriptors: int
    children: int


def standing() -> Standing:
    """Of this process, with a server running in it."""
    return Standing(
        tasks=len(asyncio.all_tasks()),
        threads=sum(thread.name.startswith(_OWN_THREADS) for thread in threading.enumerate()),
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        children=len(children_of(os.getpid())),
    )


async def left_behind(before: Standing) -> dict[str, int]:
    """What there is more than before, once there is nothing or there has been something for seconds: what was cancelled may
    still be leaving.
    """
    more = _more_than(before)
    for _ in range(500):
        if not more:
            break
        await asyncio.sleep(0.01)
        more = _more_than(before)
    return more


def _more_than(before: Standing) -> dict[str, int]:
    now, then = asdict(standing()), asdict(before)
    return {name: number - then[name] for name, number in now.items() if number > then[name]}


async def threads_free(served: Served) -> None:
    """Wait until the threads of store and source have done all they had to; every thread they may have exists then."""
    executors = [
        source._executor for source in served.application.catalog._sources.values() if isinstance(source, LogDirectorySource)
    ]
    if served.application.spill is not None:
        executors.append(served.application.spill._threads)
    for executor in executors:
        size = executor._max_workers
        meeting = threading.Barrier(size)
        await asyncio.gather(*(asyncio.wrap_future(executor.submit(meeting.wait)) for _ in range(size)))
