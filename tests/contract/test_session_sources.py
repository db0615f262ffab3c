"""All sources keep the contract: in memory, a log directory with threads and with worker processes, the redacting decorator."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from contract.session_source import SESSION_SOURCE_CONTRACT, Check
from fakes.inline_workers import InlineWorkers
from fakes.memory_session_source import MemorySessionSource
from fakes.tiny_format import TinyFormat
from sessionref_server.adapters.sessions.head_cache import HeadCache
from sessionref_server.adapters.sessions.log_directory import LogDirectorySource
from sessionref_server.adapters.sessions.log_services import JobRunner, LogDirectoryServices
from sessionref_server.adapters.sessions.log_survey import LogRoots
from sessionref_server.adapters.sessions.redacting import RedactingSource
from sessionref_server.adapters.workers.pool import WorkerPool
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.session import SessionHead, SessionId, SessionStatus


class NoSecrets:
    def find(self, text: bytes) -> list[tuple[int, int]]:
        del text
        return []


class MemoryRig:
    def __init__(self) -> None:
        self.memory = MemorySessionSource()
        self.source: MemorySessionSource | RedactingSource = self.memory

    def session_id(self, native_id: str) -> SessionId:
        return SessionId(f"memory:{native_id}")

    def put(self, native_id: str, texts: Sequence[str], *, title: str | None = None, status: SessionStatus | None = None) -> None:
        head = SessionHead(
            session_id=self.session_id(native_id),
            source="memory",
            title=title,
            status=status or SessionStatus.OK,
            status_detail="99" if status is SessionStatus.TOO_NEW else "",
        )
        self.memory.put(head, [Message(Role.USER, text) for text in texts])

    def remove(self, native_id: str) -> None:
        self.memory.remove(self.session_id(native_id))

    def make_unavailable(self) -> None:
        self.memory.failure = "out of order"


class LogDirectoryRig:
    def __init__(self, folder: Path, workers: JobRunner, cache: HeadCache) -> None:
        self.root = folder / "logs"
        self.root.mkdir()
        services = LogDirectoryServices(workers=workers, head_cache=cache)
        self.source = LogDirectorySource(TinyFormat(), LogRoots(paths=(self.root,), configured=True), services)

    def session_id(self, native_id: str) -> SessionId:
        return SessionId(f"tiny:{native_id}")

    def put(self, native_id: str, texts: Sequence[str], *, title: str | None = None, status: SessionStatus | None = None) -> None:
        records: list[dict[str, object]] = [{"id": native_id, "at": 1000}, *({"user": text} for text in texts)]
        if title is not None:
            records.append({"title": title})
        if status is not None:
            records.append({"status": status.value, "version": "99"})
        (self.root / f"{native_id}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))

    def remove(self, native_id: str) -> None:
        (self.root / f"{native_id}.jsonl").unlink()

    def make_unavailable(self) -> None:
        self.root.rename(self.root.with_name("moved"))
        self.root.touch()


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(2, 100)
    pool.start()
    yield pool
    await pool.close(1.0)


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[HeadCache]:
    cache = HeadCache(tmp_path / "cache")
    yield cache
    await cache.close()


each_check = pytest.mark.parametrize("check", SESSION_SOURCE_CONTRACT, ids=lambda check: check.__name__)


@each_check
async def test_memory_source_keeps_the_contract(check: Check) -> None:
    await check(MemoryRig())


@each_check
async def test_redacting_source_keeps_the_contract(check: Check) -> None:
    rig = MemoryRig()
    rig.source = RedactingSource(rig.memory, NoSecrets())
    await check(rig)


@each_check
async def test_log_directory_keeps_the_contract(check: Check, tmp_path: Path, cache: HeadCache) -> None:
    await check(LogDirectoryRig(tmp_path, InlineWorkers(), cache))


@each_check
async def test_log_directory_with_worker_processes_keeps_the_contract(
    check: Check, tmp_path: Path, pool: WorkerPool, cache: HeadCache
) -> None:
    await check(LogDirectoryRig(tmp_path, pool, cache))
