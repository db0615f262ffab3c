"""What was read of a log, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sessionref_server.adapters.sessions.formats.claude_code.records import METADATA_KINDS
from sessionref_server.adapters.sessions.json_line import parse_json_line
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.domain.session import SessionStatus

_SILENT_LOG_BYTES = 1 << 20
"""A log of at least this size without one message is an error: no session writes that much before its first message."""


@dataclass(slots=True)
class Tally:
    """Counts over the records fed so far."""

    records: int = 0
    size_bytes: int = 0
    unknown: int = 0
    damaged: int = 0
    torn_records: int = 0
    """Damaged lines that begin like a record."""

    @property
    def known(self) -> int:
        """Records of a known kind and shape."""
        return self.records - self.unknown - self.damaged

    def copy(self) -> Tally:
        """An independent tally with the same counts."""
        return replace(self)

    def count_unreadable(self, line: bytes) -> None:
        """Count a line that is no JSON object; a blank one is nothing."""
        if line.isspace() or not line:
            return
        self.records += 1
        self.damaged += 1
        self.torn_records += line.startswith((b'{"', b"\0"))

    def count_other(self, kind: object) -> None:
        """Count a record that carries no message."""
        if type(kind) is not str or kind not in METADATA_KINDS:
            self.unknown += 1

    def count_misshapen(self, record: dict[str, Any]) -> None:
        """Count a ``user`` or ``assistant`` record without usable content: damage if it is one of Claude Code's at all."""
        if "uuid" in record or "sessionId" in record or type(record.get("message")) is dict:
            self.damaged += 1
            self.torn_records += 1
        else:
            self.unknown += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """State of a log."""

    status: SessionStatus
    detail: str = ""
    """All that is wrong."""
    note: str = ""
    """What of it the counts of a reading do not say."""
    torn_tail: bool = False


def open_record(end: LogEnd) -> tuple[dict[str, Any] | None, bool]:
    """The whole record after the last newline, if there is one, and whether a torn record lies there instead."""
    tail = end.tail
    if not tail or tail.isspace():
        return None, False
    record = parse_json_line(tail)
    return record, record is None


def judge(tally: Tally, end: LogEnd, *, torn_tail: bool, visible: bool, broken_links: int) -> Verdict:
    """Decide the state from what was counted, whether any message is visible, and how many links between records are broken."""
    damaged = tally.damaged + end.skipped_lines
    if visible:
        return _judge_readable(damaged, end, torn_tail=torn_tail, broken_links=broken_links)
    status, detail = _judge_silent(tally, damaged, end)
    return Verdict(status=status, detail=detail, note=detail, torn_tail=torn_tail)


def _judge_silent(tally: Tally, damaged: int, end: LogEnd) -> tuple[SessionStatus, str]:
    """Decide between an empty, a damaged and a foreign log when no message is visible."""
    if not tally.known and _is_foreign(tally, end):
        return SessionStatus.NOT_A_SESSION, "no record of Claude Code in it"
    if damaged or end.damage or end.tail.startswith(b"\0"):
        return SessionStatus.DAMAGED, f"no message could be read, {damaged} records are damaged"
    if tally.size_bytes >= _SILENT_LOG_BYTES:
        return SessionStatus.DAMAGED, f"no message found in {tally.size_bytes / 1_000_000:.1f} MB"
    return SessionStatus.EMPTY, "no message yet"


def _is_foreign(tally: Tally, end: LogEnd) -> bool:
    if tally.records:
        return tally.unknown + tally.damaged - tally.torn_records > tally.torn_records
    return not end.skipped_lines and not end.tail.isspace() and end.tail[:1] not in (b"", b"{", b"\0")


def _judge_readable(damaged: int, end: LogEnd, *, torn_tail: bool, broken_links: int) -> Verdict:
    torn = torn_tail or end.torn_frame
    damage = f"{damaged} damaged records skipped" if damaged else ""
    links = f"{broken_links} broken links between records replaced by file order" if broken_links else ""
    tear = "the log ends inside a record" if torn else ""
    note = _joined(links, end.damage)
    detail = _joined(damage, note, tear)
    status = SessionStatus.PARTIAL if detail else SessionStatus.OK
    return Verdict(status=status, detail=detail, note=note, torn_tail=torn)


def _joined(*faults: str) -> str:
    return "; ".join(filter(None, faults))
