"""Surfaces of logs, read in worker processes and kept while the logs do not change."""

from __future__ import annotations

import logging
from collections import OrderedDict

from sessionref_server.adapters.sessions.log_format import LogFile, LogFormat
from sessionref_server.adapters.sessions.log_jobs import Outcome, ReadSurface, SurfaceResult
from sessionref_server.adapters.sessions.log_services import LogDirectoryServices
from sessionref_server.adapters.sessions.session_heads import HeadMaker, valid_text
from sessionref_server.adapters.sessions.shared_calls import CallAbandonedError, SharedCalls
from sessionref_server.adapters.workers.job import WorkerFailedError
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.errors import (
    DamagedSessionError,
    SourceUnavailableError,
    UnknownSessionError,
    UnsupportedVersionError,
)
from sessionref_server.domain.session import SessionHead, SessionStatus

_log = logging.getLogger(__name__)

_CAPTURE_BYTES = 1024
_MESSAGE_BYTES = 24
"""Offsets, size and flags of one packed message, rounded up."""


class LogMovedError(Exception):
    """The log is gone, or holds another session now: look for the session again."""


class SurfaceReader:
    """Reads surfaces for one source. An unchanged log gives the same Capture object again."""

    def __init__(self, log_format: LogFormat, services: LogDirectoryServices, heads: HeadMaker) -> None:
        self._format = log_format
        self._workers = services.workers
        self._heads = heads
        self._limit_bytes = services.capture_bytes
        self._kept: OrderedDict[str, tuple[LogFile, Capture, int]] = OrderedDict()
        self._kept_bytes = 0
        self._calls: SharedCalls[LogFile, Capture] = SharedCalls()

    async def read(self, head: SessionHead, file: LogFile) -> Capture:
        """The session's surface; ``file`` is what stat says of its log now.

        Raises:
            LogMovedError: the log does not hold the session any more.
            ReadFailedError: by its subclasses, see ``SessionSource.read_surface``.
        """
        kept = self._kept.get(file.path)
        if kept is not None and kept[0] == file and kept[1].session_id == head.session_id:
            self._kept.move_to_end(file.path)
            return kept[1]
        try:
            return await self._calls.run(file, lambda: self._read(head, file))
        except CallAbandonedError:
            raise self._unavailable(head) from None

    async def _read(self, head: SessionHead, file: LogFile) -> Capture:
        try:
            result = await self._workers.run(ReadSurface(type(self._format), file), affinity=file.path)
        except WorkerFailedError:
            raise self._unavailable(head) from None
        if not isinstance(result, SurfaceResult) or result.outcome is Outcome.UNREADABLE:
            raise self._unavailable(head)
        if result.outcome is Outcome.BROKEN:
            _log.warning("the reader of source %s failed on a log: %s", self._format.name, result.error)
            raise self._damaged(head)
        if result.outcome is Outcome.GONE or self._heads.session_id(result.native_id) != head.session_id:
            raise LogMovedError
        self._refuse_unusable(head, result)
        capture = Capture(
            session_id=head.session_id,
            cwd=valid_text(result.cwd),
            format_version=result.format_version,
            through_seq=result.through_seq,
            conversation=result.conversation,
            reading=result.reading,
        )
        self._keep(file, capture)
        return capture

    def _refuse_unusable(self, head: SessionHead, result: SurfaceResult) -> None:
        session_id, source = head.session_id, self._format.name
        match result.reading.status:
            case SessionStatus.OK | SessionStatus.PARTIAL:
                return
            case SessionStatus.DAMAGED:
                raise self._damaged(head)
            case SessionStatus.TOO_NEW:
                version = head.status_detail if head.status is SessionStatus.TOO_NEW else str(result.format_version)
                raise UnsupportedVersionError(
                    "the session's log was written by a newer format version",
                    session_id=session_id,
                    source=source,
                    version=version,
                )
            case SessionStatus.EMPTY | SessionStatus.NOT_A_SESSION:
                raise UnknownSessionError("the session has no messages yet", session_id=session_id)

    def _unavailable(self, head: SessionHead) -> SourceUnavailableError:
        return SourceUnavailableError(
            "the session's log cannot be read now", session_id=head.session_id, source=self._format.name
        )

    def _damaged(self, head: SessionHead) -> DamagedSessionError:
        return DamagedSessionError("the session's log is damaged", session_id=head.session_id, source=self._format.name)

    def _keep(self, file: LogFile, capture: Capture) -> None:
        size_bytes = _CAPTURE_BYTES + capture.conversation.total_text_bytes + _MESSAGE_BYTES * len(capture.conversation)
        before = self._kept.pop(file.path, None)
        self._kept_bytes -= before[2] if before else 0
        if size_bytes > self._limit_bytes:
            return
        self._kept[file.path] = (file, capture, size_bytes)
        self._kept_bytes += size_bytes
        while self._kept_bytes > self._limit_bytes:
            self._kept_bytes -= self._kept.popitem(last=False)[1][2]
