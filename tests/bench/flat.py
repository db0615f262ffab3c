"""Memory after many calls against memory after few."""

from __future__ import annotations

from tests.bench import load_client
from tests.bench.generate import Folder
from tests.bench.load_client import Load
from tests.bench.prepare import prepare
from tests.bench.processes import CLIENT_CORE, ChildServer, serve
from tests.bench.report import Curve
from tests.bench.workbench import Workbench

FEW, MANY = 100, 1_000
SESSIONS = 60
LOG_BYTES = 60_000
SEARCHES = 20_000
_MIB = 1024 * 1024
_ALLOWED_MIB = 8.0


def measure(bench: Workbench) -> None:
    """Prepares of three sessions each, over sixty sessions; then searches."""
    logs = Folder(bench.folder / "small", seed=8)
    logs.fill([LOG_BYTES] * SESSIONS)
    with serve(logs.roots(), bench.folder / "flat") as server:
        server.wait_ready()
        ends = range(FEW, MANY + 1, FEW)
        points = [(float(end), _after_prepares(server, logs, end - FEW, end)) for end in ends]
        bench.report.info(f"memory after {FEW} Prepares, rss", points[0][1], "MiB")
        bench.report.at_most(f"growth from {FEW} to {MANY:,} Prepares, rss", points[-1][1] - points[0][1], "MiB", _ALLOWED_MIB)
        before = server.memory().rss / _MIB
        # The first thousand fill what is kept of candidates.
        _search(bench, server, 1_000)
        warmed = server.memory().rss / _MIB
        _search(bench, server, SEARCHES)
        grown = server.memory().rss / _MIB - warmed
        bench.report.info("growth by the first 1,000 searches, rss", warmed - before, "MiB")
        bench.report.at_most(f"growth by {SEARCHES:,} searches more, rss", grown, "MiB", _ALLOWED_MIB)
    bench.report.draw("memory-flat", "Prepares", "MiB, server and workers", [Curve(label="rss", points=points)])


def _after_prepares(server: ChildServer, logs: Folder, first: int, end: int) -> float:
    for number in range(first, end):
        chosen = [logs.sessions[(number + 17 * place) % SESSIONS] for place in range(3)]
        prepare(server, chosen, target=f"target-{number % 20}")
    return server.memory().rss / _MIB


def _search(bench: Workbench, server: ChildServer, calls: int) -> None:
    queries = str(bench.queries)
    load = Load(
        address=server.address,
        method=load_client.SEARCH,
        queries=queries,
        at_once=8,
        seconds=60,
        core=CLIENT_CORE,
        calls=calls,
    )
    load_client.run(load)
