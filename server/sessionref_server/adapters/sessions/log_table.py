"""The book of one log directory: which logs are there, what was read of them, which one speaks for each session.

Pure bookkeeping, used from the event loop only; it does no input or output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from sessionref_server.adapters.sessions.log_format import LogFile
from sessionref_server.domain.ports import HeadChanges
from sessionref_server.domain.session import LISTED_STATUSES, SessionHead, SessionId, SessionStatus


@dataclass(slots=True)
class LogEntry:
    """One log."""

    file: LogFile
    """As last seen."""
    head: SessionHead | None = None
    """As last read; ``None`` before the first reading, and when it cannot be read or has an id that cannot travel."""
    was_read: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCounts:
    """Logs by what became of them."""

    listed: int
    unreadable: int
    damaged: int
    too_new: int
    empty: int


class LogTable:
    """Keeps the entries, the winner of each id, and what changed since it was last asked."""

    def __init__(self, *, lists_subagents: bool) -> None:
        self._lists_subagents = lists_subagents
        self._entries: dict[str, LogEntry] = {}
        self._path_of: dict[SessionId, str] = {}
        self._copies: dict[SessionId, dict[str, None]] = {}
        """All paths of an id that several logs carry; ``_path_of`` alone tells the others."""
        self._published: dict[SessionId, SessionHead] = {}
        self._statuses: Counter[SessionStatus | None] = Counter()
        self._offered = 0
        self._touched: dict[SessionId, None] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, path: str) -> LogEntry | None:
        """The entry of one log."""
        return self._entries.get(path)

    def has_below(self, folder: str) -> bool:
        """Whether a known log lies below a folder."""
        prefix = folder + "/"
        return any(path.startswith(prefix) for path in self._entries)

    def files(self) -> dict[str, LogFile]:
        """All logs by path, as last seen."""
        return {path: entry.file for path, entry in self._entries.items()}

    def published(self) -> list[SessionHead]:
        """Everything a follower was told and that still holds, newest activity first."""
        return sorted(self._published.values(), key=_activity, reverse=True)

    def found(self, files: Iterable[LogFile]) -> list[LogFile]:
        """Take note of logs seen now; returns the new and the changed ones."""
        changed: list[LogFile] = []
        for file in files:
            entry = self._entries.get(file.path)
            if entry is None:
                self._entries[file.path] = LogEntry(file)
            elif entry.file == file:
                continue
            else:
                entry.file = file
            changed.append(file)
        return changed

    def drop(self, paths: Iterable[str]) -> None:
        """Logs that are gone."""
        for path in paths:
            entry = self._entries.get(path)
            if entry is None:
                continue
            if entry.was_read:
                self._statuses[_status(entry)] -= 1
            self._set_head(path, None)
            del self._entries[path]

    def read(self, path: str, head: SessionHead | None) -> None:
        """Take note of a head, or (``None``) that there is none to be had."""
        entry = self._entries.get(path)
        if entry is None:
            return
        if entry.was_read:
            self._statuses[_status(entry)] -= 1
        entry.was_read = True
        self._set_head(path, head)
        self._statuses[_status(entry)] += 1

    def locate(self, session_id: SessionId) -> LogEntry | None:
        """The log that speaks for a session."""
        path = self._winner(session_id)
        return None if path is None else self._entries[path]

    def heads_of(self, session_ids: Iterable[SessionId]) -> Iterator[tuple[str, SessionHead]]:
        """Paths and heads of all logs of some sessions."""
        for session_id in session_ids:
            for path in self._paths(session_id):
                head = self._entries[path].head
                if head is not None:
                    yield path, head

    @property
    def has_changes(self) -> bool:
        """Whether ``take_changes`` may have something to tell."""
        return bool(self._touched)

    def take_changes(self, limit: int) -> HeadChanges:
        """What a follower has to be told of up to ``limit`` sessions, in the order in which it came up."""
        touched = list(islice(self._touched, limit))
        changed: list[SessionHead] = []
        removed: list[SessionId] = []
        for session_id in touched:
            del self._touched[session_id]
            head, before = self._listed_head(session_id), self._published.get(session_id)
            if head == before:
                continue
            self._offered += self._is_offered(head) - self._is_offered(before)
            if head is None:
                del self._published[session_id]
                removed.append(session_id)
            else:
                self._published[session_id] = head
                changed.append(head)
        return HeadChanges(changed=changed, removed=removed)

    def counts(self) -> LogCounts:
        """Sessions offered, logs that cannot be read, sessions without a message."""
        return LogCounts(
            listed=self._offered,
            unreadable=sum(self._statuses[status] for status in _UNREADABLE),
            damaged=self._statuses[SessionStatus.DAMAGED],
            too_new=self._statuses[SessionStatus.TOO_NEW],
            empty=self._statuses[SessionStatus.EMPTY],
        )

    def _is_offered(self, head: SessionHead | None) -> bool:
        return head is not None and (self._lists_subagents or not head.is_subagent)

    def _listed_head(self, session_id: SessionId) -> SessionHead | None:
        entry = self.locate(session_id)
        if entry is None or entry.head is None or entry.head.status not in LISTED_STATUSES:
            return None
        return entry.head

    def _set_head(self, path: str, head: SessionHead | None) -> None:
        entry = self._entries[path]
        before, entry.head = entry.head, head
        if before is not None and (head is None or head.session_id != before.session_id):
            self._unlink(before.session_id, path)
        if head is not None:
            self._link(head.session_id, path)

    def _link(self, session_id: SessionId, path: str) -> None:
        self._touched[session_id] = None
        first = self._path_of.setdefault(session_id, path)
        if first != path:
            self._copies.setdefault(session_id, {first: None})[path] = None

    def _unlink(self, session_id: SessionId, path: str) -> None:
        self._touched[session_id] = None
        copies = self._copies.get(session_id, {})
        copies.pop(path, None)
        if copies:
            self._path_of[session_id] = next(iter(copies))
        else:
            del self._path_of[session_id]
        if len(copies) == 1:
            del self._copies[session_id]

    def _paths(self, session_id: SessionId) -> Collection[str]:
        path = self._path_of.get(session_id)
        return () if path is None else self._copies.get(session_id) or (path,)

    def _winner(self, session_id: SessionId) -> str | None:
        """Of copies with the same id: one that is listed, not archived, newest in activity; the same one every time."""
        copies = self._copies.get(session_id)
        return self._path_of.get(session_id) if copies is None else max(sorted(copies), key=self._rank)

    def _rank(self, path: str) -> tuple[bool, bool, int]:
        head = self._entries[path].head
        if head is None:
            return False, False, 0
        return head.status in LISTED_STATUSES, not head.archived, _activity(head)


_UNREADABLE = (SessionStatus.DAMAGED, SessionStatus.TOO_NEW, SessionStatus.NOT_A_SESSION, None)


def _activity(head: SessionHead) -> int:
    return head.updated_at_ms or head.created_at_ms


def _status(entry: LogEntry) -> SessionStatus | None:
    return None if entry.head is None else entry.head.status
