"""Both ways of watching tell the same story; Linux's own is the one used there."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest
from sessionref_server.adapters.sessions.log_change import ChangeKind, LogChange
from sessionref_server.adapters.sessions.log_watch import TreeWatch
from sessionref_server.adapters.sessions.log_watchfiles import WatchfilesWatch

PATIENCE_SECONDS = 10.0

MakeWatch = Callable[[list[str]], TreeWatch]

ways: list[MakeWatch] = [WatchfilesWatch]
if sys.platform == "linux":
    from sessionref_server.adapters.sessions.log_inotify import InotifyWatch

    ways.append(InotifyWatch)

each_way = pytest.mark.parametrize("way", ways, ids=lambda way: way.__name__)


class Watched:
    """What a watch has told."""

    def __init__(self) -> None:
        self.told: Queue[list[LogChange] | None] = Queue()

    def until(self, *expected: LogChange) -> set[LogChange]:
        """Everything told until the expected changes were; fails when they are not."""
        found: set[LogChange] = set()
        while not found.issuperset(expected):
            found.update(self.told.get(timeout=PATIENCE_SECONDS) or ())
        return found


@contextmanager
def watching(way: MakeWatch, root: Path) -> Iterator[Watched]:
    watch, watched = way([str(root)]), Watched()

    def run() -> None:
        for changes in watch.changes():
            watched.told.put(None if changes is None else list(changes))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert watched.told.get(timeout=PATIENCE_SECONDS) is None
        yield watched
    finally:
        watch.stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


@each_way
def test_changes_in_every_folder_are_told_with_their_kind(way: MakeWatch, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    log = tmp_path / "a" / "b" / "log"
    with watching(way, tmp_path) as watched:
        log.write_text("one")
        watched.until((ChangeKind.ADDED, str(log)))
        with log.open("a") as file:
            file.write("two")
        watched.until((ChangeKind.MODIFIED, str(log)))
        log.rename(tmp_path / "moved")
        watched.until((ChangeKind.DELETED, str(log)), (ChangeKind.ADDED, str(tmp_path / "moved")))
        (tmp_path / "moved").unlink()
        watched.until((ChangeKind.DELETED, str(tmp_path / "moved")))


@each_way
def test_a_folder_made_later_is_watched_too(way: MakeWatch, tmp_path: Path) -> None:
    with watching(way, tmp_path) as watched:
        (tmp_path / "new").mkdir()
        watched.until((ChangeKind.ADDED, str(tmp_path / "new")))
        (tmp_path / "new" / "log").write_text("one")
        watched.until((ChangeKind.ADDED, str(tmp_path / "new" / "log")))


@each_way
def test_a_folder_that_moved_is_told_by_its_new_name(way: MakeWatch, tmp_path: Path) -> None:
    (tmp_path / "old" / "deep").mkdir(parents=True)
    with watching(way, tmp_path) as watched:
        (tmp_path / "old").rename(tmp_path / "new")
        watched.until((ChangeKind.DELETED, str(tmp_path / "old")), (ChangeKind.ADDED, str(tmp_path / "new")))
        (tmp_path / "new" / "deep" / "log").write_text("one")
        found = watched.until((ChangeKind.ADDED, str(tmp_path / "new" / "deep" / "log")))
    assert not [path for _, path in found if path.startswith(str(tmp_path / "old"))]


@each_way
def test_a_root_that_is_a_link_is_told_by_its_own_name(way: MakeWatch, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with watching(way, tmp_path / "link") as watched:
        (tmp_path / "real" / "log").write_text("one")
        watched.until((ChangeKind.ADDED, str(tmp_path / "link" / "log")))


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's own notifications")
def test_no_link_below_a_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    with watching(InotifyWatch, tmp_path / "root") as watched:
        (tmp_path / "outside" / "log").write_text("one")
        (tmp_path / "root" / "end").write_text("one")
        found = watched.until((ChangeKind.ADDED, str(tmp_path / "root" / "end")))
    assert {path for _, path in found} == {str(tmp_path / "root" / "end")}


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's own notifications")
def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    for _ in range(3):
        with watching(InotifyWatch, tmp_path):
            pass
    assert set(Path("/proc/self/fd").iterdir()) <= before


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's own notifications")
def test_a_name_that_is_no_text_is_told_as_the_system_knows_it(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    with watching(InotifyWatch, tmp_path) as watched:
        Path(odd).write_text("one")
        watched.until((ChangeKind.ADDED, odd))
