"""How soon a change of a log shows in a search."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

from tests.bench.generate import Session
from tests.bench.processes import ChildServer
from tests.bench.report import median
from tests.bench.workbench import Workbench

TIMES = 20
_PATIENCE_SECONDS = 10.0
"""A change that has not shown by then counts as this old."""
_SETTLE_SECONDS = 2.0
_PAUSE_SECONDS = 0.002


def measure(bench: Workbench) -> None:
    """One search after the other until the change shows; twenty times each, in turn over the three agents."""
    with bench.serving() as server:
        at_once = _new(bench, server, 0)
        bench.report.at_most("new log right after the start to its visibility", at_once, "s", 1.0)
        time.sleep(_SETTLE_SECONDS)
        for name, change in {"new log": _new, "title appended": _retitle, "log renamed": _rename, "log deleted": _delete}.items():
            times = [change(bench, server, number) for number in range(TIMES)]
            bench.report.info(f"{name} to its visibility, median of {TIMES}", median(times), "s")
            bench.report.at_most(f"{name} to its visibility, worst of {TIMES}", max(times), "s", 1.0)


def _new(bench: Workbench, server: ChildServer, number: int) -> float:
    source = ("dsh", "claude-code", "codex")[number % 3]
    begun = time.perf_counter()
    session = bench.logs.add(source, 20_000, started_ms=int(time.time() * 1000))
    return _until(lambda: session.session_id in _found(server, session.session_id), begun)


def _retitle(bench: Workbench, server: ChildServer, number: int) -> float:
    """Append a title, in the two agents that keep titles in their logs."""
    session = _recent(bench, number, sources=("dsh", "claude-code"))
    title = f"Retitled zx{number}"
    if session.source == "dsh":
        seq = session.path.read_bytes().count(b"\n") - 1
        data = {"title": title, "messageSeqs": [], "source": {"kind": "user"}}
        line = json.dumps({"type": "session/title", "seq": seq, "time": 1, "data": data})
    else:
        native_id = session.session_id.partition(":")[2]
        line = json.dumps({"type": "custom-title", "customTitle": title, "sessionId": native_id})
    begun = time.perf_counter()
    with session.path.open("a") as log:
        log.write(line + "\n")
    return _until(lambda: session.session_id in _found(server, f"retitled zx{number}"), begun)


def _rename(bench: Workbench, server: ChildServer, number: int) -> float:
    """Move a Claude Code log to another name, which is another session."""
    session = _recent(bench, number, sources=("claude-code",))
    new_id = session.session_id[:-4] + f"f{number:03d}"
    begun = time.perf_counter()
    session.path.rename(session.path.with_name(new_id.partition(":")[2] + ".jsonl"))
    bench.logs.sessions.remove(session)
    return _until(lambda: _found(server, new_id) == [new_id] and not _found(server, session.session_id), begun)


def _delete(bench: Workbench, server: ChildServer, number: int) -> float:
    session = _recent(bench, number, sources=("dsh", "codex"))
    begun = time.perf_counter()
    os.unlink(session.path)  # noqa: PTH108
    bench.logs.sessions.remove(session)
    return _until(lambda: not _found(server, session.session_id), begun)


def _recent(bench: Workbench, number: int, sources: tuple[str, ...]) -> Session:
    """One of the sessions of some sources, another one each time, the smaller half."""
    fitting = [session for session in bench.logs.sessions if session.source in sources]
    return fitting[-1 - 7 * number]


def _found(server: ChildServer, query: str) -> list[str]:
    return [candidate.session_id for candidate in server.search(query, limit=5).sessions.candidates]


def _until(is_so: Callable[[], bool], begun: float) -> float:
    while not is_so():
        if time.perf_counter() - begun > _PATIENCE_SECONDS:
            return _PATIENCE_SECONDS
        time.sleep(_PAUSE_SECONDS)
    return time.perf_counter() - begun
