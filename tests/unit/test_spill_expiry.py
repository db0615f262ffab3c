"""What a directory store forgets and what it refuses: expiry, clocks, quota, and content saved again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import time as wall_seconds

import pytest
from contract.spill_store import OTHER, OWNER
from sessionref_server.adapters.spill.directory import DirectorySpillStore
from sessionref_server.adapters.spill.steady_clock import SteadyClock
from sessionref_server.domain.errors import UnknownSessionError
from sessionref_server.domain.ports import SpillFailedError

DAY = 24 * 3600.0


class Time:
    """Wall clock and ticks that a test moves by hand."""

    def __init__(self) -> None:
        self.wall = wall_seconds()
        self.ticks = 1000.0

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.ticks += seconds

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall, lambda: self.ticks)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spill"


@pytest.fixture
async def make_store(folder: Path, time: Time) -> AsyncIterator[Callable[..., DirectorySpillStore]]:
    stores: list[DirectorySpillStore] = []

    def make(quota_bytes: int = 100_000_000) -> DirectorySpillStore:
        stores.append(DirectorySpillStore(folder, expiry_seconds=30 * DAY, quota_bytes=quota_bytes, clock=time.clock()))
        return stores[-1]

    yield make
    for store in stores:
        await store.close()


@pytest.fixture
def store(make_store: Callable[..., DirectorySpillStore]) -> DirectorySpillStore:
    return make_store()


def is_empty(folder: Path) -> bool:
    return not any(folder.iterdir())


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


async def test_a_file_expires_for_readers_and_is_swept(store: DirectorySpillStore, folder: Path, time: Time) -> None:
    ticket = await store.save(OWNER, b"old")
    time.pass_(29.9 * DAY)
    assert await store.sweep() == 0
    assert await store.read(ticket.locator, OWNER, 0, 10) == (b"old", 3)
    time.pass_(0.2 * DAY)
    with pytest.raises(UnknownSessionError):
        await store.read(ticket.locator, OWNER, 0, 10)
    assert await store.sweep() == 1
    assert is_empty(folder)


@pytest.mark.parametrize("jump_seconds", [3600.0, -DAY, 68 * 365 * DAY])
async def test_setting_the_clock_in_mid_run_expires_nothing_early_and_nothing_late(
    store: DirectorySpillStore, time: Time, jump_seconds: float
) -> None:
    before = await store.save(OWNER, b"before")
    time.wall += jump_seconds
    after = await store.save(OWNER, b"after")
    time.pass_(29 * DAY)
    assert await store.sweep() == 0
    assert await store.read(before.locator, OWNER, 0, 10) == (b"before", 6)
    assert await store.read(after.locator, OWNER, 0, 10) == (b"after", 5)
    time.pass_(2 * DAY)
    assert await store.sweep() == 2


async def test_a_restart_with_the_clock_set_back_expires_nothing(
    make_store: Callable[..., DirectorySpillStore], time: Time
) -> None:
    ticket = await make_store().save(OWNER, b"kept")
    time.wall -= 365 * DAY
    again = make_store()
    assert await again.sweep() == 0
    assert await again.read(ticket.locator, OWNER, 0, 10) == (b"kept", 4)


async def test_files_survive_a_restart(make_store: Callable[..., DirectorySpillStore]) -> None:
    ticket = await make_store().save(OWNER, b"kept")
    assert await make_store().read(ticket.locator, OWNER, 0, 10) == (b"kept", 4)


async def test_saving_again_in_the_first_half_of_its_life_renews_it(store: DirectorySpillStore, folder: Path, time: Time) -> None:
    first = await store.save(OWNER, b"again")
    time.pass_(14 * DAY)
    assert (await store.save(OWNER, b"again")).locator == first.locator
    time.pass_(29 * DAY)
    assert await store.read(first.locator, OWNER, 0, 10) == (b"again", 5)
    assert len(files(folder)) == 1


async def test_saving_again_later_writes_a_new_file(store: DirectorySpillStore, time: Time) -> None:
    first = await store.save(OWNER, b"again")
    time.pass_(16 * DAY)
    assert (await store.save(OWNER, b"again")).locator != first.locator


async def test_saving_again_what_was_removed_writes_it_anew(store: DirectorySpillStore, folder: Path) -> None:
    await store.save(OWNER, b"again")
    files(folder)[0].unlink()
    ticket = await store.save(OWNER, b"again")
    assert await store.read(ticket.locator, OWNER, 0, 10) == (b"again", 5)


async def test_over_the_quota_a_save_is_refused_and_the_store_stays_within(
    make_store: Callable[..., DirectorySpillStore], folder: Path
) -> None:
    store = make_store(quota_bytes=1000)
    for n in range(9):
        await store.save(OWNER if n % 2 else OTHER, bytes([n]) * 110)
    for n in range(5):
        with pytest.raises(SpillFailedError, match="full"):
            await store.save(OWNER, bytes([100 + n]) * 110)
    assert sum(path.stat().st_size for path in files(folder)) == 990


async def test_over_the_quota_expired_files_make_room(
    make_store: Callable[..., DirectorySpillStore], folder: Path, time: Time
) -> None:
    store = make_store(quota_bytes=1000)
    old = await store.save(OWNER, b"o" * 600)
    time.pass_(20 * DAY)
    young = await store.save(OWNER, b"y" * 300)
    time.pass_(11 * DAY)
    new = await store.save(OWNER, b"n" * 600)
    assert sum(path.stat().st_size for path in files(folder)) == 900
    assert (await store.read(young.locator, OWNER, 0, 1))[1] == 300
    assert (await store.read(new.locator, OWNER, 0, 1))[1] == 600
    with pytest.raises(UnknownSessionError):
        await store.read(old.locator, OWNER, 0, 1)


async def test_what_an_earlier_run_left_counts_towards_the_quota(make_store: Callable[..., DirectorySpillStore]) -> None:
    await make_store().save(OWNER, b"x" * 600)
    with pytest.raises(SpillFailedError, match="full"):
        await make_store(quota_bytes=1000).save(OWNER, b"y" * 600)


async def test_a_thousand_saves_of_the_same_content_are_one_file(store: DirectorySpillStore, folder: Path) -> None:
    content = b"z" * 100_000
    assert len({(await store.save(OWNER, content)).locator for _ in range(1000)}) == 1
    assert len(files(folder)) == 1


async def test_a_sweep_of_a_store_never_used_removes_nothing(store: DirectorySpillStore) -> None:
    assert await store.sweep() == 0
