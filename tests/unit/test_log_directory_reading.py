from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from contract.session_source import PATIENCE_SECONDS, Follower, following, texts_of
from sessionref_server.adapters.sessions import log_watch
from sessionref_server.adapters.sessions.log_directory import LogDirectorySource
from sessionref_server.adapters.sessions.log_jobs import ReadSurface
from sessionref_server.domain.errors import DamagedSessionError, SourceUnavailableError, UnknownSessionError
from unit.log_directory_rig import LogDirectoryRig, lines, wire_id

ONE = wire_id("one")
TWO = wire_id("two")


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LogDirectoryRig]:
    rig = LogDirectoryRig(tmp_path)
    yield rig
    for cache in rig.caches:
        await cache.close()


async def until_ready(source: LogDirectorySource, follower: Follower) -> None:
    await follower.until(lambda: source.check().ready)


async def test_a_session_is_read_out_of_turn_while_the_first_scan_runs(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl")
    rig.write("two.jsonl")
    rig.workers.gates[True] = asyncio.Event()
    source = rig.source()
    async with following(source) as follower:
        capture = await source.read_surface(ONE)
        assert (texts_of(capture.conversation), source.check().ready) == (["Hello"], False)
        await follower.until_listed(ONE)
        unknown = asyncio.create_task(source.read_surface(wire_id("no-such")))
        rig.workers.gates[True].set()
        with pytest.raises(UnknownSessionError):
            await unknown


async def test_a_session_can_be_read_though_nobody_follows(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl")
    assert texts_of((await rig.source().read_surface(ONE)).conversation) == ["Hello"]


async def test_an_id_of_another_source_is_unknown_at_once(rig: LogDirectoryRig) -> None:
    with pytest.raises(UnknownSessionError):
        await rig.source().read_surface(wire_id("one").replace("tiny", "other"))  # pyright: ignore[reportArgumentType]
    assert rig.workers.jobs == []


async def test_parallel_reads_share_one_job(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl")
    source = rig.source()
    async with following(source) as follower:
        await follower.until_listed(ONE)
        captures = await asyncio.gather(*(source.read_surface(ONE) for _ in range(5)))
    assert (len(set(map(id, captures))), rig.surfaces_read()) == (1, ["one.jsonl"])


async def test_the_job_ends_when_its_last_reader_leaves(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl")
    source = rig.source()
    async with following(source) as follower:
        await follower.until_listed(ONE)
        await until_ready(source, follower)
        rig.workers.gates[False] = asyncio.Event()
        reads = [asyncio.create_task(source.read_surface(ONE)) for _ in range(2)]
        await until(lambda: waiting_readers(source) == len(reads))
        reads[0].cancel()
        await asyncio.wait({reads[0]})
        assert rig.workers.running == 1
        reads[1].cancel()
        await asyncio.wait({reads[1]})
        await until(lambda: not rig.workers.running)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event to wait on
            await asyncio.sleep(0)


def waiting_readers(source: LogDirectorySource) -> int:
    return sum(len(waiters) for _, waiters in source._surfaces._calls._running.values())


async def test_a_read_whose_worker_dies_is_refused_as_unavailable(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl")
    rig.workers.fails = lambda job: isinstance(job, ReadSurface)
    source = rig.source()
    async with following(source) as follower:
        await follower.until_listed(ONE)
        with pytest.raises(SourceUnavailableError) as refused:
            await source.read_surface(ONE)
    assert refused.value.metadata == {"session_id": ONE, "source": "tiny"}


async def test_a_log_its_reader_fails_on_is_refused_as_damaged(rig: LogDirectoryRig) -> None:
    path = rig.write("one.jsonl")
    source = rig.source()
    async with following(source) as follower:
        await follower.until_listed(ONE)
        path.write_text(lines({"user": "Hello", "status": "no such status"}))
        with pytest.raises(DamagedSessionError):
            await source.read_surface(ONE)


@pytest.mark.parametrize("in_its_place", ["nothing", "fifo", "folder", "link", "device link"])
async def test_a_log_that_is_no_regular_file_any_more_is_unknown(rig: LogDirectoryRig, in_its_place: str) -> None:
    path = rig.write("one.jsonl")
    source = rig.source()
    async with following(source) as follower:
        await follower.until_listed(ONE)
        path.rename(rig.folder / "away")
        make = {
            "nothing": lambda: None,
            "fifo": lambda: os.mkfifo(path),
            "folder": path.mkdir,
            "link": lambda: path.symlink_to(rig.folder / "away"),
            "device link": lambda: path.symlink_to("/dev/zero"),
        }
        make[in_its_place]()
        async with asyncio.timeout(PATIENCE_SECONDS):
            with pytest.raises(UnknownSessionError):
                await source.read_surface(ONE)
        await follower.until_listed()


async def test_a_moved_log_is_found_where_it_is_now(rig: LogDirectoryRig) -> None:
    rig.write("a/one.jsonl", {"id": "one", "user": "Hello"})
    source = rig.source()
    async with following(source) as follower:
        await follower.until_listed(ONE)
        rig.workers.gates[True] = asyncio.Event()
        (rig.root / "a").rename(rig.root / "b")
        rig.workers.gates[True].set()
        await follower.until_listed(ONE)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    capture = await source.read_surface(ONE)
                    break
                except UnknownSessionError:
                    await asyncio.sleep(0)
    assert texts_of(capture.conversation) == ["Hello"]


async def test_a_log_that_holds_another_session_now_is_not_taken_for_the_old_one(rig: LogDirectoryRig) -> None:
    path = rig.write("log.jsonl", {"id": "one", "user": "Hello"})
    source = rig.source()
    async with following(source) as follower:
        await follower.until_listed(ONE)
        path.write_text(lines({"id": "two", "user": "Other"}))
        with pytest.raises(UnknownSessionError):
            await source.read_surface(ONE)
        await follower.until_listed(TWO)


async def test_a_rewrite_of_the_same_size_gives_the_new_text(rig: LogDirectoryRig) -> None:
    path = rig.write("one.jsonl", {"user": "Hello"})
    source = rig.source()
    async with following(source) as follower:
        await follower.until_listed(ONE)
        before = await source.read_surface(ONE)
        path.write_text(lines({"user": "HELLO"}))
        after = await source.read_surface(ONE)
    assert (texts_of(before.conversation), texts_of(after.conversation)) == (["Hello"], ["HELLO"])


async def test_captures_are_kept_up_to_their_limit(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl", {"user": "x" * 3000})
    rig.write("two.jsonl", {"user": "y" * 3000})
    source = rig.source(capture_bytes=6000)
    async with following(source) as follower:
        await follower.until_listed(ONE, TWO)
        first = await source.read_surface(ONE)
        assert await source.read_surface(ONE) is first
        await source.read_surface(TWO)
        assert await source.read_surface(ONE) is not first


async def test_without_notifications_changes_are_found_by_looking(rig: LogDirectoryRig, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_watches(_roots: Sequence[str]) -> log_watch.TreeWatch:
        raise OSError(28, "no watches left")

    monkeypatch.setattr(log_watch, "tree_watch", no_watches)
    monkeypatch.setattr(log_watch, "SWEEP_SECONDS", 0.05)
    source = rig.source()
    async with following(source) as follower:
        await until_ready(source, follower)
        rig.write("one.jsonl")
        await follower.until_listed(ONE)


async def test_a_thousand_new_logs_at_once_are_all_seen(rig: LogDirectoryRig) -> None:
    source = rig.source()
    async with following(source) as follower:
        await until_ready(source, follower)
        for number in range(1000):
            rig.write(f"{number % 10}/{number}.jsonl")
        await follower.until_listed(*(wire_id(str(number)) for number in range(1000)))


async def test_check_names_the_places_and_counts(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl")
    rig.write("empty.jsonl", {"at": 1})
    source = rig.source()
    assert (source.check().ready, source.check().places) == (False, (str(rig.root),))
    async with following(source) as follower:
        await until_ready(source, follower)
    check = source.check()
    assert (check.ready, check.listed, check.empty, check.unreadable, check.failure) == (True, 1, 1, 0, "")
