"""The program a worker process runs: one job after another until the pipe to its parent closes.

Started with ``-m`` and told its index and two descriptors. It imports next to nothing itself; a job brings its own modules. A
thread watches the pipe all the time, so the process ends with its parent, whatever that died of, even in the middle of a job.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from sessionref_server.adapters.workers.cancel_flags import CancelFlags
from sessionref_server.adapters.workers.frames import encode_frame, receive_frame, send_frame
from sessionref_server.adapters.workers.job import Job, WorkerFailedError

INTERRUPT = signal.SIGURG
"""Asks a worker to stop its cancelled job. A process that is not ready for this signal yet ignores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a worker says about one job: the result or the exception, and the memory it holds now."""

    value: object = None
    error: Exception | None = None
    resident_bytes: int = 0


def main(arguments: list[str]) -> None:
    """Serve jobs. ``arguments``: index of this worker, descriptor of the pipe, descriptor of the cancel flags."""
    index, pipe_descriptor, flags_descriptor = (int(argument) for argument in arguments)
    _leave_signals_to_the_parent()
    channel = socket.socket(fileno=pipe_descriptor)
    flags = CancelFlags(flags_descriptor)
    search_path = receive_frame(channel)
    if search_path is None:
        return
    sys.path[:] = pickle.loads(search_path)  # noqa: S301 - the pipe comes from our own parent
    runner = JobRunner(lambda: flags.is_raised(index))
    signal.signal(INTERRUPT, runner.interrupt)
    frames: SimpleQueue[bytearray] = SimpleQueue()
    threading.Thread(target=_watch_pipe, args=(channel, frames), daemon=True).start()
    while True:
        send_frame(channel, _answer(frames.get(), runner))


def _leave_signals_to_the_parent() -> None:
    """Ignore what the parent is to act on, and never write a core file.

    The parent decides when a worker ends: it drains first, while a service manager signals all processes at once. A core
    file would hold text of logs.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _watch_pipe(channel: socket.socket, frames: SimpleQueue[bytearray]) -> None:
    try:
        while (frame := receive_frame(channel)) is not None:
            frames.put(frame)
    finally:
        os._exit(0)


class _JobInterrupted(BaseException):
    """The job is not wanted any more."""


class JobRunner:
    """Runs jobs, and stops one where it is when it is cancelled but is slow to look at its flag."""

    def __init__(self, is_cancelled: Callable[[], bool]) -> None:
        self._is_cancelled = is_cancelled
        self._is_running = False

    def run(self, job: Job) -> object:
        """The job's result; ``None`` for one that was interrupted."""
        try:
            self._is_running = True
            return job.run(self._is_cancelled)
        except _JobInterrupted:
            return None
        finally:
            self._is_running = False

    def interrupt(self, *_: object) -> None:
        """Handle the signal. One that comes late, between jobs or when the next one runs, does nothing."""
        if self._is_running and self._is_cancelled():
            raise _JobInterrupted


def _answer(frame: bytearray, runner: JobRunner) -> bytes:
    value: object = None
    error: Exception | None = None
    try:
        job: Job = pickle.loads(frame)  # noqa: S301 - the pipe comes from our own parent
        value = runner.run(job)
    except Exception as raised:  # noqa: BLE001 - it is raised again in the parent
        error = _portable(raised)
    except BaseException as raised:  # noqa: BLE001 - a job must not end the process
        error = _unportable(raised)
    try:
        return encode_frame(Answer(value=value, error=error, resident_bytes=resident_bytes()))
    except Exception as raised:  # noqa: BLE001 - results are values of any type
        return encode_frame(Answer(error=_unportable(raised), resident_bytes=resident_bytes()))


def _portable(error: Exception) -> Exception:
    """The exception itself when it survives the journey, else one that names its type."""
    try:
        copy = pickle.loads(encode_frame(error))  # noqa: S301 - made in this expression
    except Exception:  # noqa: BLE001 - constructors of exceptions do as they like
        return _unportable(error)
    return error if type(copy) is type(error) else _unportable(error)


def _unportable(error: BaseException) -> WorkerFailedError:
    return WorkerFailedError(f"a worker's job failed with {type(error).__name__}")


def resident_bytes() -> int:
    """Memory this process holds now; where that is not known, the most it ever held."""
    try:
        with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - pathlib would double this module's import time
            return int(statm.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    # Answers are pickled by the name of their module, which is not __main__ in the parent.
    from sessionref_server.adapters.workers import process  # noqa: PLW0406

    process.main(sys.argv[1:])
