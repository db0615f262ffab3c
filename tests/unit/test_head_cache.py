from __future__ import annotations

import logging
import os
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessionref_server.adapters.sessions.head_cache import FILE_NAME, CachedHead, HeadCache
from sessionref_server.adapters.sessions.head_json import (
    MAX_PATH_CHARACTERS,
    MAX_RAW_TITLE_CHARACTERS,
    bounded_head,
    decode_head,
    encode_head,
)
from sessionref_server.adapters.sessions.log_format import LogFile, NativeHead
from sessionref_server.domain.session import ModelRoute, SessionStatus

FILE = LogFile(path="/logs/a.jsonl", device=1, inode=2, size=3, mtime_ns=4)
ROW = CachedHead(1, 2, 3, 4, 5, b'{"native_id":"a"}')

MakeCache = Callable[[], HeadCache]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "sessionref"


@pytest.fixture
async def make_cache(folder: Path) -> AsyncIterator[MakeCache]:
    made: list[HeadCache] = []

    def make() -> HeadCache:
        made.append(HeadCache(folder))
        return made[-1]

    yield make
    for cache in made:
        await cache.close()


def modes_below(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}


def place(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


def moved_aside(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.glob("*.damaged-*")]


async def test_saved_heads_are_loaded_by_the_next_run(make_cache: MakeCache) -> None:
    first = make_cache()
    rows = {"/logs/a.jsonl": ROW, "/logs/not-utf8-\udcff.jsonl": replace(ROW, inode=2**64 - 1)}
    await first.save("codex", list(rows.items()))
    await first.close()
    assert await make_cache().load("codex") == rows


async def test_another_source_has_its_own_heads(make_cache: MakeCache) -> None:
    cache = make_cache()
    await cache.save("codex", [("/logs/a.jsonl", ROW)])
    assert await cache.load("dsh") == {}


async def test_a_saved_head_replaces_the_one_before(make_cache: MakeCache) -> None:
    cache = make_cache()
    await cache.save("codex", [("/logs/a.jsonl", ROW)])
    await cache.save("codex", [("/logs/a.jsonl", replace(ROW, size=99))])
    assert await cache.load("codex") == {"/logs/a.jsonl": replace(ROW, size=99)}


async def test_a_forgotten_head_is_gone(make_cache: MakeCache) -> None:
    cache = make_cache()
    await cache.save("codex", [("/logs/a.jsonl", ROW), ("/logs/b.jsonl", ROW)])
    await cache.forget("codex", ["/logs/a.jsonl"])
    assert list(await cache.load("codex")) == ["/logs/b.jsonl"]


async def test_rows_of_other_types_than_were_written_are_none(make_cache: MakeCache, folder: Path) -> None:
    cache = make_cache()
    await cache.save("codex", [(f"/logs/{name}.jsonl", ROW) for name in "abcd"])
    with closing(sqlite3.connect(folder / FILE_NAME)) as database, database:
        database.execute("UPDATE heads SET head = 5 WHERE path = ?", (b"/logs/a.jsonl",))
        database.execute("UPDATE heads SET shown = 'text' WHERE path = ?", (b"/logs/b.jsonl",))
        database.execute("UPDATE heads SET inode = 'text' WHERE path = ?", (b"/logs/c.jsonl",))
    assert list(await cache.load("codex")) == ["/logs/d.jsonl"]


def make_open_file(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True)
    (folder / FILE_NAME).touch()
    (folder / FILE_NAME).chmod(0o666)


async def test_file_that_others_may_read_becomes_private(make_cache: MakeCache, folder: Path) -> None:
    make_open_file(folder)
    cache = make_cache()
    await cache.save("codex", [("/logs/a.jsonl", ROW)])
    assert set(modes_below(folder).values()) == {0o700, 0o600}
    assert list(await cache.load("codex")) == ["/logs/a.jsonl"]


async def test_folder_and_files_are_private_whatever_the_umask(make_cache: MakeCache, folder: Path) -> None:
    before = os.umask(0)
    try:
        await make_cache().save("codex", [("/logs/a.jsonl", ROW)])
    finally:
        os.umask(before)
    modes = modes_below(folder)
    assert modes.pop(folder.name) == 0o700
    assert FILE_NAME in modes
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize(
    "damage", [b"no database at all, but long enough to be looked at" * 100, b"SQLite format 3\0" + b"\xff" * 8192]
)
async def test_a_damaged_file_is_moved_aside_and_built_again(
    make_cache: MakeCache, folder: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    place(folder / FILE_NAME, damage)
    cache = make_cache()
    with caplog.at_level(logging.WARNING):
        assert await cache.load("codex") == {}
    await cache.save("codex", [("/logs/a.jsonl", ROW)])
    assert await cache.load("codex") == {"/logs/a.jsonl": ROW}
    assert moved_aside(folder) == [damage]
    assert len(caplog.records) == 1


async def test_a_file_of_another_schema_starts_empty(make_cache: MakeCache, folder: Path) -> None:
    cache = make_cache()
    await cache.save("codex", [("/logs/a.jsonl", ROW)])
    await cache.close()
    database = sqlite3.connect(folder / FILE_NAME)
    database.execute("PRAGMA user_version = 999")
    database.close()
    assert await make_cache().load("codex") == {}


async def test_a_folder_that_cannot_be_made_remembers_nothing(
    make_cache: MakeCache, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place(folder, b"a file stands in the way")
    cache = make_cache()
    await cache.save("codex", [("/logs/a.jsonl", ROW)])
    await cache.save("codex", [("/logs/a.jsonl", ROW)])
    assert await cache.load("codex") == {}
    assert len(caplog.records) == 1


async def test_two_servers_share_one_file(make_cache: MakeCache) -> None:
    one, two = make_cache(), make_cache()
    await one.save("codex", [("/logs/a.jsonl", ROW)])
    await two.save("codex", [("/logs/b.jsonl", ROW)])
    assert set(await one.load("codex")) == {"/logs/a.jsonl", "/logs/b.jsonl"}


def test_a_row_fits_the_log_it_was_read_from() -> None:
    assert ROW.fits(FILE, 5)


@pytest.mark.parametrize("change", [{"device": 9}, {"inode": 9}, {"size": 9}, {"mtime_ns": 9}])
def test_a_row_fits_no_other_state_of_the_log(change: dict[str, int]) -> None:
    assert not ROW.fits(replace(FILE, **change), 5)


def test_a_row_fits_no_other_version_of_the_reader() -> None:
    assert not ROW.fits(FILE, 6)


any_text = st.text(st.characters(codec=None))
times = st.integers(-(2**53) + 1, 2**53 - 1)
heads = st.builds(
    NativeHead,
    native_id=any_text,
    title=st.none() | any_text,
    subagent_label=st.none() | any_text,
    cwd=st.none() | any_text,
    created_at_ms=st.none() | times,
    updated_at_ms=st.none() | times,
    parent_native_id=st.none() | any_text,
    is_subagent=st.booleans(),
    route=st.none() | st.builds(ModelRoute, provider=st.none() | any_text, model=st.none() | any_text),
)


@given(heads)
def test_a_head_comes_back_from_json_as_it_was(head: NativeHead) -> None:
    assert decode_head(encode_head(head)) == head


def test_status_and_detail_come_back_from_json() -> None:
    head = NativeHead(native_id="a", status=SessionStatus.TOO_NEW, status_detail="9")
    assert decode_head(encode_head(head)) == head


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"{",
        b'{"native_id":"a","x":1}',
        b'{"native_id":"a","status":"?"}',
        b'{"native_id":5}',
        b'{"native_id":"a","title":5}',
        b'{"native_id":"a","created_at_ms":1.5}',
        b'{"native_id":"a","is_subagent":1}',
        b'{"native_id":"a","route":5}',
        b'{"native_id":"a","route":["p"]}',
        b'{"native_id":"a","route":["p",5]}',
        b'{"native_id":"a","status":[]}',
        pytest.param(b'{"native_id":"a","title":' + b"[" * 5000 + b"]" * 5000 + b"}", id="deep"),
    ],
)
def test_bytes_that_are_no_head_are_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_head(document)


def test_a_hostile_head_is_bounded() -> None:
    hostile = NativeHead(
        native_id="a",
        title="t" * 10**6,
        subagent_label="l" * 10**6,
        cwd="/" * 10**6,
        route=ModelRoute(provider="p" * 10**6),
        status_detail="d" * 10**6,
        created_at_ms=2**53,
        updated_at_ms=-(2**80),
    )
    head = bounded_head(hostile)
    assert (head.title, head.cwd, head.route) == ("t" * MAX_RAW_TITLE_CHARACTERS, None, None)
    assert (head.created_at_ms, head.updated_at_ms) == (None, None)
    assert len(encode_head(head)) < 3 * MAX_PATH_CHARACTERS
