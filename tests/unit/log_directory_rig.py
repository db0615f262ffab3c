"""A log directory in a temporary folder, with the tiny format and workers in threads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from fakes.inline_workers import InlineWorkers
from fakes.tiny_format import TinyFormat
from sessionref_server.adapters.sessions.head_cache import HeadCache
from sessionref_server.adapters.sessions.log_directory import LogDirectorySource
from sessionref_server.adapters.sessions.log_jobs import ReadHeads, ReadSurface
from sessionref_server.adapters.sessions.log_services import LogDirectoryServices
from sessionref_server.adapters.sessions.log_survey import LogRoots
from sessionref_server.domain.session import SessionId


class LogDirectoryRig:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "logs"
        self.root.mkdir()
        self.workers = InlineWorkers()
        self.services = LogDirectoryServices(workers=self.workers)
        self.caches: list[HeadCache] = []

    def source(self, *, configured: bool = True, root: Path | None = None, **services: object) -> LogDirectorySource:
        """A fresh source, as after a start."""
        changed = replace(self.services, **services)  # pyright: ignore[reportArgumentType]
        return LogDirectorySource(TinyFormat(), LogRoots(paths=(root or self.root,), configured=configured), changed)

    def cache(self) -> HeadCache:
        """The persisted cache, opened anew."""
        self.caches.append(HeadCache(self.folder / "cache"))
        return self.caches[-1]

    def write(self, name: str, *records: dict[str, object]) -> Path:
        """Write a log; without records one user message."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines(*(records or ({"user": "Hello"},))))
        return path

    def heads_read(self) -> list[str]:
        """Names of logs whose heads were read, in order."""
        return [Path(file.path).name for job in self.workers.jobs if isinstance(job, ReadHeads) for file in job.files]

    def surfaces_read(self) -> list[str]:
        """Names of logs whose surfaces were read, in order."""
        return [Path(job.file.path).name for job in self.workers.jobs if isinstance(job, ReadSurface)]


def lines(*records: dict[str, object]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def wire_id(native_id: str) -> SessionId:
    return SessionId(f"tiny:{native_id}")
