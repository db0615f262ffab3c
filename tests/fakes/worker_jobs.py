"""Jobs for the tests of the worker pool. Worker processes import this module by name."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sessionref_server.domain.errors import DamagedSessionError

_SEEN: dict[str, int] = {}


@dataclass(frozen=True, kw_only=True)
class Echo:
    value: object = None

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        return self.value


@dataclass(frozen=True, kw_only=True)
class ProcessId:
    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        return os.getpid()


@dataclass(frozen=True, kw_only=True)
class CountCalls:
    """How often this worker ran this key: module state survives between jobs."""

    key: str

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        _SEEN[self.key] = _SEEN.get(self.key, 0) + 1
        return _SEEN[self.key]


@dataclass(frozen=True, kw_only=True)
class ManyBytes:
    size_bytes: int

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        return bytes(self.size_bytes)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Counts steps until cancelled. Says through named pipes when it started, and how far it came when it stopped."""

    started: Path
    stopped: Path

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        self.started.write_text(str(os.getpid()))
        steps = 0
        while not is_cancelled():
            steps += 1
        self.stopped.write_text(f"{steps} {time.monotonic_ns()}")
        return steps


@dataclass(frozen=True, kw_only=True)
class WaitFor:
    """Occupies a worker: writes to the named pipe ``started``, then waits for somebody to write to ``go``."""

    started: Path
    go: Path

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        self.started.write_text(str(os.getpid()))
        self.go.read_text()
        return os.getpid()


@dataclass(frozen=True, kw_only=True)
class IgnoresCancel:
    """Never ends, whatever it is told. Says its process id through a named pipe first."""

    started: Path

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        self.started.write_text(str(os.getpid()))
        while True:
            signal.pause()


@dataclass(frozen=True, kw_only=True)
class ForgetsToLook:
    """Works for ever without looking at its flag. Says through named pipes when it started, and when it was stopped."""

    started: Path
    stopped: Path

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        self.started.write_text(str(os.getpid()))
        try:
            while True:
                pass
        finally:
            self.stopped.write_text("stopped")


@dataclass(frozen=True, kw_only=True)
class NoteOrder:
    """Adds a line to a file, so that the order of jobs can be seen."""

    file: Path
    line: str

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        with self.file.open("a") as file:
            file.write(self.line + "\n")
        return None


@dataclass(frozen=True, kw_only=True)
class RaiseDomainError:
    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        raise DamagedSessionError("the log is damaged", session_id="s1", source="fake")


class UnportableError(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


@dataclass(frozen=True, kw_only=True)
class RaiseUnportable:
    secret: str

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        raise UnportableError(self.secret, "two")


@dataclass(frozen=True, kw_only=True)
class ReturnUnpicklable:
    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        return lambda: None


@dataclass(frozen=True, kw_only=True)
class RaiseSystemExit:
    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        raise SystemExit(3)


@dataclass(frozen=True, kw_only=True)
class Segfault:
    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        ctypes.string_at(0)
        return None


@dataclass(frozen=True, kw_only=True)
class KillItself:
    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        os.kill(os.getpid(), signal.SIGKILL)
        return None


@dataclass(frozen=True, kw_only=True)
class Unpicklable:
    hook: Callable[[], None] = field(default=lambda: None)

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        return None


_KEPT: list[bytearray] = []


@dataclass(frozen=True, kw_only=True)
class KeepMemory:
    size_bytes: int

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        del is_cancelled
        _KEPT.append(bytearray(b"x" * self.size_bytes))
        return os.getpid()
