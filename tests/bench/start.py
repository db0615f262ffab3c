"""Reading ten thousand logs: cold, and again from what was kept; what that takes in memory."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.bench.generate import SOURCES
from tests.bench.processes import Memory, serve
from tests.bench.report import median
from tests.bench.workbench import SESSIONS, Workbench

WARM_ROUNDS = 5
CAT_ROUNDS = 3
_MIB = 1024 * 1024


def measure(bench: Workbench) -> None:
    """Processes are not pinned here: workers and server share both cores. Cold logs are in no page cache, for all sides."""
    report = bench.report
    empty = _empty_memory(bench)  # also compiles the modules, as an installation does
    cold = [_cat(bench, cached=False) for _ in range(CAT_ROUNDS)]
    report.info("cat of the logs, not in the page cache", median(cold), "s")
    report.info("cat of the logs, in the page cache", median([_cat(bench, cached=True) for _ in range(CAT_ROUNDS)]), "s")
    bench.forget_pages()
    with serve(bench.logs.roots(), bench.folder / "server") as server:
        report.info("cold start: listening", server.wait_listening(), "s")
        report.at_most("cold start: first answer with candidates", server.wait_first_candidate(), "s", 1.0)
        whole = server.wait_ready()
        report.info("cold start: all heads", whole, "s")
        report.at_most("cold start: all heads / cat", whole / median(cold), "", 3.0)
        _report_memory(bench, "after a cold start", server.memory())
    _with_rules_only(bench, median(cold))
    _measure_warm(bench, empty)


def _with_rules_only(bench: Workbench, cat_seconds: float) -> None:
    """The same when the secret scanner's rules were compiled before: what the first start of all pays and no other."""
    for path in (bench.folder / "server" / "cache").glob("heads.sqlite3*"):
        path.unlink()
    bench.forget_pages()
    with serve(bench.logs.roots(), bench.folder / "server") as server:
        bench.report.info("cold start, rules compiled: first answer with candidates", server.wait_first_candidate(), "s")
        bench.report.info("cold start, rules compiled: all heads / cat", server.wait_ready() / cat_seconds, "")


def _measure_warm(bench: Workbench, empty: Memory) -> None:
    report = bench.report
    first: list[float] = []
    whole: list[float] = []
    for _ in range(WARM_ROUNDS):
        with serve(bench.logs.roots(), bench.folder / "server") as server:
            first.append(server.wait_first_candidate())
            whole.append(server.wait_ready())
            time.sleep(0.5)
            last, own = server.memory(), server.own_memory()
    report.info("warm start: exec to first answer with candidates", median(first), "s")
    report.at_most("warm start: exec to all heads", median(whole), "s", 0.5)
    report.info("warm start: exec to all heads, best", min(whole), "s")
    _report_memory(bench, "after a warm start", last)
    report.info("memory of the server process alone, rss", own.rss / _MIB, "MiB")
    report.info("memory of the server process alone without sessions, rss", empty.rss / _MIB, "MiB")
    report.at_most("memory of one session in the catalogue", (own.private - empty.private) / SESSIONS, "B", 1024)


def _report_memory(bench: Workbench, when: str, memory: Memory) -> None:
    bench.report.at_most(f"memory {when}, {memory.processes} processes, pss", memory.pss / _MIB, "MiB", 150)
    bench.report.info(f"memory {when}, {memory.processes} processes, rss", memory.rss / _MIB, "MiB")


def _cat(bench: Workbench, *, cached: bool) -> float:
    if not cached:
        bench.forget_pages()
    paths = "\0".join(str(session.path) for session in bench.logs.sessions).encode()
    begun = time.perf_counter()
    with Path("/dev/null").open("wb") as nowhere:
        subprocess.run(["xargs", "-0", "cat"], input=paths, stdout=nowhere, check=True)
    return time.perf_counter() - begun


def _empty_memory(bench: Workbench) -> Memory:
    """What the same server takes without any session."""
    folder = bench.folder / "nothing"
    roots = {source: folder / source for source in SOURCES}
    for root in roots.values():
        root.mkdir(parents=True)
    for _ in range(2):  # the first start compiles the rules of the secret scanner
        with serve(roots, bench.folder / "empty") as server:
            server.wait_ready()
            time.sleep(1)
            memory = server.own_memory()
    return memory
