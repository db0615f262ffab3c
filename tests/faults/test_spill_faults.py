"""Storage that fails, fills up or is cut off: every save ends in a stated outcome and leaves nothing behind."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import random
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from contract.spill_store import OWNER
from sessionref_server.adapters.spill.directory import DirectorySpillStore
from sessionref_server.domain.ports import SpillFailedError, SpillTicket

SYSTEM_CALLS = ("open", "write", "fsync", "link", "unlink", "close", "mkdir", "utime", "fchmod", "fstat", "scandir", "rmdir")
EVERYTHING = 1 << 30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spill"


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[DirectorySpillStore]:
    store = DirectorySpillStore(folder)
    yield store
    await store.close()


@pytest.fixture(params=["anonymous", "temporary"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "temporary":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return request.param


class FailingCall:
    """Makes one function of ``os`` fail in the store's threads: the Nth call, or all from the Nth on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, number: int, nth: int, *, onward: bool) -> None:
        self.calls = 0
        self._real: Callable[..., Any] = getattr(os, name)
        self._closes = name == "close"
        self._number, self._nth, self._onward = number, nth, onward
        monkeypatch.setattr(os, name, self)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if not threading.current_thread().name.startswith("sessionref-spill"):
            return self._real(*arguments, **options)
        self.calls += 1
        if self.calls == self._nth or (self._onward and self.calls > self._nth):
            if self._closes:
                self._real(*arguments)
            raise OSError(self._number, os.strerror(self._number))
        return self._real(*arguments, **options)


def open_descriptors() -> set[str]:
    return {path.name for path in Path("/dev/fd").iterdir()}


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR, errno.EMFILE], ids=errno.errorcode.get)
@pytest.mark.parametrize("name", SYSTEM_CALLS)
@pytest.mark.parametrize("onward", [False, True], ids=["once", "onward"])
async def test_the_nth_call_that_fails_ends_in_a_whole_file_or_in_none(
    folder: Path, way: str, name: str, number: int, *, onward: bool
) -> None:
    del way
    for nth in range(1, 40):
        descriptors = open_descriptors()
        store = DirectorySpillStore(folder / str(nth))
        with pytest.MonkeyPatch.context() as patch:
            failing = FailingCall(patch, name, number, nth, onward=onward)
            outcome = await save_or_fail(store, b"content")
        if isinstance(outcome, SpillTicket):
            assert await store.read(outcome.locator, OWNER, 0, EVERYTHING) == (b"content", 7)
        await store.sweep()
        assert len(files(folder / str(nth))) == isinstance(outcome, SpillTicket)
        again = await store.save(OWNER, b"after it recovered")
        assert await store.read(again.locator, OWNER, 0, EVERYTHING) == (b"after it recovered", 18)
        await store.close()
        assert open_descriptors() <= descriptors
        if failing.calls < nth:
            return
    pytest.fail(f"a save calls os.{name} more than 40 times")


async def save_or_fail(store: DirectorySpillStore, content: bytes) -> SpillTicket | SpillFailedError:
    try:
        return await store.save(OWNER, content)
    except SpillFailedError as error:
        return error


async def test_a_failure_names_the_cause_and_no_path(
    store: DirectorySpillStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FailingCall(monkeypatch, "fsync", errno.EIO, 1, onward=True)
    with pytest.raises(SpillFailedError) as caught:
        await store.save(OWNER, b"content")
    assert str(caught.value) == "storage refused: EIO"
    assert files(folder) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount_point = tmp_path / "disk"
    mount_point.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount_point)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("may not mount")
    yield mount_point
    subprocess.run(["umount", str(mount_point)], check=True)


async def test_a_full_disk_refuses_leaves_nothing_and_recovers(small_disk: Path, way: str) -> None:
    del way
    store = DirectorySpillStore(small_disk / "spill")
    with pytest.raises(SpillFailedError, match="ENOSPC"):
        await store.save(OWNER, b"x" * 3_000_000)
    assert files(small_disk) == []
    ticket = await store.save(OWNER, b"y" * 500_000)
    assert await store.read(ticket.locator, OWNER, 0, EVERYTHING) == (b"y" * 500_000, 500_000)
    await store.close()


async def test_a_cancel_at_any_moment_leaves_nothing_and_loses_nothing(folder: Path, way: str) -> None:
    del way
    descriptors = open_descriptors()
    store = DirectorySpillStore(folder)
    rng = random.Random(99)
    acknowledged: dict[str, bytes] = {}

    async def one(number: int) -> None:
        content = number.to_bytes(4, "big") * 16_384
        task = asyncio.create_task(store.save(OWNER, content))
        for _ in range(rng.randrange(400)):
            if task.done():
                break
            await asyncio.sleep(0)
        if number % 10:  # a busy machine would finish none of them
            task.cancel()
        try:
            acknowledged[(await task).locator] = content
        except asyncio.CancelledError:
            return

    for start in range(0, 1000, 8):
        await asyncio.gather(*(one(number) for number in range(start, start + 8)))
    await store.close()
    assert 0 < len(acknowledged) < 1000
    assert {path.stem for path in files(folder)} == {locator.removeprefix("spill:") for locator in acknowledged}
    reader = DirectorySpillStore(folder)
    for locator, content in acknowledged.items():
        assert await reader.read(locator, OWNER, 0, EVERYTHING) == (content, 65_536)
    await reader.close()
    assert open_descriptors() <= descriptors


@pytest.mark.parametrize("name", ["write", "fsync", "link", "close"])
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_cancel_around_a_system_call_publishes_nothing(
    folder: Path, way: str, monkeypatch: pytest.MonkeyPatch, name: str, moment: str
) -> None:
    del way
    store = DirectorySpillStore(folder)
    loop = asyncio.get_running_loop()
    reached, resume = asyncio.Event(), threading.Event()
    real = getattr(os, name)

    def pausing(*arguments: Any, **options: Any) -> Any:
        if not threading.current_thread().name.startswith("sessionref-spill") or reached.is_set():
            return real(*arguments, **options)
        result = real(*arguments, **options) if moment == "after" else None
        loop.call_soon_threadsafe(reached.set)
        resume.wait()
        return result if moment == "after" else real(*arguments, **options)

    monkeypatch.setattr(os, name, pausing)
    task = asyncio.create_task(store.save(OWNER, b"content"))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    resume.set()
    await store.close()
    assert files(folder) == []


async def test_a_cancelled_save_again_keeps_the_file_of_the_first(store: DirectorySpillStore) -> None:
    ticket = await store.save(OWNER, b"content")
    for yields in range(200):
        task = asyncio.create_task(store.save(OWNER, b"content"))
        for _ in range(yields):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert await store.read(ticket.locator, OWNER, 0, EVERYTHING) == (b"content", 7)


async def test_leftovers_of_a_killed_writer_are_swept_and_those_of_a_living_one_kept(
    store: DirectorySpillStore, folder: Path
) -> None:
    await store.save(OWNER, b"content")
    owner_folder = files(folder)[0].parent
    (owner_folder / ".dead.tmp").write_bytes(b"half")
    with (owner_folder / ".alive.tmp").open("wb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        assert await store.sweep() == 1
        assert [path.name for path in files(folder) if path.suffix == ".tmp"] == [".alive.tmp"]


async def test_a_store_that_cannot_be_made_refuses_the_save(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = DirectorySpillStore(tmp_path / "file" / "spill")
    with pytest.raises(SpillFailedError):
        await store.save(OWNER, b"content")
    assert await store.sweep() == 0
    await store.close()
