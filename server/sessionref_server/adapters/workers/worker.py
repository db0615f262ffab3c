"""One worker seen from the parent: a process, and a thread that talks to it so that the event loop never does."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from sessionref_server.adapters.workers.cancel_flags import CancelFlags
from sessionref_server.adapters.workers.frames import encode_frame, receive_frame, send_frame
from sessionref_server.adapters.workers.job import Job, WorkerFailedError
from sessionref_server.adapters.workers.process import INTERRUPT, Answer

REAP_SECONDS = 1.0
"""How long a killed process may take to go. One that hangs in the kernel on dead storage is left to the system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job ended: its value or its error."""

    value: object = None
    error: Exception | None = None
    fresh_process: bool = False
    """The process that ran it is gone, and with it everything it had cached."""


class Worker:
    """Runs one job at a time. All methods but the thread's own are called on the event loop."""

    def __init__(self, index: int, flags: CancelFlags, memory_limit_bytes: int | None) -> None:
        self.index = index
        self._flags = flags
        self._memory_limit_bytes = memory_limit_bytes
        self._orders: SimpleQueue[tuple[Job, Callable[[Outcome], None]] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._killed: subprocess.Popen[bytes] | None = None
        self._unreaped: list[subprocess.Popen[bytes]] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name=f"sessionref-worker-{index}", daemon=True)

    def start(self) -> None:
        """Start the thread, which starts the process. Waits for neither."""
        self._thread.start()

    def give(self, job: Job, report: Callable[[Outcome], None]) -> None:
        """Run ``job`` and call ``report`` on the event loop when it has ended. The worker must be idle."""
        self._flags.lower_flag(self.index)
        self._orders.put((job, report))

    def cancel(self) -> None:
        """Tell the running job that nobody waits for it."""
        self._flags.raise_flag(self.index)

    def interrupt(self) -> None:
        """Stop the cancelled job where it is, should it not have looked at its flag yet."""
        with self._lock:
            if self._process is not None:
                self._process.send_signal(INTERRUPT)

    def kill(self) -> None:
        """End the process now. The running job fails, and a new process takes over unless ``stop`` was called."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._killed = self._process
            if self._channel is not None:
                # A process stuck in the kernel keeps its end open; ours is shut so that the thread does not wait for it.
                with contextlib.suppress(OSError):
                    self._channel.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """End thread and process after the running job; ``ended`` is set then."""
        self._stopping = True
        self._orders.put(None)

    def join(self) -> None:
        """Wait for the thread, which has nothing left to do once ``ended`` is set."""
        self._thread.join()

    def _serve(self) -> None:
        try:
            self._spawn_quietly()
            while (order := self._orders.get()) is not None:
                job, report = order
                outcome = self._run(job)
                self._tell(report, outcome)
        finally:
            self._discard()
            self._tell(lambda _: None if self.ended.done() else self.ended.set_result(None), Outcome())

    def _tell(self, report: Callable[[Outcome], None], outcome: Outcome) -> None:
        # A loop that closed without closing the pool first has nobody left to tell.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(report, outcome)

    def _run(self, job: Job) -> Outcome:
        try:
            frame = encode_frame(job)
        except Exception as error:  # noqa: BLE001 - a job that cannot be pickled is the caller's mistake, and told to the caller
            return Outcome(error=error)
        if self._flags.is_raised(self.index):
            return Outcome()
        try:
            self._spawn_if_gone()
            answer = self._exchange(frame)
        except Exception as error:  # noqa: BLE001 - operating system or pickle; the job fails, the worker goes on
            return self._replace(WorkerFailedError(f"a worker could not be reached: {type(error).__name__}"))
        if answer is None:
            return self._replace(None)
        if self._memory_limit_bytes is not None and answer.resident_bytes > self._memory_limit_bytes:
            self._discard()
            self._spawn_quietly()
            return Outcome(value=answer.value, error=answer.error, fresh_process=True)
        return Outcome(value=answer.value, error=answer.error)

    def _exchange(self, frame: bytes) -> Answer | None:
        channel = self._channel
        if channel is None:
            return None
        try:
            send_frame(channel, frame)
            received = receive_frame(channel)
        except OSError:
            return None
        return None if received is None else pickle.loads(received)  # noqa: S301 - the pipe comes from our own child

    def _replace(self, error: WorkerFailedError | None) -> Outcome:
        code = self._discard()
        if not self._stopping:
            self._spawn_quietly()
        return Outcome(error=error or WorkerFailedError(f"a worker ended while its job ran: {_ending(code)}"), fresh_process=True)

    def _spawn_if_gone(self) -> None:
        process = self._process
        # One that was killed just after its job ended may not be gone yet; the next job must not be the one to find out.
        if process is None or process is self._killed or process.poll() is not None:
            self._discard()
            self._spawn()

    def _spawn_quietly(self) -> None:
        """Have a process ready for the next job. When that fails, it is tried again for that job, which then may fail with it."""
        with contextlib.suppress(OSError):
            self._spawn()

    def _spawn(self) -> None:
        self._unreaped = [process for process in self._unreaped if process.poll() is None]
        ours, theirs = socket.socketpair()
        with theirs:
            # -P: nothing is imported from the current folder, which may be anybody's.
            command = [sys.executable, "-P", "-m", "sessionref_server.adapters.workers.process"]
            descriptors = (theirs.fileno(), self._flags.descriptor)
            try:
                process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                    [*command, str(self.index), *(str(descriptor) for descriptor in descriptors)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=descriptors,
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
        with self._lock:
            self._process, self._channel = process, ours
        with contextlib.suppress(OSError):
            send_frame(ours, encode_frame([entry for entry in sys.path if entry]))

    def _discard(self) -> int | None:
        """End the process and release what belongs to it. Returns its exit code when it is known."""
        with self._lock:
            process, channel = self._process, self._channel
            self._process = self._channel = None
        if channel is not None:
            channel.close()
        if process is None:
            return None
        try:
            # A closed pipe ends it; one that has not ended by now is killed. The code of one that died by itself is kept.
            return process.wait(timeout=REAP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        try:
            return process.wait(timeout=REAP_SECONDS)
        except subprocess.TimeoutExpired:
            self._unreaped.append(process)
            return None


def _ending(code: int | None) -> str:
    if code is None:
        return "it hangs"
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
