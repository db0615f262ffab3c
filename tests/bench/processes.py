"""Server processes, and what the system says of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import grpc
from sessionref.v1 import candidate_pb2
from sessionref.v1 import session_reference_service_pb2 as service_pb2
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub

from tests.bench.report import FOLDER

SERVER_CORE = 0
CLIENT_CORE = 1
_COMMAND = "import sys; from sessionref_server.cli import main; sys.exit(main())"
"""What the installed ``sessionref`` does."""
_START_SECONDS = 120.0
_TICKS = os.sysconf("SC_CLK_TCK")
_MAX_MESSAGE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of a process and its children, in bytes."""

    processes: int
    rss: int
    pss: int
    """As rss, but pages that several processes share are divided among them."""
    private: int


class ChildServer:
    """A server in a process of its own, which listens on a Unix socket in ``folder``."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.address = f"unix:{folder}/socket"
        self._log = (folder / "log").open("ab")
        self.started_at = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=self._log,
            stderr=self._log,
            # Modules are compiled once, as in an installation, whatever the environment of this program says.
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(FOLDER.absolute() / "pycache")},
        )
        self.pid = self.process.pid
        self.channel = grpc.insecure_channel(
            self.address,
            options=[
                ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
                ("grpc.initial_reconnect_backoff_ms", 20),
                ("grpc.min_reconnect_backoff_ms", 20),
                ("grpc.max_reconnect_backoff_ms", 20),
            ],
        )
        self.stub = SessionReferenceServiceStub(self.channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it, politely at first."""
        self.channel.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()

    def seconds(self) -> float:
        """Time since the process was started."""
        return time.perf_counter() - self.started_at

    def wait_listening(self) -> float:
        """Wait until it answers a connection; returns the time since the start in seconds."""
        grpc.channel_ready_future(self.channel).result(_START_SECONDS)
        return self.seconds()

    def wait_first_candidate(self) -> float:
        """Wait until a search finds something; returns the time since the start in seconds."""
        while not self.search("").sessions.candidates:
            time.sleep(0.005)
            self._check_alive()
        return self.seconds()

    def wait_ready(self) -> float:
        """Wait until all sources have been read; returns the time since the start in seconds."""
        while not all(source.ready for source in self.sources()):
            time.sleep(0.005)
            self._check_alive()
        return self.seconds()

    def sources(self) -> Sequence[candidate_pb2.SourceStatus]:
        """State of the sources."""
        return self.stub.GetServiceInfo(service_pb2.GetServiceInfoRequest(), timeout=_START_SECONDS, wait_for_ready=True).sources

    def search(self, query: str, limit: int = 50) -> service_pb2.SearchCandidatesResponse:
        """The first batch of a search for sessions."""
        request = service_pb2.SearchCandidatesRequest(query=query, domains=[2], limit=limit)
        call = self.stub.SearchCandidates(request, timeout=_START_SECONDS, wait_for_ready=True)
        first = next(iter(call))
        call.cancel()
        return first

    def cpu_seconds(self) -> float:
        """Processor time of the server process alone, without its workers."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def pin(self, cores: set[int]) -> None:
        """Let the server process, not its workers, run on these cores only."""
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)

    def memory(self) -> Memory:
        """Memory of the server process and its workers."""
        return _sum([process_memory(pid) for pid in (self.pid, *children(self.pid))])

    def own_memory(self) -> Memory:
        """Memory of the server process alone."""
        return _sum([process_memory(self.pid)])

    def _check_alive(self) -> None:
        if self.process.poll() is not None:
            raise RuntimeError(f"the server ended; its log is {self.folder / 'log'}")


def serve(roots: dict[str, Path], folder: Path, **settings: str) -> ChildServer:
    """``sessionref serve`` on some folders of logs; everything it keeps is in ``folder``."""
    arguments = ["-c", _COMMAND, "serve", "--listen", f"unix:{folder}/socket"]
    for source, root in roots.items():
        arguments += ["--sources-root", f"{source}={root}"]
    kept = {"cache.folder": f"{folder}/cache", "spill.folder": f"{folder}/spill", "log.format": "json"}
    for key, value in {**kept, **{name.replace("__", "."): value for name, value in settings.items()}}.items():
        arguments += ["--set", f"{key}={value}"]
    return ChildServer(arguments, folder)


def children(pid: int) -> list[int]:
    """Processes a process has started."""
    found: list[int] = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(status.parent.name))
    return found


def process_memory(pid: int) -> dict[str, int]:
    """The kernel's sums over a process's memory, in bytes by name."""
    sums: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, size, _ = line.split()
        sums[name.rstrip(":")] = 1024 * int(size)
    return sums


def _sum(parts: Sequence[dict[str, int]]) -> Memory:
    return Memory(
        processes=len(parts),
        rss=sum(part["Rss"] for part in parts),
        pss=sum(part["Pss"] for part in parts),
        private=sum(part["Private_Clean"] + part["Private_Dirty"] for part in parts),
    )
