from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from sessionref_server.adapters.sessions.formats.codex import CodexFormat

COLUMNS = "id text primary key, title text, first_user_message text, name text"


def titles(root: Path, environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
    return CodexFormat(environment or {}).titles(root)


def write_index(root: Path, *rows: object) -> None:
    (root / "session_index.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_state(root: Path, *rows: tuple[object, ...], name: str = "state_5.sqlite", columns: str = COLUMNS) -> Path:
    path = root / name
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"create table threads({columns})")
        marks = ",".join("?" for _ in columns.split(","))
        connection.executemany(f"insert into threads values({marks})", rows)
    return path


@pytest.fixture
def written_ahead(tmp_path: Path) -> Iterator[Path]:
    """A home whose database has its newest row in the write-ahead log only, because its writer is still there."""
    path = write_state(tmp_path, ("a", None, None, "Old"))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("pragma journal_mode=wal")
        writer.execute("update threads set name = 'New'")
        yield tmp_path


def snapshot(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}


def test_last_line_of_the_index_wins_and_an_empty_name_removes_one(tmp_path: Path) -> None:
    write_index(
        tmp_path,
        {"id": "a", "thread_name": "One"},
        {"id": "b", "thread_name": "Two"},
        {"id": "a", "thread_name": "Three"},
        {"id": "b", "thread_name": " "},
        {"id": 3, "thread_name": "x"},
        {"id": "c", "thread_name": None},
        ["list"],
    )
    with (tmp_path / "session_index.jsonl").open("a") as file:
        file.write('{"id":"a","thread_n')
    assert titles(tmp_path) == {"a": "Three"}


def test_database_name_beats_index_beats_database_title(tmp_path: Path) -> None:
    write_index(tmp_path, {"id": "a", "thread_name": "Index"}, {"id": "b", "thread_name": "Index"})
    write_state(
        tmp_path, ("a", "Title", "x", "Name"), ("b", "Title", "x", None), ("c", "Title", "x", " "), ("d", None, None, None)
    )
    assert titles(tmp_path) == {"a": "Name", "b": "Index", "c": "Title"}


def test_title_that_repeats_the_first_message_is_none(tmp_path: Path) -> None:
    write_state(tmp_path, ("a", "## My request for Codex:", "## My request for Codex:\nFix it", None))
    assert titles(tmp_path) == {}


@pytest.mark.parametrize(
    ("columns", "row", "expected"),
    [("id text, title text", ("a", "T"), {"a": "T"}), ("id text", ("a",), {}), ("thread text", ("a",), {})],
)
def test_missing_columns_are_no_failure(tmp_path: Path, columns: str, row: tuple[object, ...], expected: dict[str, str]) -> None:
    write_state(tmp_path, row, columns=columns)
    assert titles(tmp_path) == expected


def test_newest_schema_is_read(tmp_path: Path) -> None:
    write_state(tmp_path, ("a", None, None, "Five"))
    write_state(tmp_path, ("a", None, None, "Ten"), name="state_10.sqlite")
    assert titles(tmp_path) == {"a": "Ten"}
    assert [path.name for path in CodexFormat({}).title_files(tmp_path)] == [
        "session_index.jsonl",
        "state_10.sqlite",
        "state_10.sqlite-wal",
    ]


def test_database_may_live_in_another_folder(tmp_path: Path) -> None:
    other = tmp_path / "other folder?x#y"
    other.mkdir()
    write_state(other, ("a", None, None, "Name"))
    environment = {"CODEX_SQLITE_HOME": str(other)}
    assert (titles(tmp_path, environment), titles(tmp_path)) == ({"a": "Name"}, {})


def test_sessions_folder_uses_the_files_of_its_home(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    write_index(tmp_path, {"id": "a", "thread_name": "One"})
    assert titles(tmp_path / "sessions") == {"a": "One"}


def test_reading_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    write_state(tmp_path, ("a", None, None, "Name"))
    before = snapshot(tmp_path)
    assert (titles(tmp_path), snapshot(tmp_path)) == ({"a": "Name"}, before)


def test_row_in_the_write_ahead_log_of_a_running_agent_is_read(written_ahead: Path) -> None:
    names = set(snapshot(written_ahead))
    assert (titles(written_ahead), set(snapshot(written_ahead))) == ({"a": "New"}, names)


@pytest.mark.parametrize("mode", [0o700, 0o500])
def test_write_ahead_log_left_by_a_dead_agent_is_read_from_a_copy(
    written_ahead: Path, tmp_path_factory: pytest.TempPathFactory, mode: int
) -> None:
    home = tmp_path_factory.mktemp("home")
    for name in ("state_5.sqlite", "state_5.sqlite-wal"):
        shutil.copyfile(written_ahead / name, home / name)
    before = snapshot(home)
    home.chmod(mode)
    assert (titles(home), snapshot(home)) == ({"a": "New"}, before)
    home.chmod(0o700)


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00" + b"\xff" * 2000])
def test_damaged_database_gives_no_titles(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state_5.sqlite").write_bytes(content)
    write_index(tmp_path, {"id": "a", "thread_name": "One"})
    assert titles(tmp_path) == {"a": "One"}


def test_pipes_and_links_in_the_place_of_title_files_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "session_index.jsonl")
    os.mkfifo(tmp_path / "state_5.sqlite")
    assert titles(tmp_path) == {}
    (tmp_path / "session_index.jsonl").unlink()
    (tmp_path / "session_index.jsonl").symlink_to(tmp_path / "x")
    assert titles(tmp_path / "missing") == titles(tmp_path) == {}


def test_database_with_a_schema_that_is_no_text_gives_no_titles_and_hides_none(tmp_path: Path) -> None:
    path = write_state(tmp_path, ("a", None, None, "Name"))
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE threads", b"CREATE TAB\xff\xfe threads"))
    write_index(tmp_path, {"id": "a", "thread_name": "One"})
    assert titles(tmp_path) == {"a": "One"}


def test_view_in_the_place_of_the_table_is_not_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state_5.sqlite")) as connection, connection:
        connection.execute("create view threads as select 'a' as id, zeroblob(900000000) as name")
    assert titles(tmp_path) == {}


def test_endless_column_is_given_up(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state_5.sqlite")) as connection, connection:
        connection.execute("create table threads(id text, name text as (zeroblob(900000000)) virtual)")
        connection.execute("insert into threads(id) values('a')")
    write_index(tmp_path, {"id": "a", "thread_name": "One"})
    assert titles(tmp_path) == {"a": "One"}


def test_index_of_nothing_but_line_ends_gives_no_titles(tmp_path: Path) -> None:
    (tmp_path / "session_index.jsonl").write_bytes(b'{"id":"a","thread_name":"One"}\n' + b"a\n" * 1000)
    assert titles(tmp_path) == {}
