"""Names that Codex keeps beside its logs. They are caches: they name sessions, and never decide that one exists."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sessionref_server.adapters.sessions.formats.codex.places import SESSION_INDEX, codex_home
from sessionref_server.adapters.sessions.json_line import parse_json_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_STATE_NAME = re.compile(r"state_(\d{1,6})\.sqlite\Z")
_BUSY_SECONDS = 0.25
_INDEX_BYTES = 16 * 1024 * 1024
"""How much of the end of the index is read; its last lines win anyway."""

_TITLE_CHARACTERS = 1024
_MAX_ROWS = 1_000_000
_QUERY = "SELECT id, {name}, {title}, {first} FROM threads LIMIT ?"


def read_titles(root: Path, sqlite_home: str | None) -> dict[str, str]:
    """Titles by session id. What cannot be read gives none.

    A name in the database wins over the last line of the index (newer versions write the database only), and both over the
    database's ``title`` column.
    """
    names, titles = _database_titles(_state_file(root, sqlite_home))
    return {**titles, **_index_titles(codex_home(root) / SESSION_INDEX), **names}


def title_files(root: Path, sqlite_home: str | None) -> list[Path]:
    """The files that ``read_titles`` reads, existing or not."""
    files = [codex_home(root) / SESSION_INDEX]
    state = _state_file(root, sqlite_home)
    return files if state is None else [*files, state, _beside(state, "-wal")]


def _state_file(root: Path, sqlite_home: str | None) -> Path | None:
    """The database of the newest schema: ``state_<n>.sqlite`` with the highest number."""
    folder = Path(sqlite_home) if sqlite_home and sqlite_home.strip() else codex_home(root)
    try:
        names = os.listdir(folder)  # noqa: PTH208  names, not paths, are matched here
    except OSError:
        return None
    numbered = [(int(found.group(1)), name) for name in names if (found := _STATE_NAME.match(name))]
    return folder / max(numbered)[1] if numbered else None


def _index_titles(path: Path) -> dict[str, str]:
    titles: dict[str, str] = {}
    for line in _last_lines(path):
        record = parse_json_line(line) or {}
        native_id, name = record.get("id"), record.get("thread_name")
        if not isinstance(native_id, str) or not isinstance(name, str):
            continue
        if name.strip():
            titles[native_id] = name[:_TITLE_CHARACTERS]
        else:
            titles.pop(native_id, None)
    return titles


def _last_lines(path: Path) -> list[bytes]:
    """Complete lines at the end of a regular file. A line of which only the end is read does not parse."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return []
            file.seek(max(0, status.st_size - _INDEX_BYTES))
            return file.read(_INDEX_BYTES).split(b"\n")
    except OSError:
        return []


def _database_titles(path: Path | None) -> tuple[dict[str, str], dict[str, str]]:
    """Names and titles. A title that merely repeats the first message is none: the log tells that better."""
    names: dict[str, str] = {}
    titles: dict[str, str] = {}
    for native_id, name, title, first in _rows(path) if path is not None else ():
        if not isinstance(native_id, str):
            continue
        if isinstance(name, str) and name.strip():
            names[native_id] = name
        elif isinstance(title, str) and title.strip() and not (isinstance(first, str) and first.startswith(title.strip())):
            titles[native_id] = title
    return names, titles


def _rows(path: Path) -> Sequence[Sequence[object]]:
    """Rows of the threads table, read without writing in the database's folder.

    Reading a database with a write-ahead log makes SQLite create files beside it, and reading it as immutable ignores that log.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return []
        if not _size(_beside(path, "-wal")):
            return _query(path, "immutable=1")
        # Readers share an index of the log, which SQLite would create where it is missing.
        if _size(_beside(path, "-shm")):
            try:
                return _query(path, "mode=ro")
            except sqlite3.Error:
                return _query_copy(path)
        return _query_copy(path)
    except (OSError, sqlite3.Error, OverflowError):
        return []


def _query_copy(path: Path) -> Sequence[Sequence[object]]:
    with tempfile.TemporaryDirectory(prefix="sessionref-") as folder:
        copy = Path(folder) / "state.sqlite"
        shutil.copyfile(path, copy, follow_symlinks=False)
        shutil.copyfile(_beside(path, "-wal"), _beside(copy, "-wal"), follow_symlinks=False)
        return _query(copy, "mode=rw")


def _query(path: Path, mode: str) -> Sequence[Sequence[object]]:
    uri = f"file:{quote(str(path.absolute()))}?{mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as connection:
        connection.text_factory = _lenient_text
        columns = {str(row[1]) for row in connection.execute("PRAGMA table_info(threads)")}
        if "id" not in columns:
            return []
        chosen = dict(_column_expressions(columns))
        return connection.execute(_QUERY.format_map(chosen), (_MAX_ROWS,)).fetchall()


def _column_expressions(columns: set[str]) -> Iterator[tuple[str, str]]:
    """For each wanted column its beginning, or NULL where this version has no such column."""
    for key, column in (("name", "name"), ("title", "title"), ("first", "first_user_message")):
        yield key, f"substr({column}, 1, {_TITLE_CHARACTERS})" if column in columns else "NULL"


def _lenient_text(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    """Size of a regular file in bytes, 0 when there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
