"""Looks at the roots of a log directory: which logs are there, which titles lie beside them. Blocks; runs in a thread."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sessionref_server.adapters.sessions.log_format import LogFile, LogFormat

_log = logging.getLogger(__name__)

_FileStamp = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRoots:
    """Folders of one source."""

    paths: tuple[Path, ...]
    configured: bool = False
    """Somebody named them: one that is missing is a failure. A usual place that is missing means that the agent is not used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What one look at all roots found, against the look before."""

    changed: Sequence[LogFile] = ()
    """New logs and logs whose stat differs, newest first."""
    gone: Sequence[str] = ()
    """Paths. A root that exists and cannot be read loses nothing: what was known below it stays."""
    failure: str = ""
    """One sentence without paths."""


@dataclass(slots=True)
class Surveyor:
    """Looks for one source. Used by one thread at a time."""

    log_format: LogFormat
    roots: LogRoots
    title_paths: frozenset[str] = field(default=frozenset(), init=False)
    """Files that hold titles, existing or not, as of the last look."""
    _title_stamps: Sequence[_FileStamp] | None = field(default=None, init=False)

    def survey(self, known: Mapping[str, LogFile]) -> Survey:
        """Look at all logs below all roots; ``known`` is what the look before found, by path."""
        found: dict[str, LogFile] = {}
        missing = unreadable = False
        for root in self.roots.paths:
            try:
                found.update((file.path, file) for file in self.log_format.discover(root))
            except FileNotFoundError:
                missing = True
            except Exception as error:  # noqa: BLE001 - whatever stands in the way at one root, the others are read
                _log.warning("a folder of source %s cannot be read: %s", self.log_format.name, type(error).__name__)
                unreadable = True
                prefix = f"{root}{os.sep}"
                found.update((path, file) for path, file in known.items() if path.startswith(prefix))
        changed = [file for path, file in found.items() if known.get(path) != file]
        return Survey(
            changed=sorted(changed, key=_newest_first),
            gone=[path for path in known if path not in found],
            failure=_failure(unreadable=unreadable, missing=missing and self.roots.configured),
        )

    def titles_when_changed(self) -> Mapping[str, str] | None:
        """Titles that lie beside the logs; ``None`` when their files are as they were at the last call."""
        paths = [path for root in self.roots.paths for path in self._title_files(root)]
        self.title_paths = frozenset(str(path) for path in paths)
        stamps = [stamp for path in paths if (stamp := _stamp(path))]
        if stamps == self._title_stamps:
            return None
        titles: dict[str, str] = {}
        for root in self.roots.paths:
            try:
                titles.update(self.log_format.titles(root))
            except Exception as error:  # noqa: BLE001 - titles are an ornament: without them logs are still listed
                _log.warning("titles beside the logs of %s cannot be read: %s", self.log_format.name, type(error).__name__)
        self._title_stamps = stamps
        return titles

    def _title_files(self, root: Path) -> Sequence[Path]:
        try:
            return self.log_format.title_files(root)
        except OSError:
            return ()


def look_again(files: Iterable[LogFile]) -> list[LogFile | None]:
    """Known logs as stat sees them now; ``None`` for one that is no regular file any more."""
    return [_look(file) for file in files]


def _look(file: LogFile) -> LogFile | None:
    try:
        found = os.lstat(file.path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return replace(file, device=found.st_dev, inode=found.st_ino, size=found.st_size, mtime_ns=found.st_mtime_ns)


def _stamp(path: Path) -> _FileStamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return str(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _failure(*, unreadable: bool, missing: bool) -> str:
    if unreadable:
        return "folder cannot be read"
    return "folder does not exist" if missing else ""


def _newest_first(file: LogFile) -> tuple[int, str]:
    return -file.mtime_ns, file.path
