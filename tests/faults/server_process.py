"""The server as a process of its own, started as a person starts it, and what the system says of it."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub
from sessionref_server.config import SOURCE_NAMES

_PROGRAM = (sys.executable, "-m", "sessionref_server.cli", "serve")
OWN_CONNECTION = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 * 1024 * 1024)]
"""Channel options; without them, all channels of a process to one address share a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProcess:
    process: subprocess.Popen[str]
    address: str
    folder: Path

    @property
    def socket(self) -> Path:
        return Path(self.address.removeprefix("unix:"))

    def channel(self) -> grpc.aio.Channel:
        """A connection of its own."""
        return grpc.aio.insecure_channel(self.address, options=OWN_CONNECTION)

    def stub(self) -> SessionReferenceServiceStub:
        return SessionReferenceServiceStub(self.channel())

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def exit_code(self) -> int:
        return await asyncio.to_thread(self.process.wait, 20)

    def children(self) -> list[int]:
        """Process ids of the workers."""
        return children_of(self.process.pid)

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def said(self) -> str:
        """All it wrote on standard error since it was ready. Call it once, after the end."""
        assert self.process.stderr is not None
        return self.process.stderr.read()


def children_of(process_id: int) -> list[int]:
    """Children of all threads of a process."""
    tasks = Path(f"/proc/{process_id}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


async def gone(process_ids: Sequence[int]) -> bool:
    """Wait until none of the processes exists."""
    await asyncio.gather(*(asyncio.to_thread(_wait_for_exit, process_id) for process_id in process_ids))
    return True


def _wait_for_exit(process_id: int) -> None:
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([descriptor], [], [], 20)
        assert ended, "the process goes on"
    finally:
        os.close(descriptor)


def command(folder: Path, roots: dict[str, Path], *flags: str) -> list[str]:
    """Only the named sources are read; all is kept in ``folder``."""
    sources = [f"--set=sources.{name}.enabled={'yes' if name in roots else 'no'}" for name in SOURCE_NAMES]
    sources += [f"--set=sources.{name}.redact=no" for name in SOURCE_NAMES]
    sources += [f"--sources-root={name}={root}" for name, root in roots.items()]
    storage = [f"--set=spill.folder={folder / 'spill'}", f"--set=cache.folder={folder / 'cache'}"]
    return [*_PROGRAM, f"--listen=unix:{folder / 's'}", "--set=workers.processes=2", *sources, *storage, *flags]


def start(folder: Path, roots: dict[str, Path], *flags: str, before_exec: Callable[[], None] | None = None) -> ServerProcess:
    """Start, and wait until it says that it listens."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SESSIONREF_")}
    process = subprocess.Popen(
        command(folder, roots, *flags),
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment,
        preexec_fn=before_exec,  # noqa: PLW1509 - sets a limit, nothing else
    )
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("try it:"):
            return ServerProcess(process=process, address=f"unix:{folder / 's'}", folder=folder)
    process.wait()
    process.stderr.close()
    raise AssertionError(f"the server did not start: exit code {process.returncode}\n" + "".join(said))


@asynccontextmanager
async def server_process(
    folder: Path, roots: dict[str, Path], *flags: str, before_exec: Callable[[], None] | None = None
) -> AsyncGenerator[ServerProcess]:
    """A running server; ended at the end, unless it has ended before."""
    server = await asyncio.to_thread(start, folder, roots, *flags, before_exec=before_exec)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        assert server.process.stderr is not None
        server.process.stderr.close()
