"""The search itself, in process: how its time grows with the number of sessions."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from sessionref_server.domain.ports import HeadChanges, SourceCheck
from sessionref_server.domain.session import SessionHead
from sessionref_server.service.session_catalog import SessionCatalog, SessionQuery
from sessionref_server.wire import encode

from tests.bench.generate import SOURCES, session_heads, typed_queries
from tests.bench.report import Curve, exponent, quantile
from tests.bench.workbench import Workbench

COUNTS = (10_000, 100_000, 1_000_000)
KEYSTROKES = {10_000: 4_000, 100_000: 2_000, 1_000_000: 600}
WORKSPACES = 20
P99_MS = {10_000: 3.0, 1_000_000: 40.0}


def measure(bench: Workbench) -> None:
    """Time in ``catalog.search`` and encoding, keystroke by keystroke, each size in a process of its own.

    It is the processor's time of the thread that is counted: garbage collection is in it, what else the machine does is not.
    """
    p50: dict[float, float] = {}
    p99: dict[float, float] = {}
    for count in COUNTS:
        command = [sys.executable, "-m", "tests.bench.search_index", str(count)]
        done = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        p50[count], p99[count] = quantile(done["ms"], 0.5), quantile(done["ms"], 0.99)
        bench.report.info(f"handler p50, {count:,} sessions", p50[count], "ms")
        if count in P99_MS:
            bench.report.at_most(f"handler p99, {count:,} sessions", p99[count], "ms", P99_MS[count])
        else:
            bench.report.info(f"handler p99, {count:,} sessions", p99[count], "ms")
        bench.report.info(f"first search after all came in at once, {count:,} sessions", done["first_ms"], "ms")
        bench.report.info(f"first search from a workspace, {count:,} sessions", quantile(done["from_new_ms"], 0.5), "ms")
    bench.report.at_most("growth of handler p99 with sessions", exponent(p99), "exponent", 1.05)
    bench.report.info("growth of handler p50 with sessions", exponent(p50), "exponent")
    curves = [Curve(label="p50", points=list(p50.items())), Curve(label="p99", points=list(p99.items()))]
    bench.report.draw("search-growth", "sessions", "ms", curves, log_x=True)


class _Listed:
    """A source whose sessions are all known."""

    def __init__(self, name: str, heads: Sequence[SessionHead]) -> None:
        self.name = name
        self._heads = heads
        self._ready = False

    def check(self) -> SourceCheck:
        return SourceCheck(name=self.name, ready=self._ready, listed=len(self._heads))

    async def follow_heads(self, publish: Callable[[HeadChanges], None]) -> None:
        publish(HeadChanges(changed=self._heads))
        self._ready = True
        publish(HeadChanges())
        await asyncio.Event().wait()

    async def read_surface(self, session_id: str) -> object:
        raise NotImplementedError(session_id)


async def _timed(count: int) -> dict[str, object]:
    heads = session_heads(count)
    named = [(head.label, head.session_id) for head in heads[: 200 * (count // 10_000) : count // 10_000]]
    workspaces = sorted({head.cwd for head in heads[:2000]})[:WORKSPACES]
    queries = [
        SessionQuery(target_id="me", target_cwd=None if number % 4 == 0 else workspaces[number % WORKSPACES], text=text)
        for number, typed in enumerate(typed_queries(named, KEYSTROKES[count]))
        for text in typed
    ]
    sources = [_Listed(name, [head for head in heads if head.source == name]) for name in SOURCES]
    catalog = SessionCatalog(sources, ["dsh"])  # type: ignore[arg-type]
    following = asyncio.create_task(catalog.run())
    await catalog.wait_ready()
    first_ms, *_ = _search(catalog, [SessionQuery(text="zq")])
    from_new_ms = _search(catalog, [SessionQuery(target_cwd=workspace, text="zq") for workspace in workspaces])
    times_ms = _search(catalog, queries)
    following.cancel()
    return {"first_ms": first_ms, "from_new_ms": from_new_ms, "ms": times_ms, "queries": [query.text for query in queries]}


def _search(catalog: SessionCatalog, queries: Sequence[SessionQuery]) -> list[float]:
    times_ms: list[float] = []
    for query in queries:
        begun = time.thread_time()
        result = catalog.search(query)
        encode.sessions_batch(result.found, result.checks, partial=False)
        times_ms.append(1000 * (time.thread_time() - begun))
    return times_ms


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_timed(int(sys.argv[1])))))
