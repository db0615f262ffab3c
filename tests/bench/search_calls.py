"""SearchCandidates over gRPC against the limit, an echo of the same size."""

from __future__ import annotations

from pathlib import Path

from tests.bench import load_client
from tests.bench.load_client import Load, Seen
from tests.bench.processes import CLIENT_CORE, SERVER_CORE, ChildServer
from tests.bench.report import median, quantile
from tests.bench.workbench import Workbench

ROUNDS = 5
ROUND_SECONDS = 1.5
AT_ONCE = 8
SHARE_OF_ECHO = 0.7
METHODS = (load_client.ECHO_UNARY, load_client.ECHO_STREAM, load_client.SEARCH)


def measure(bench: Workbench) -> None:
    """Throughput with eight calls at once, latency with one at a time; the servers on one core, the client on the other."""
    with bench.serving() as server:
        response = bench.folder / "response"
        raw = server.search("").SerializeToString()
        response.write_bytes(raw)
        arguments = ["-m", "tests.bench.echo_server", f"unix:{bench.folder}/echo/socket", str(response)]
        with ChildServer(arguments, bench.folder / "echo") as echo:
            echo.wait_listening()
            for each in (server, echo):
                each.pin({SERVER_CORE})
            bench.report.say(
                f"echo and server on core {SERVER_CORE}, client on core {CLIENT_CORE}; {ROUNDS} rounds of {ROUND_SECONDS} s each "
                f"in turn, {AT_ONCE} calls at once; response of 50 candidates: {len(raw):,} bytes"
            )
            _report(bench, {method: server if method == load_client.SEARCH else echo for method in METHODS})


def _report(bench: Workbench, servers: dict[str, ChildServer]) -> None:
    rates: dict[str, list[float]] = {method: [] for method in METHODS}
    costs: dict[str, list[float]] = {method: [] for method in METHODS}
    for _ in range(ROUNDS):
        for method, server in servers.items():
            before = server.cpu_seconds()
            seen = _drive(server, method, bench.queries, at_once=AT_ONCE)
            costs[method].append(1e6 * (server.cpu_seconds() - before) / seen.calls)
            rates[method].append(seen.calls / seen.seconds)
    alone = {method: _drive(server, method, bench.queries, at_once=1) for method, server in servers.items()}
    report, echo, search = bench.report, load_client.ECHO_STREAM, load_client.SEARCH
    report.info("echo unary throughput", median(rates[load_client.ECHO_UNARY]), "calls/s")
    report.info("echo stream throughput", median(rates[echo]), "calls/s")
    report.info("echo stream server CPU per call", median(costs[echo]), "us")
    report.info("search throughput, 10,000 sessions", median(rates[search]), "calls/s")
    report.info("search server CPU per call", median(costs[search]), "us")
    shares = [ours / limit for ours, limit in zip(rates[search], rates[echo], strict=True)]
    report.at_least("search throughput / echo stream throughput", median(shares), "", SHARE_OF_ECHO)
    shares = [limit / ours for ours, limit in zip(costs[search], costs[echo], strict=True)]
    report.at_least("echo stream CPU per call / search CPU per call", median(shares), "", SHARE_OF_ECHO)
    for method, name in ((echo, "echo stream"), (search, "search")):
        for share in (0.5, 0.99):
            latency = quantile(alone[method].latencies_ms, share)
            report.info(f"{name} client latency p{share * 100:.0f}, one at a time", latency, "ms")


def _drive(server: ChildServer, method: str, queries: Path, *, at_once: int) -> Seen:
    return load_client.run(
        Load(
            address=server.address,
            method=method,
            queries=str(queries),
            at_once=at_once,
            seconds=ROUND_SECONDS,
            core=CLIENT_CORE,
        )
    )
