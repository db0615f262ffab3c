"""A client in a process of its own: so many calls at a time, one after the other, for so long.

``python -m tests.bench.load_client JSON`` with the fields of ``Load``; prints JSON with the fields of ``Seen``.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import grpc
import uvloop
from sessionref.v1 import reference_pb2
from sessionref.v1 import session_reference_service_pb2 as service_pb2

SEARCH = "/sessionref.v1.SessionReferenceService/SearchCandidates"
ECHO_STREAM = "/echo.Echo/Stream"
ECHO_UNARY = "/echo.Echo/Unary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to do."""

    address: str
    method: str
    queries: str
    """A file with a JSON list; the requests have them in turn."""
    at_once: int
    seconds: float
    core: int
    calls: int = 10**9
    """Stop after so many even when there is time left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of it."""

    calls: int
    seconds: float
    latencies_ms: list[float] = field(default_factory=list[float])


def run(load: Load) -> Seen:
    """Run the client and wait for it."""
    command = [sys.executable, "-m", "tests.bench.load_client", json.dumps(asdict(load))]
    done = subprocess.run(command, check=True, capture_output=True)
    return Seen(**json.loads(done.stdout))


async def _drive(load: Load, queries: list[str]) -> Seen:
    os.sched_setaffinity(0, {load.core})
    latencies: list[float] = []
    async with grpc.aio.insecure_channel(load.address) as channel:
        await channel.channel_ready()
        kind = channel.unary_unary if load.method == ECHO_UNARY else channel.unary_stream
        method = kind(
            load.method,
            request_serializer=service_pb2.SearchCandidatesRequest.SerializeToString,
            response_deserializer=service_pb2.SearchCandidatesResponse.FromString,
        )
        begun = time.perf_counter()

        async def type_on(typist: int) -> None:
            # Each begins somewhere else in the list, and goes on keystroke by keystroke from there.
            number = typist * (len(queries) // load.at_once)
            target = reference_pb2.Target(session_id=f"typist-{typist}", cwd=f"/home/dev/src/project-{typist}")
            while time.perf_counter() - begun < load.seconds and len(latencies) < load.calls:
                asked = time.perf_counter()
                request = service_pb2.SearchCandidatesRequest(query=queries[number % len(queries)], domains=[2], target=target)
                call = method(request, timeout=20)
                if load.method == ECHO_UNARY:
                    await call
                else:
                    async for _ in call:
                        pass
                latencies.append(1000 * (time.perf_counter() - asked))
                number += 1

        await asyncio.gather(*(type_on(typist) for typist in range(load.at_once)))
        seconds = time.perf_counter() - begun
    return Seen(calls=len(latencies), seconds=seconds, latencies_ms=latencies)


if __name__ == "__main__":
    asked_for = Load(**json.loads(sys.argv[1]))
    seen = uvloop.run(_drive(asked_for, json.loads(Path(asked_for.queries).read_bytes())))
    print(json.dumps(asdict(seen)))
