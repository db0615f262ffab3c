"""Prepare of three sessions of 10 MB, one of each agent, against reading and parsing their logs in one process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import orjson
import uvloop
from sessionref.v1 import reference_pb2
from sessionref.v1 import session_reference_service_pb2 as service_pb2
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub

from tests.bench.generate import SOURCES, Folder, Session, grow
from tests.bench.processes import ChildServer, serve
from tests.bench.report import median, quantile
from tests.bench.workbench import Workbench

LOG_BYTES = 10_000_000
GROWTH_BYTES = 10_000
SETS = 5
WARM_CALLS = 40
_TIMEOUT_SECONDS = 60
_TICK_SECONDS = 0.001


def measure(bench: Workbench) -> None:
    """Cold: five sets of three logs nobody has read the messages of yet, each set right after the loop it is compared with."""
    logs = Folder(bench.folder / "big", seed=5)
    sets = [[logs.add(source, LOG_BYTES) for source in SOURCES] for _ in range(SETS)]
    small = [logs.add(source, 20_000) for source in SOURCES]
    report = bench.report
    with serve(logs.roots(), bench.folder / "prepare") as server:
        server.wait_ready()
        prepare(server, small)
        time.sleep(1)
        plain: list[float] = []
        cold: list[float] = []
        for sessions in sets:
            plain.append(_read_and_parse(sessions))
            cold.append(prepare(server, sessions))
        report.info("reading 3 x 10 MB and orjson.loads of each line", 1000 * median(plain), "ms")
        report.info("Prepare cold, 3 x 10 MB", 1000 * median(cold), "ms")
        ratios = [ours / limit for ours, limit in zip(cold, plain, strict=True)]
        report.at_most("Prepare cold / reading and parsing", median(ratios), "", 1.3)
        report.info("Prepare cold / reading and parsing, worst", max(ratios), "")
        last = sets[-1]
        again = median([prepare(server, last) for _ in range(WARM_CALLS)])
        report.at_most("Prepare again, unchanged, median", 1000 * again, "ms", 10)
        grown = [_grown(server, last) for _ in range(WARM_CALLS // 4)]
        report.info(f"Prepare after each grew by {GROWTH_BYTES:,} bytes, median", 1000 * median(grown), "ms")
        share = 3 * GROWTH_BYTES / sum(session.path.stat().st_size for session in last)
        report.at_most(f"grown / cold (the growth is {share:.2%} of the logs)", median(grown) / median(cold), "", 0.2)
    _report_stalls(bench, logs, sets)


def prepare(server: ChildServer, sessions: Sequence[Session], target: str = "bench") -> float:
    """Call Prepare; returns the seconds it took."""
    begun = time.perf_counter()
    response = server.stub.Prepare(request_for(sessions, target), timeout=_TIMEOUT_SECONDS)
    seconds = time.perf_counter() - begun
    assert len(response.additional_context.source.references) == len(sessions)
    assert all(reference.original_messages for reference in response.additional_context.source.references)
    return seconds


def request_for(sessions: Sequence[Session], target: str) -> service_pb2.PrepareRequest:
    """A message that refers to some sessions."""
    references = [reference_pb2.SessionReferenceInput(session_id=session.session_id) for session in sessions]
    return service_pb2.PrepareRequest(target=reference_pb2.Target(session_id=target), references=references)


def _read_and_parse(sessions: Sequence[Session]) -> float:
    begun = time.perf_counter()
    for session in sessions:
        with session.path.open("rb") as log:
            for line in log:
                orjson.loads(line)
    return time.perf_counter() - begun


def _grown(server: ChildServer, sessions: Sequence[Session]) -> float:
    for session in sessions:
        grow(session, GROWTH_BYTES)
    return prepare(server, sessions)


def _report_stalls(bench: Workbench, logs: Folder, sets: Sequence[Sequence[Session]]) -> None:
    """The same wiring with a clock that ticks on the server's event loop, in a process of its own."""
    roots = {source: str(root) for source, root in logs.roots().items()}
    ids = [[session.session_id for session in sessions] for sessions in sets]
    (bench.folder / "stalls").mkdir()
    command = [sys.executable, "-m", "tests.bench.prepare", json.dumps({"roots": roots, "ids": ids})]
    done = json.loads(subprocess.run([*command, str(bench.folder / "stalls")], check=True, capture_output=True).stdout)
    bench.report.info("event loop late while cold Prepares run, p50", 1000 * quantile(done, 0.5), "ms")
    bench.report.at_most("event loop late while cold Prepares run, p99", 1000 * quantile(done, 0.99), "ms", 5)
    bench.report.at_most("event loop late while cold Prepares run, worst", 1000 * max(done), "ms", 50)


async def _ticked(work: dict[str, object], folder: Path) -> list[float]:
    import grpc.aio
    from sessionref_server.bootstrap import running
    from sessionref_server.config import load_config

    flags = {"listen.addresses": f"unix:{folder}/socket", "cache.folder": f"{folder}/cache", "spill.folder": f"{folder}/spill"}
    flags |= {f"sources.{source}.roots": root for source, root in dict(work["roots"]).items()}  # type: ignore[call-overload]
    late: list[float] = []
    async with running(load_config(flags=flags)[0]) as application, grpc.aio.insecure_channel(f"unix:{folder}/socket") as channel:
        await application.catalog.wait_ready()
        if application.detector is not None:
            await application.detector.start()
        await asyncio.sleep(1)
        ticking = asyncio.create_task(_tick(late))
        stub = SessionReferenceServiceStub(channel)
        for ids in work["ids"]:  # type: ignore[attr-defined]
            references = [reference_pb2.SessionReferenceInput(session_id=session_id) for session_id in ids]
            target = reference_pb2.Target(session_id="bench")
            await stub.Prepare(service_pb2.PrepareRequest(target=target, references=references), timeout=_TIMEOUT_SECONDS)
        ticking.cancel()
    return late


async def _tick(late: list[float]) -> None:
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(_TICK_SECONDS)
        late.append(max(0.0, time.perf_counter() - begun - _TICK_SECONDS))


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_ticked(json.loads(sys.argv[1]), Path(sys.argv[2])))))
