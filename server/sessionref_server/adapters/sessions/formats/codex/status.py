"""What may be said of a log after reading it, in the same words for heads and surfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionref_server.adapters.sessions.formats.codex.identity import is_rollout_name
from sessionref_server.adapters.sessions.json_line import parse_json_line
from sessionref_server.domain.session import SessionStatus

if TYPE_CHECKING:
    from sessionref_server.adapters.sessions.formats.codex.records import Tally
    from sessionref_server.adapters.sessions.log_format import LogEnd, LogFile

_SILENT_LOG_BYTES = 1024 * 1024
"""From this size on a log without any message is a log we fail to understand, not an empty session."""

Verdict = tuple[SessionStatus, str]


def whole_tail(end: LogEnd) -> bytes | None:
    """The bytes after the last newline when they are a whole record that only lacks its newline."""
    tail = end.tail.strip(b"\0 \t\r\n")
    return tail if tail and parse_json_line(tail) is not None else None


def is_torn(end: LogEnd) -> bool:
    """Whether the log ends inside a record."""
    return bool(end.tail.strip()) and whole_tail(end) is None


def judge(file: LogFile, tally: Tally, end: LogEnd, *, spoken: bool, lacks_history: bool) -> Verdict:
    """Status of a log and one sentence why. ``spoken`` = a message was found, ``lacks_history`` = earlier turns are elsewhere."""
    damaged = tally.damaged + end.skipped_lines
    if end.damage or end.torn_frame:
        # A cold rollout is one frame, written whole: a prefix of it would pass for the whole conversation.
        return SessionStatus.DAMAGED, end.damage or "the compressed log is cut off"
    if not tally.recognised and not tally.silent:
        return _judge_stranger(file, tally, end, damaged)
    if not spoken:
        return _judge_silence(file, damaged)
    losses = _losses(damaged, end, lacks_history=lacks_history)
    return (SessionStatus.PARTIAL, losses) if losses else (SessionStatus.OK, "")


def _losses(damaged: int, end: LogEnd, *, lacks_history: bool) -> str:
    told = [f"{damaged} damaged records were skipped"] if damaged else []
    if is_torn(end):
        told.append("the last record is incomplete")
    if lacks_history:
        told.append("earlier turns are in another session's log")
    return ", ".join(told)


def _judge_stranger(file: LogFile, tally: Tally, end: LogEnd, damaged: int) -> Verdict:
    if not tally.lines and not damaged:
        torn = " but the beginning of its first record" if is_torn(end) else ""
        return SessionStatus.EMPTY, f"the log holds nothing{torn}"
    if damaged and is_rollout_name(file.path):
        return SessionStatus.DAMAGED, "no record can be read"
    return SessionStatus.NOT_A_SESSION, "no record is one of a Codex session"


def _judge_silence(file: LogFile, damaged: int) -> Verdict:
    if damaged:
        return SessionStatus.DAMAGED, f"no message can be read, {damaged} records are damaged"
    if file.size >= _SILENT_LOG_BYTES:
        return SessionStatus.DAMAGED, f"no message can be read in a log of {file.size} bytes"
    return SessionStatus.EMPTY, "the session has no message yet"
