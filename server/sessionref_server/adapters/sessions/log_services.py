"""What a log directory works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sessionref_server.adapters.sessions.head_cache import HeadCache
from sessionref_server.adapters.sessions.session_heads import Redactor
from sessionref_server.adapters.workers.job import Job

DEFAULT_CAPTURE_BYTES = 64 * 1024 * 1024


class JobRunner(Protocol):
    """What is needed of the worker pool."""

    async def run(self, job: Job, *, affinity: str | None = None, background: bool = False) -> object:
        """Run a job in a worker process."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectoryServices:
    """Shared by all log directories."""

    workers: JobRunner
    head_cache: HeadCache | None = None
    """``None``: nothing is kept between runs."""
    redact: Redactor | None = None
    """Applied to titles and labels; ``None`` where redaction is off."""
    redaction_rules: str = ""
    """What ``redact`` works by; by other rules it may give something else. Empty without redaction."""
    capture_bytes: int = DEFAULT_CAPTURE_BYTES
    """Memory of each source for surfaces of unchanged logs."""
