"""Where Claude Code keeps its logs, and which files there are sessions.

``projects/<folder>/<uuid>.jsonl`` is a session; ``<uuid>/subagents/**/agent-*.jsonl`` beside it are its subagents, and so are,
in the old layout, ``agent-*.jsonl`` beside the sessions. Everything else there (tool results, indexes, the prompt history) is no
log. A root may also hold sessions directly. Names and ``stat`` only; no link is followed below the root.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from sessionref_server.adapters.sessions.log_format import LogFile

_SUFFIX = ".jsonl"
_SUBAGENT_PREFIX = "agent-"
_IGNORED_NAMES = frozenset({"history.jsonl"})
_SUBAGENT_FOLDER = "subagents"
_SESSION_FOLDER = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NO_PROJECTS = frozenset({_SUBAGENT_FOLDER, "tool-results", "node_modules", ".git"})
_PROJECT_DEPTH = 3
"""Folder levels below a root in which sessions are looked for: a projects folder needs one."""
_SUBAGENT_DEPTH = 4
"""Folder levels below ``subagents``: workflows nest theirs."""
_COWORK_FOLDER = "local-agent-mode-sessions"
_COWORK_DEPTH = 5


def default_roots(environment: Mapping[str, str], home: Path) -> list[Path]:
    """Projects folders of Claude Code and of Cowork, existing or not; Cowork's only where they exist."""
    configured = [part.strip() for part in environment.get("CLAUDE_CONFIG_DIR", "").split(",") if part.strip()]
    config_home = environment.get("XDG_CONFIG_HOME", "").strip() or str(home / ".config")
    bases = [_expanded(part, home) for part in configured] or [home / ".claude"]
    roots = [base / "projects" for base in (*bases, Path(config_home) / "claude")]
    for application in _application_folders(environment, home, Path(config_home)):
        roots.extend(_cowork_roots(application / _COWORK_FOLDER, _COWORK_DEPTH))
    return list(dict.fromkeys(roots))


def discover(root: Path) -> Iterator[LogFile]:
    """Logs below a root. Raises OSError when the root itself cannot be read."""
    with os.scandir(root) as entries:
        listing = list(entries)
    yield from _project_logs(listing, _PROJECT_DEPTH)


def native_id(path: str) -> str:
    """The id of the session in a file: the stem of its name."""
    return os.path.basename(path).removesuffix(_SUFFIX)  # noqa: PTH119 - text of a stored path, not a lookup


def _project_logs(listing: list[os.DirEntry[str]], depth: int) -> Iterator[LogFile]:
    stems = {entry.name.removesuffix(_SUFFIX) for entry in listing if entry.name.endswith(_SUFFIX)}
    for entry in listing:
        if entry.name.endswith(_SUFFIX):
            yield from _log(entry, None, is_subagent=entry.name.startswith(_SUBAGENT_PREFIX))
        elif entry.name in _NO_PROJECTS or not _is_folder(entry):
            continue
        elif entry.name in stems or _SESSION_FOLDER.fullmatch(entry.name):
            yield from _subagent_logs(os.path.join(entry.path, _SUBAGENT_FOLDER), entry.name, _SUBAGENT_DEPTH)  # noqa: PTH118
        elif depth > 0:
            yield from _project_logs(_listing(entry.path), depth - 1)


def _subagent_logs(folder: str, parent: str, depth: int) -> Iterator[LogFile]:
    if os.path.islink(folder):  # noqa: PTH114
        return
    for entry in _listing(folder):
        if entry.name.startswith(_SUBAGENT_PREFIX) and entry.name.endswith(_SUFFIX):
            yield from _log(entry, parent, is_subagent=True)
        elif depth > 0 and _is_folder(entry):
            yield from _subagent_logs(entry.path, parent, depth - 1)


def _log(entry: os.DirEntry[str], parent: str | None, *, is_subagent: bool) -> Iterator[LogFile]:
    """The log at an entry; nothing when it is no regular file, is gone, or its name cannot be an id."""
    if entry.name in _IGNORED_NAMES or entry.name == _SUFFIX or not _is_unicode(entry.name):
        return
    try:
        if not entry.is_file(follow_symlinks=False):
            return
        stat = entry.stat(follow_symlinks=False)
    except OSError:
        return
    yield LogFile(
        path=entry.path,
        device=stat.st_dev,
        inode=stat.st_ino,
        size=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        is_subagent=is_subagent,
        parent_native_id=parent,
    )


def _listing(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _expanded(part: str, home: Path) -> Path:
    if part == "~" or part.startswith(("~/", "~\\")):
        return home / part[2:]
    return Path(part)


def _application_folders(environment: Mapping[str, str], home: Path, config_home: Path) -> list[Path]:
    """Folders where the desktop application may keep its data."""
    if sys.platform == "darwin":
        return [home / "Library" / "Application Support" / "Claude"]
    if sys.platform == "win32":
        return [Path(environment["APPDATA"]) / "Claude"] if environment.get("APPDATA") else []
    return [config_home / "Claude"]


def _cowork_roots(folder: Path, depth: int) -> Iterator[Path]:
    projects = folder / ".claude" / "projects"
    if projects.is_dir():
        yield projects
    if depth > 0:
        for entry in sorted(_listing(str(folder)), key=lambda entry: entry.name):
            if not entry.name.startswith(".") and _is_folder(entry):
                yield from _cowork_roots(Path(entry.path), depth - 1)
