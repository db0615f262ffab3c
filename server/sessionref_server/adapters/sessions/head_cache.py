"""Heads kept between runs, in one SQLite file of our own, so that a start with thousands of unchanged logs reads none of them.

Only a memory of work done: a row counts when a log with the same place and the same stat exists now. Whatever goes wrong here
(full disk, damaged file, another program) costs a re-reading, never an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sessionref_server.adapters.sessions.log_format import LogFile

T = TypeVar("T")

FILE_NAME = "heads.sqlite3"
SCHEMA_VERSION = 2
BUSY_TIMEOUT_MS = 2000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS heads (
    source TEXT NOT NULL, path BLOB NOT NULL,
    device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    version INTEGER NOT NULL, head BLOB NOT NULL,
    rules TEXT NOT NULL, shown BLOB NOT NULL,
    PRIMARY KEY (source, path)
) WITHOUT ROWID
"""
_SELECT = """
SELECT path, device, inode, size, mtime_ns, version, head, rules, shown FROM heads
WHERE source = ? AND typeof(path) = 'blob' AND typeof(inode) = 'integer' AND typeof(head) = 'blob' AND typeof(shown) = 'blob'
"""
"""A column takes values of any type; what is of another one than was written is no row of ours."""

_INSERT = "INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM heads WHERE source = ? AND path = ?"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedHead:
    """What was read of one log, and the state of the file it was read from."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    version: int
    """``LogFormat.version`` of the reader."""
    head: bytes
    """``encode_head``'s JSON."""
    rules: str = ""
    """What ``shown`` was made by: by other rules it would be something else."""
    shown: bytes = b""
    """``ShownTexts``' JSON: the texts of the head as people see them."""

    def fits(self, file: LogFile, version: int) -> bool:
        """Whether the log is still the one that was read, and the reader the one that read it."""
        return (self.size, self.mtime_ns, self.inode, self.device, self.version) == (
            file.size,
            file.mtime_ns,
            file.inode,
            file.device,
            version,
        )


class HeadCache:
    """The file, used from one thread of its own. Never raises: a cache that does not work remembers nothing, and says so once."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is made when it does not exist; it and the file are the user's alone."""
        self._path = folder / FILE_NAME
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="head-cache")
        self._database: sqlite3.Connection | None = None
        self._broken = False
        self._closed = False

    async def load(self, source: str) -> dict[str, CachedHead]:
        """Everything remembered of one source, by path."""
        return await self._run(lambda database: _load(database, source), {})

    async def save(self, source: str, heads: Sequence[tuple[str, CachedHead]]) -> None:
        """Remember heads by path, in one transaction."""
        rows = [(source, os.fsencode(path), *_columns(row)) for path, row in heads]
        await self._run(lambda database: _write(database, _INSERT, rows), None)

    async def forget(self, source: str, paths: Sequence[str]) -> None:
        """Drop what is remembered of logs that are gone."""
        rows = [(source, os.fsencode(path)) for path in paths]
        await self._run(lambda database: _write(database, _DELETE, rows), None)

    async def close(self) -> None:
        """Close the file and end the thread, after all writes given before. Closing again does nothing."""
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._attempt, work, otherwise)

    def _attempt(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        if self._broken:
            return otherwise
        try:
            return work(self._connection())
        except sqlite3.DatabaseError as error:
            return self._start_afresh(error, work, otherwise)
        except OSError as error:
            self._give_up(error)
        return otherwise

    def _start_afresh(self, error: sqlite3.DatabaseError, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """A damaged file is moved aside and built again; any other failure (disk full, locked, read-only) passes this once."""
        self._close()
        if isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError):
            _log.warning("session head cache passed once: %s", getattr(error, "sqlite_errorname", type(error).__name__))
            return otherwise
        try:
            aside = self._path.with_name(f"{FILE_NAME}.damaged-{time.time_ns()}")
            self._path.replace(aside)
            for suffix in ("-wal", "-shm"):
                self._path.with_name(FILE_NAME + suffix).unlink(missing_ok=True)
            _log.warning("session head cache was damaged; it was moved to %s and is built again", aside.name)
            return work(self._connection())
        except (OSError, sqlite3.Error) as second:
            self._give_up(second)
        return otherwise

    def _give_up(self, error: Exception) -> None:
        self._broken = True
        _log.warning("session head cache is off until the next start: %s", type(error).__name__)

    def _connection(self) -> sqlite3.Connection:
        if self._database is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(self._path)
            self._database = _open(self._path)
        return self._database

    def _close(self) -> None:
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
            self._database = None


def _make_private(path: Path) -> None:
    """Make the file before SQLite does, for its mode, which -wal and -shm take over.

    An existing one is not opened here: closing it would drop the locks that another connection of this process holds.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077:
            path.chmod(0o600)


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        if database.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
            database.execute("DROP TABLE IF EXISTS heads")
            database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        database.execute(_SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def _load(database: sqlite3.Connection, source: str) -> dict[str, CachedHead]:
    return {
        os.fsdecode(path): CachedHead(device, inode & _MASK, *rest)
        for path, device, inode, *rest in database.execute(_SELECT, (source,))
    }


def _write(database: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    database.execute("BEGIN IMMEDIATE")
    try:
        database.executemany(statement, rows)
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _columns(row: CachedHead) -> tuple[object, ...]:
    stat = row.device, _signed(row.inode), row.size, row.mtime_ns
    return (*stat, row.version, row.head, row.rules, row.shown)


_MASK = 2**64 - 1


def _signed(number: int) -> int:
    """Inode numbers of some file systems use all 64 bits; SQLite's integers are signed."""
    return number - 2**64 if number >= 2**63 else number
