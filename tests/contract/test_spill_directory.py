"""The directory store: the contract, and what is its own: privacy, integrity, links in the way."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from contract.spill_store import OWNER, SPILL_STORE_CONTRACT, Check
from fakes.memory_spill_store import MemorySpillStore
from sessionref_server.adapters.spill.directory import DirectorySpillStore
from sessionref_server.domain.errors import DamagedSessionError, UnknownSessionError
from sessionref_server.domain.ports import SpillFailedError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spill"


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[DirectorySpillStore]:
    store = DirectorySpillStore(folder)
    yield store
    await store.close()


def modes(folder: Path) -> set[tuple[bool, int]]:
    """Whether it is a folder, and its permissions, of everything there."""
    return {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in [folder, *folder.rglob("*")]}


def make_folder(path: Path, mode: int) -> Path:
    path.mkdir()
    path.chmod(mode)
    return path


def make_link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def only_folder(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize("check", SPILL_STORE_CONTRACT, ids=lambda check: check.__name__)
async def test_directory_store_keeps_the_contract(store: DirectorySpillStore, check: Check) -> None:
    await check(store)


@pytest.mark.parametrize("check", SPILL_STORE_CONTRACT, ids=lambda check: check.__name__)
async def test_directory_store_without_anonymous_files_keeps_the_contract(
    store: DirectorySpillStore, check: Check, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    await check(store)
    assert {path.suffix for path in files(folder)} == {".md"}


@pytest.mark.parametrize("check", SPILL_STORE_CONTRACT, ids=lambda check: check.__name__)
async def test_memory_store_keeps_the_contract(check: Check) -> None:
    await check(MemorySpillStore())


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
async def test_folders_are_0700_and_files_0600_whatever_the_umask(store: DirectorySpillStore, folder: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        await store.save(OWNER, b"private")
    finally:
        os.umask(before)
    assert modes(folder) == {(True, 0o700), (False, 0o600)}


async def test_an_open_folder_of_ours_is_closed(store: DirectorySpillStore, folder: Path) -> None:
    make_folder(folder, 0o755)
    await store.save(OWNER, b"private")
    assert modes(folder) == {(True, 0o700), (False, 0o600)}


async def test_names_on_disk_say_nothing_of_the_owner(store: DirectorySpillStore, folder: Path) -> None:
    await store.save(OWNER, b"private")
    assert OWNER not in "".join(map(str, files(folder)))


async def test_a_folder_replaced_by_a_link_is_refused(store: DirectorySpillStore, folder: Path, tmp_path: Path) -> None:
    elsewhere = make_folder(tmp_path / "elsewhere", 0o700)
    make_link(folder, elsewhere)
    with pytest.raises(SpillFailedError):
        await store.save(OWNER, b"private")
    assert files(elsewhere) == []


async def test_an_owner_folder_replaced_by_a_link_is_refused_and_not_read(
    store: DirectorySpillStore, folder: Path, tmp_path: Path
) -> None:
    ticket = await store.save(OWNER, b"private")
    owner_folder = only_folder(folder)
    owner_folder.rename(tmp_path / "elsewhere")
    owner_folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SpillFailedError):
        await store.save(OWNER, b"more")
    with pytest.raises(UnknownSessionError):
        await store.read(ticket.locator, OWNER, 0, 10)


async def test_a_link_in_place_of_the_file_is_not_followed(store: DirectorySpillStore, folder: Path, tmp_path: Path) -> None:
    ticket = await store.save(OWNER, b"private")
    (file,) = files(folder)
    file.rename(tmp_path / "moved")
    file.symlink_to(tmp_path / "moved")
    with pytest.raises(UnknownSessionError):
        await store.read(ticket.locator, OWNER, 0, 10)


async def test_a_hard_link_to_other_content_is_damage(store: DirectorySpillStore, folder: Path, tmp_path: Path) -> None:
    ticket = await store.save(OWNER, b"private")
    (file,) = files(folder)
    file.unlink()
    (tmp_path / "other").write_bytes(b"another")
    file.hardlink_to(tmp_path / "other")
    with pytest.raises(DamagedSessionError):
        await store.read(ticket.locator, OWNER, 0, 10)


async def test_a_pipe_in_place_of_the_file_is_unknown(store: DirectorySpillStore, folder: Path) -> None:
    ticket = await store.save(OWNER, b"private")
    (file,) = files(folder)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UnknownSessionError):
        await store.read(ticket.locator, OWNER, 0, 10)


@pytest.mark.parametrize("planted", ["file", "link"])
async def test_an_existing_name_is_never_replaced(
    store: DirectorySpillStore, folder: Path, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda size: "ab" * size)
    await store.save(OWNER, b"same name")
    (file,) = files(folder)
    file.unlink()
    victim = folder.parent / "victim"
    victim.write_bytes(b"untouched")
    if planted == "link":
        file.symlink_to(victim)
    else:
        file.write_bytes(b"untouched")
    with pytest.raises(SpillFailedError, match="EEXIST"):
        await DirectorySpillStore(folder).save(OWNER, b"same name")
    assert file.read_bytes() == victim.read_bytes() == b"untouched"


@pytest.mark.parametrize("read_before", [True, False])
async def test_a_flipped_byte_is_damage(store: DirectorySpillStore, folder: Path, read_before: bool) -> None:  # noqa: FBT001
    ticket = await store.save(OWNER, b"x" * 100_000)
    if read_before:
        await store.read(ticket.locator, OWNER, 0, 10)
    (file,) = files(folder)
    with file.open("r+b") as opened:
        opened.seek(50_000)
        opened.write(b"y")
    with pytest.raises(DamagedSessionError):
        await store.read(ticket.locator, OWNER, 0, 10)


@pytest.mark.parametrize("change", ["cut", "grown"])
async def test_another_length_is_damage(store: DirectorySpillStore, folder: Path, change: str) -> None:
    ticket = await store.save(OWNER, b"x" * 1000)
    (file,) = files(folder)
    file.write_bytes(b"x" * (999 if change == "cut" else 1001))
    with pytest.raises(DamagedSessionError):
        await store.read(ticket.locator, OWNER, 0, 10)
