"""Logs that change while they are prepared: whole records from one version of the log, or a failure that says what happened."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from faults.long_logs import said, write_dsh_log
from rpc.agent_logs import dsh_lines
from rpc.context_text import read_context
from rpc.served import Serve, Served

SESSION = "changing"
MESSAGES = 200
PREPARES = 50
STATED = {grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DATA_LOSS}
"""Besides OK: the log is gone, is never at rest, or was met when its header was half written."""

Change = Callable[[Path, random.Random], None]


def texts_of(version: str = "") -> list[str]:
    return [version + text for _, text in said(MESSAGES, 500)]


def content_of(version: str = "") -> bytes:
    messages = [(role, version + text) for role, text in said(MESSAGES, 500)]
    return b"".join(line + b"\n" for line in dsh_lines(SESSION, messages))


def restored(path: Path) -> None:
    fresh = path.with_name("fresh")
    fresh.write_bytes(content_of())
    fresh.rename(path)


def truncated(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(len(content_of())))
    path.write_bytes(content_of())


def replaced(path: Path, rng: random.Random) -> None:
    fresh = path.with_name("fresh")
    fresh.write_bytes(content_of(rng.choice(["", "other "])))
    fresh.rename(path)


def rewritten_in_place(path: Path, rng: random.Random) -> None:
    path.write_bytes(content_of(rng.choice(["", "other "])))


def deleted(path: Path, rng: random.Random) -> None:
    del rng
    path.unlink(missing_ok=True)
    restored(path)


def rotated(path: Path, rng: random.Random) -> None:
    del rng
    path.rename(path.with_name("old"))
    restored(path)


def made_a_pipe(path: Path, rng: random.Random) -> None:
    del rng
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    path.unlink()
    restored(path)


def made_a_folder(path: Path, rng: random.Random) -> None:
    del rng
    path.unlink(missing_ok=True)
    path.mkdir()
    path.rmdir()
    restored(path)


@contextmanager
def changing(path: Path, change: Change) -> Iterator[None]:
    """Change the log over and over in a thread, at random moments."""
    over = threading.Event()
    rng = random.Random(20260901)

    def work() -> None:
        while not over.wait(rng.choice([0, 0, 0.02])):
            change(path, rng)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


async def prepared(served: Served) -> tuple[grpc.StatusCode, list[str], int | None]:
    """How a Prepare ended, the texts it gave, and through which record it went."""
    try:
        answer = await served.prepare(SESSION)
    except grpc.aio.AioRpcError as error:
        return error.code(), [], None
    (preview,) = read_context(answer.additional_context).previews
    return grpc.StatusCode.OK, [item["text"] for item in preview["conversation"]], preview["capturedThroughSeq"]


async def listed(served: Served) -> None:
    """Wait until the session is among the candidates."""
    while not await served.listed_ids():
        await served.application.catalog.wait_change(1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_dsh_log(tmp_path / "dsh", SESSION, messages=MESSAGES, message_bytes=500)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "change",
    [truncated, replaced, rewritten_in_place, deleted, rotated, made_a_pipe, made_a_folder],
    ids=lambda change: change.__name__,
)
async def test_a_log_that_changes_gives_whole_records_of_one_version_or_a_stated_failure(
    serve: Serve, log: Path, change: Change
) -> None:
    versions = [texts_of(), texts_of("other ")]
    async with serve({"dsh": log.parents[2]}, prepare__max_reference_bytes="1000000") as served:
        with changing(log, change):
            for _ in range(PREPARES):
                code, texts, through = await prepared(served)
                assert code in STATED
                assert any(texts == version[: len(texts)] for version in versions)
                assert through is None or through == len(texts)
        restored(log)
        await listed(served)
        assert await prepared(served) == (grpc.StatusCode.OK, texts_of(), MESSAGES)


@pytest.mark.timeout(120)
async def test_a_log_that_grows_by_bytes_gives_ever_longer_prefixes(serve: Serve, log: Path) -> None:
    content = content_of()
    written = len(content) // 2
    os.truncate(log, written)
    async with serve({"dsh": log.parents[2]}, prepare__max_reference_bytes="1000000") as served:
        latest = 0
        with log.open("ab", buffering=0) as stream:
            for _ in range(PREPARES):
                task = asyncio.create_task(prepared(served))
                while not task.done():
                    stream.write(content[written : written + 3])
                    written += len(content[written : written + 3])
                    await asyncio.sleep(0)
                code, texts, through = task.result()
                assert code == grpc.StatusCode.OK
                assert texts == texts_of()[: len(texts)]
                assert through == len(texts)
                assert through >= latest
                latest = through
            stream.write(content[written:])
        assert await prepared(served) == (grpc.StatusCode.OK, texts_of(), MESSAGES)


async def test_a_log_that_has_become_a_pipe_is_refused_at_once(serve: Serve, log: Path) -> None:
    async with serve({"dsh": log.parents[2]}) as served:
        os.remove(log)  # noqa: PTH107 - pathlib counts as blocking here
        os.mkfifo(log)
        for _ in range(5):
            assert (await prepared(served))[0] == grpc.StatusCode.NOT_FOUND
