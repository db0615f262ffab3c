"""Folders and files that only this user can enter, opened in a way that no planted link can divert.

Every path is one name relative to an open descriptor, and no last component is ever followed when it is a link.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

WRITE_CHUNK_BYTES = 1024 * 1024
SUFFIX = ".md"
TEMPORARY_SUFFIX = ".tmp"
_NO_ANONYMOUS_FILES = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A regular file found in a folder."""

    name: str
    size_bytes: int
    stamp_ns: int


@contextlib.contextmanager
def open_root(path: Path) -> Generator[int]:
    """Open the store's own folder, made with mode 0700 when it is missing. Raises OSError when it is a link, is no folder or
    belongs to another user.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700, parents=True)
    with _opened_folder(os.fspath(path), None) as descriptor:
        yield descriptor


@contextlib.contextmanager
def open_folder(root: int, name: str, *, create: bool) -> Generator[int]:
    """Open the folder ``name`` in ``root`` under the same conditions. FileNotFoundError when it is missing and not made."""
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=root)
            os.fsync(root)
    with _opened_folder(name, root) as descriptor:
        yield descriptor


@contextlib.contextmanager
def _opened_folder(path: str, parent: int | None) -> Generator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    with _closing(descriptor):
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "the folder belongs to another user")
        if stat.S_IMODE(status.st_mode) != stat.S_IRWXU:
            os.fchmod(descriptor, stat.S_IRWXU)
        yield descriptor


def list_folders(root: int) -> list[str]:
    """Names of the folders in ``root``."""
    with os.scandir(root) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def list_files(folder: int) -> list[StoredFile]:
    """The regular files in a folder. One that goes away meanwhile is left out."""
    files: list[StoredFile] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    files.append(StoredFile(name=entry.name, size_bytes=status.st_size, stamp_ns=status.st_mtime_ns))
    return files


@contextlib.contextmanager
def open_file(folder: int, name: str) -> Generator[int]:
    """Open a regular file of ours for reading. Raises OSError otherwise."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with _closing(descriptor):
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise FileNotFoundError(errno.ENOENT, "not a file of ours")
        yield descriptor


def remove_file(folder: int, name: str) -> None:
    """Remove a file; one that is gone already is fine."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def remove_abandoned(folder: int, name: str) -> bool:
    """Remove a temporary file unless its writer, in whatever process, still holds it."""
    try:
        with open_file(folder, name) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_file(folder, name)
    except OSError:
        return False
    return True


def publish_file(folder: int, name: str, content: bytes, stamp_ns: int, wanted: Callable[[], bool]) -> bool:
    """Write ``content`` so that ``name`` appears whole, durable and new, or not at all.

    Args:
        folder: open folder.
        name: name to appear; an existing one is never replaced.
        content: what to write.
        stamp_ns: modification time to give the file.
        wanted: asked between chunks and just before the file appears.

    Returns:
        Whether it appeared; ``False`` once it is not wanted. When it stops being wanted during the last step, it is for the
        caller to remove it.

    Raises:
        OSError: storage refused; nothing is left behind.
    """
    with _unnamed_file(folder) as (descriptor, link):
        os.fchmod(descriptor, stat.S_IRUSR | stat.S_IWUSR)
        view = memoryview(content)
        while view:
            if not wanted():
                return False
            view = view[os.write(descriptor, view[:WRITE_CHUNK_BYTES]) :]
        os.utime(descriptor, ns=(stamp_ns, stamp_ns))
        os.fsync(descriptor)
        if not wanted():
            return False
        link(name)
    try:
        _sync_folder(folder)
    except OSError:
        remove_file(folder, name)
        raise
    return True


@contextlib.contextmanager
def _unnamed_file(folder: int) -> Generator[tuple[int, Callable[[str], None]]]:
    """A file without a name, and how to give it one; where the system has no such files, one with a private name."""
    descriptor = _open_anonymous(folder)
    if descriptor is None:
        with _temporary_file(folder) as opened:
            yield opened
        return

    def link(name: str) -> None:
        # With a folder descriptor, os.link follows the symbolic link in /proc; without, it would link the link itself (EXDEV).
        os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder, follow_symlinks=True)

    with _closing(descriptor):
        yield descriptor, link


def _open_anonymous(folder: int) -> int | None:
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir("/proc/self/fd"):  # noqa: PTH112 - a fixed name, on every save
        return None
    try:
        return os.open(".", flag | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_ANONYMOUS_FILES:
            return None
        raise


@contextlib.contextmanager
def _temporary_file(folder: int) -> Generator[tuple[int, Callable[[str], None]]]:
    temporary = f".{secrets.token_hex(16)}{TEMPORARY_SUFFIX}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with _closing(descriptor):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor, lambda name: os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        # Should this fail too, the sweep finds the file: nobody holds it any more.
        with contextlib.suppress(OSError):
            remove_file(folder, temporary)


def _sync_folder(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has nothing to sync there
            raise


@contextlib.contextmanager
def _closing(descriptor: int) -> Generator[None]:
    try:
        yield
    finally:
        # The descriptor is gone whatever close says, and all that mattered was synced before.
        with contextlib.suppress(OSError):
            os.close(descriptor)
