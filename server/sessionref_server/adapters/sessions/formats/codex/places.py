"""Where Codex keeps its logs."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from sessionref_server.adapters.sessions.formats.codex.identity import file_stem, file_uuid
from sessionref_server.adapters.sessions.log_format import LogFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SESSIONS = "sessions"
ARCHIVED = "archived_sessions"
SESSION_INDEX = "session_index.jsonl"
PLAIN_SUFFIX = ".jsonl"
_SUFFIXES = (PLAIN_SUFFIX, ".jsonl.zst", ".jsonl.zstd")
_NOT_SESSIONS = frozenset({SESSION_INDEX, "history.jsonl"})
_DATE_DEPTH = 3
"""``YYYY/MM/DD``."""


def default_roots(environment: Mapping[str, str], home: Path) -> list[Path]:
    """The Codex home: ``$CODEX_HOME``, else ``~/.codex``."""
    configured = environment.get("CODEX_HOME", "").strip()
    return [Path(configured) if configured else home / ".codex"]


def codex_home(root: Path) -> Path:
    """The Codex home a root belongs to: a person may also point at the ``sessions`` folder inside it."""
    return root.parent if root.name in (SESSIONS, ARCHIVED) else root


def discover(root: Path) -> Iterator[LogFile]:
    """Logs below a root, newest names first and one for each session.

    A root is a Codex home, its ``sessions`` folder, or any folder of logs. Raises OSError when the root itself cannot be read.
    """
    found: dict[str, LogFile] = {}
    archived = root.name == ARCHIVED
    for name, is_folder in _listing(root):
        depth = _depth_below(name)
        if not is_folder:
            _add(found, root, name, archived=archived)
        elif depth is not None:
            _walk(found, root / name, depth, archived=archived or name == ARCHIVED)
    yield from found.values()


def _depth_below(folder: str) -> int | None:
    """How deep to look into a folder of the root; ``None`` for one that holds no logs."""
    if folder in (SESSIONS, ARCHIVED):
        return _DATE_DEPTH
    return _DATE_DEPTH - 1 if len(folder) == len("YYYY") and folder.isdecimal() else None


def _walk(found: dict[str, LogFile], folder: Path, depth: int, *, archived: bool) -> None:
    try:
        entries = _listing(folder)
    except OSError:
        return
    for name, is_folder in entries:
        if not is_folder:
            _add(found, folder, name, archived=archived)
        elif depth > 0:
            _walk(found, folder / name, depth - 1, archived=archived)


def _listing(folder: Path) -> list[tuple[str, bool]]:
    """Names of a folder with whether each is a folder, newest dates first; links are neither followed nor named."""
    with os.scandir(folder) as entries:
        kept = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if not entry.is_symlink()]
    return sorted(kept, reverse=True)


def _add(found: dict[str, LogFile], folder: Path, name: str, *, archived: bool) -> None:
    if not name.endswith(_SUFFIXES) or name in _NOT_SESSIONS or not _is_text(name):
        return
    path = str(folder / name)
    try:
        status = os.lstat(path)
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode):
        return
    log = LogFile(
        path=path,
        device=status.st_dev,
        inode=status.st_ino,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        archived=archived,
    )
    key = file_uuid(name) or str(folder / file_stem(name))
    other = found.get(key)
    if other is None or _is_better(log, other):
        found[key] = log


def _is_better(log: LogFile, other: LogFile) -> bool:
    """Which of two files of one session is read.

    Beside each other the plain one (Codex thaws a compressed log before it appends, and removes the compressed one later),
    otherwise the one that is not archived, then the one written last.
    """
    if os.path.dirname(log.path) == os.path.dirname(other.path):  # noqa: PTH120  strings, not paths, are compared here
        return log.path.endswith(PLAIN_SUFFIX) and not other.path.endswith(PLAIN_SUFFIX)
    if log.archived != other.archived:
        return other.archived
    return log.mtime_ns > other.mtime_ns


def _is_text(name: str) -> bool:
    """Whether a file name is valid Unicode; another one could not be carried in a message."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
