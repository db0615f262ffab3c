"""What the figures share: a folder for all that is written, the logs, and servers on them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.bench.generate import Folder, log_sizes, typed_queries
from tests.bench.processes import ChildServer, serve
from tests.bench.report import FOLDER, Report

SESSIONS = 10_000
_MIB = 1024 * 1024
_KEYSTROKES = 4_000


@dataclass(kw_only=True)
class Workbench:
    """Made anew for each run; takes itself away."""

    report: Report
    full: bool
    """Five gigabytes of logs instead of one."""
    folder: Path = field(default=(FOLDER / "work").absolute())

    def __post_init__(self) -> None:
        self.close()
        self.folder.mkdir(parents=True)

    def close(self) -> None:
        """Remove all that was written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @cached_property
    def logs(self) -> Folder:
        """Ten thousand logs of three agents."""
        total_bytes = (5 if self.full else 1) * 1024 * _MIB
        begun = time.perf_counter()
        logs = Folder(self.folder / "logs")
        logs.fill(log_sizes(SESSIONS, total_bytes))
        written = sum(session.path.stat().st_size for session in logs.sessions)
        seconds = time.perf_counter() - begun
        self.report.say(f"{SESSIONS:,} logs, {written / 2**30:.2f} GiB, three agents, 70 % tool output; made in {seconds:.1f} s")
        return logs

    @cached_property
    def queries(self) -> Path:
        """A file of what people type, as a JSON list."""
        path = self.folder / "queries.json"
        named = [(session.title, session.session_id) for session in self.logs.sessions]
        path.write_text(json.dumps([text for typed in typed_queries(named, _KEYSTROKES) for text in typed]))
        return path

    def forget_pages(self) -> None:
        """Take the logs out of the page cache."""
        os.sync()
        for session in self.logs.sessions:
            descriptor = os.open(session.path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)

    @contextmanager
    def serving(self, name: str = "server", **settings: str) -> Generator[ChildServer]:
        """``sessionref serve`` on the logs, ready. What one server has read another one with the same name knows."""
        with serve(self.logs.roots(), self.folder / name, **settings) as server:
            server.wait_ready()
            yield server
