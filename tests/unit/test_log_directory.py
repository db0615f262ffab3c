from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from contract.session_source import Follower, following, texts_of
from fakes.tiny_format import TITLES_FILE
from sessionref_server.adapters.sessions import log_watch
from sessionref_server.adapters.sessions.log_directory import LogDirectorySource
from sessionref_server.adapters.sessions.log_jobs import ReadHeads
from sessionref_server.domain.errors import SourceUnavailableError
from sessionref_server.domain.session import SessionStatus
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


async def run_until_ready(source: LogDirectorySource) -> Follower:
    """Run a source until its first scan is over, and stop it again."""
    async with following(source) as follower:
        await until_ready(source, follower)
    return follower


async def test_a_warm_start_reads_no_log(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl", {"user": "Hello", "title": "Kept", "cwd": "/work", "at": 5})
    first = await run_until_ready(rig.source(head_cache=rig.cache()))
    await rig.caches[0].close()
    assert (rig.heads_read(), set(first.heads)) == (["one.jsonl"], {ONE})
    second = await run_until_ready(rig.source(head_cache=rig.cache()))
    assert (rig.heads_read(), second.heads) == (["one.jsonl"], first.heads)


async def test_a_log_rewritten_between_runs_is_read_again(rig: LogDirectoryRig) -> None:
    path = rig.write("one.jsonl", {"user": "Hello", "title": "Old!"})
    await run_until_ready(rig.source(head_cache=rig.cache()))
    await rig.caches[0].close()
    path.write_text(lines({"user": "Hello", "title": "New!"}))
    second = await run_until_ready(rig.source(head_cache=rig.cache()))
    assert second.heads[ONE].title == "New!"


async def test_a_log_deleted_between_runs_is_forgotten(rig: LogDirectoryRig) -> None:
    path = rig.write("one.jsonl")
    rig.write("two.jsonl")
    await run_until_ready(rig.source(head_cache=rig.cache()))
    await rig.caches[0].close()
    path.unlink()
    second = await run_until_ready(rig.source(head_cache=rig.cache()))
    assert set(second.heads) == {TWO}
    assert [Path(path).name for path in await rig.caches[1].load("tiny")] == ["two.jsonl"]


async def test_newest_logs_are_read_first(rig: LogDirectoryRig) -> None:
    for age in range(40):
        os.utime(rig.write(f"{age:02}.jsonl"), (1_000_000 - age, 1_000_000 - age))
    follower = await run_until_ready(rig.source())
    first_batch = [Path(file.path).name for file in rig.workers.jobs[0].files]  # pyright: ignore[reportAttributeAccessIssue]
    assert first_batch == [f"{age:02}.jsonl" for age in range(len(first_batch))]
    assert len(follower.heads) == 40


async def test_a_renamed_log_leaves_no_ghost(rig: LogDirectoryRig) -> None:
    path = rig.write("one.jsonl")
    async with following(rig.source()) as follower:
        await follower.until_listed(ONE)
        path.rename(path.with_name("two.jsonl"))
        await follower.until_listed(TWO)


async def test_a_renamed_folder_keeps_its_sessions_and_their_changes_are_seen(rig: LogDirectoryRig) -> None:
    rig.write("a/b/one.jsonl", {"id": "one", "user": "Hello"})
    source = rig.source()
    async with following(source) as follower:
        await follower.until_listed(ONE)
        (rig.root / "a").rename(rig.root / "c")
        rig.write("c/b/one.jsonl", {"id": "one", "user": "Hello", "title": "Moved"})
        await follower.until(lambda: ONE in follower.heads and follower.heads[ONE].title == "Moved")
        await follower.until_listed(ONE)


async def test_a_session_in_folders_made_later_is_seen(rig: LogDirectoryRig) -> None:
    source = rig.source()
    async with following(source) as follower:
        await until_ready(source, follower)
        rig.write("2030/01/02/one.jsonl")
        await follower.until_listed(ONE)
        rig.write("2030/01/02/one.jsonl", {"user": "Hello", "title": "Grown"})
        await follower.until(lambda: follower.heads[ONE].title == "Grown")


async def test_of_two_logs_with_the_same_id_the_one_not_archived_is_shown(rig: LogDirectoryRig) -> None:
    rig.write("archived/one.jsonl", {"id": "one", "user": "Hello", "title": "Archived", "at": 9})
    live = rig.write("one.jsonl", {"id": "one", "user": "Hello", "title": "Live", "at": 1})
    source = rig.source()
    async with following(source) as follower:
        await until_ready(source, follower)
        assert ([head.title for head in follower.heads.values()], source.check().listed) == (["Live"], 1)
        live.unlink()
        await follower.until(lambda: follower.heads[ONE].title == "Archived")
    assert follower.heads[ONE].archived


async def test_of_two_live_copies_the_one_with_the_newest_activity_is_shown(rig: LogDirectoryRig) -> None:
    rig.write("a/one.jsonl", {"id": "one", "user": "Hello", "title": "New", "at": 9})
    rig.write("b/one.jsonl", {"id": "one", "user": "Hello", "title": "Old", "at": 1})
    source = rig.source()
    async with following(source) as follower:
        await until_ready(source, follower)
        assert [head.title for head in follower.heads.values()] == ["New"]
        assert texts_of((await source.read_surface(ONE)).conversation) == ["Hello"]


async def test_a_usual_place_that_is_missing_is_no_failure_and_is_found_later(
    rig: LogDirectoryRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_watch, "ROOTS_SECONDS", 0.01)
    rig.root = rig.folder / "later"
    source = rig.source(configured=False, root=rig.root)
    async with following(source) as follower:
        await until_ready(source, follower)
        assert (source.check().failure, source.check().listed) == ("", 0)
        rig.write("one.jsonl")
        await follower.until_listed(ONE)


async def test_a_configured_folder_that_is_missing_is_a_failure_without_its_path(rig: LogDirectoryRig) -> None:
    source = rig.source(root=rig.folder / "missing")
    async with following(source) as follower:
        await until_ready(source, follower)
        assert source.check().failure == "folder does not exist"
        with pytest.raises(SourceUnavailableError) as refused:
            await source.read_surface(ONE)
    assert "missing" not in str(refused.value)


async def test_a_folder_that_becomes_unreadable_keeps_its_sessions_listed(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl")
    source = rig.source()
    async with following(source) as follower:
        await follower.until_listed(ONE)
        rig.root.rename(rig.folder / "away")
        rig.root.touch()
        await follower.until(lambda: source.check().failure == "folder cannot be read")
        assert set(follower.heads) == {ONE}


async def test_a_title_beside_the_logs_goes_before_their_own_while_it_is_there(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl", {"user": "Hello", "title": "Own"})
    titles = rig.root / TITLES_FILE
    titles.write_text('{"one": "Given", "no-such": "Other"}')
    async with following(rig.source()) as follower:
        await follower.until_listed(ONE)
        assert follower.heads[ONE].title == "Given"
        titles.write_text('{"one": "Given anew"}')
        await follower.until(lambda: follower.heads[ONE].title == "Given anew")
        titles.unlink()
        await follower.until(lambda: follower.heads[ONE].title == "Own")


async def test_titles_are_one_clean_redacted_line(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl", {"user": "Hello", "title": "a\x1b[2J\x07\nKEY b", "label": "KEY\u202e"})
    rig.write("two.jsonl", {"user": "Hello", "title": "\u200b"})

    def redact(texts: Sequence[str]) -> list[str]:
        return [text.replace("KEY", "[redacted secret]") for text in texts]

    async with following(rig.source(redact=redact)) as follower:
        await follower.until_listed(ONE, TWO)
    head = follower.heads[ONE]
    assert (head.title, head.subagent_label) == ("a [redacted secret] b", "[redacted secret]")
    assert follower.heads[TWO].title is None


async def test_ids_that_cannot_travel_are_counted_and_not_listed(rig: LogDirectoryRig) -> None:
    rig.write("surrogate.jsonl", {"id": "\ud800", "user": "Hello"})
    rig.write("long.jsonl", {"id": "x" * 508, "user": "Hello"})
    rig.write("fits.jsonl", {"id": "x" * 507, "user": "Hello", "cwd": "/\ud800"})
    source = rig.source()
    follower = await run_until_ready(source)
    assert set(follower.heads) == {wire_id("x" * 507)}
    assert source.check().unreadable == 2
    assert follower.heads[wire_id("x" * 507)].cwd is None


async def test_one_broken_log_hides_no_other(rig: LogDirectoryRig) -> None:
    rig.write("broken.jsonl", {"status": "no such status"})
    rig.write("not-a-session.jsonl", {"status": "not_a_session"})
    rig.write("one.jsonl")
    partial = rig.write("partial.jsonl")
    partial.write_text(partial.read_text() + "{bad}\n")
    source = rig.source()
    follower = await run_until_ready(source)
    assert set(follower.heads) == {ONE, wire_id("partial")}
    assert follower.heads[wire_id("partial")].status is SessionStatus.PARTIAL
    assert source.check().unreadable == 2


async def test_a_log_that_kills_its_worker_is_given_up_alone(rig: LogDirectoryRig) -> None:
    for name in ("one", "two", "killer"):
        rig.write(f"{name}.jsonl")
    rig.workers.fails = lambda job: isinstance(job, ReadHeads) and any("killer" in file.path for file in job.files)
    source = rig.source()
    follower = await run_until_ready(source)
    assert (set(follower.heads), source.check().unreadable) == ({ONE, TWO}, 1)
