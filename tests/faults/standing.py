"""What a process holds at a moment: the same before and after, or something was left behind."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass
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


async def settled(expected: Standing) -> Standing:
    """The standing, once it is as expected or has not become so for seconds: what was cancelled may still be leaving."""
    for _ in range(500):
        if standing() == expected:
            break
        await asyncio.sleep(0.01)
    return standing()


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
