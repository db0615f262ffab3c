"""Where the agent keeps its logs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from sessionref_server.adapters.sessions.formats.dsh.names import is_flat_log_name, parse_log_name
from sessionref_server.adapters.sessions.log_format import LogFile

_DEPTH = 2
"""Folders between the root and a log: the project and the session."""


def default_root(environment: Mapping[str, str], home: Path) -> Path:
    """``$DSH_HOME/sessions``; a blank variable counts as unset, and ``~`` in it is the home folder."""
    configured = environment.get("DSH_HOME", "").strip()
    if not configured:
        return home / ".dsh" / "sessions"
    if configured == "~":
        return home / "sessions"
    if configured.startswith(("~/", "~\\")):
        return home / configured[2:] / "sessions"
    return Path(configured) / "sessions"


def discover_logs(root: Path) -> Iterator[LogFile]:
    """The newest generation of each session's log, and flat logs in the root itself. Raises OSError for an unreadable root."""
    yield from _logs_in(_entries(os.fspath(root)), depth=0)


def _logs_in(entries: list[os.DirEntry[str]], depth: int) -> Iterator[LogFile]:
    newest = _newest_generation(entries)
    if newest is not None:
        yield newest
    for entry in entries:
        if depth == 0 and is_flat_log_name(entry.name) and parse_log_name(entry.name) is None:
            if (file := _regular(entry)) is not None:
                yield file
        elif depth < _DEPTH and entry.is_dir(follow_symlinks=False):
            yield from _logs_below(entry, depth)


def _logs_below(folder: os.DirEntry[str], depth: int) -> Iterator[LogFile]:
    try:
        entries = _entries(folder.path)
    except OSError:
        # A folder that cannot be read, or went away meanwhile, does not hide the others.
        return
    yield from _logs_in(entries, depth + 1)


def _newest_generation(entries: list[os.DirEntry[str]]) -> LogFile | None:
    """The log with the highest version; of two encodings of one version the compressed one, which is the usual one."""
    named = [(name, entry) for entry in entries if (name := parse_log_name(entry.name)) is not None]
    named.sort(key=lambda pair: (pair[0].version, pair[0].compressed), reverse=True)
    return next((file for _, entry in named if (file := _regular(entry)) is not None), None)


def _regular(entry: os.DirEntry[str]) -> LogFile | None:
    try:
        found = entry.stat(follow_symlinks=False)
        entry.path.encode()
    except (OSError, UnicodeEncodeError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return LogFile(path=entry.path, device=found.st_dev, inode=found.st_ino, size=found.st_size, mtime_ns=found.st_mtime_ns)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)
