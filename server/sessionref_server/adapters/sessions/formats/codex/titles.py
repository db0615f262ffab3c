"""Names that Codex keeps beside its logs. They are caches: they name sessions, and never decide that one exists."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import tempfile
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sessionref_server.adapters.sessions.formats.codex.places import SESSION_INDEX, codex_home
from sessionref_server.adapters.sessions.json_line import parse_json_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_STATE_NAME = re.compile(r"state_(\d{1,6})\.sqlite\Z")
_BUSY_SECONDS = 0.25
_INDEX_BYTES = 16 * 1024 * 1024
"""How much of the end of the index is read; its last lines win anyway."""

_LEAST_LINE_BYTES = 16
_TITLE_CHARACTERS = 1024
_MAX_ROWS = 1_000_000
_MAX_VALUE_BYTES = 16 * 1024 * 1024
_STEPS_PER_LOOK = 100_000
_MAX_LOOKS = 2_000
"""SQLite gives up after 200 million steps of its machine, some seconds: a real table of a million sessions takes half of them."""

_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'threads'"
_QUERY = "SELECT id, {name}, {title}, {first} FROM threads LIMIT ?"

_Titles = tuple[dict[str, str], dict[str, str]]
"""Names and titles by session id. A title that merely repeats the first message is none: the log tells that better."""


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
            end = file.read(_INDEX_BYTES)
    except OSError:
        return []
    return end.split(b"\n") if end.count(b"\n") * _LEAST_LINE_BYTES <= len(end) else []


def _database_titles(path: Path | None) -> _Titles:
    """Names and titles, read without writing in the database's folder.

    Reading a database with a write-ahead log makes SQLite create files beside it, and reading it as immutable ignores that log.
    """
    try:
        if path is None or not stat.S_ISREG(os.lstat(path).st_mode):
            return {}, {}
        if not _size(_beside(path, "-wal")):
            return _query(path, "immutable=1")
        # Readers share an index of the log, which SQLite would create where it is missing.
        if _size(_beside(path, "-shm")):
            try:
                return _query(path, "mode=ro")
            except sqlite3.Error:
                return _query_copy(path)
        return _query_copy(path)
    except (OSError, sqlite3.Error, OverflowError, ValueError, MemoryError):
        # ValueError: what SQLite says of a damaged schema need not be UTF-8.
        return {}, {}


def _query_copy(path: Path) -> _Titles:
    with tempfile.TemporaryDirectory(prefix="sessionref-") as folder:
        copy = Path(folder) / "state.sqlite"
        shutil.copyfile(path, copy, follow_symlinks=False)
        shutil.copyfile(_beside(path, "-wal"), _beside(copy, "-wal"), follow_symlinks=False)
        return _query(copy, "mode=rw")


def _query(path: Path, mode: str) -> _Titles:
    uri = f"file:{quote(str(path.absolute()))}?{mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as connection:
        connection.text_factory = _lenient_text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        looks = count()
        connection.set_progress_handler(lambda: next(looks) > _MAX_LOOKS, _STEPS_PER_LOOK)
        columns = {str(row[1]) for row in connection.execute("PRAGMA table_info(threads)")}
        if "id" not in columns or connection.execute(_TABLE).fetchone() is None:
            return {}, {}
        return _told(connection.execute(_QUERY.format_map(dict(_column_expressions(columns))), (_MAX_ROWS,)))


def _told(rows: Iterable[Sequence[object]]) -> _Titles:
    names: dict[str, str] = {}
    titles: dict[str, str] = {}
    for native_id, name, title, first in rows:
        if not isinstance(native_id, str):
            continue
        if isinstance(name, str) and name.strip():
            names[native_id] = name
        elif isinstance(title, str) and title.strip() and not (isinstance(first, str) and first.startswith(title.strip())):
            titles[native_id] = title
    return names, titles


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
