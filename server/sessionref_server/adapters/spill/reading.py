"""Reading saved transcripts back, whole as they were saved or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TypeAlias

from sessionref_server.adapters.spill.private_folder import SUFFIX, open_file, open_folder, open_root
from sessionref_server.adapters.spill.steady_clock import SteadyClock
from sessionref_server.domain.errors import DamagedSessionError, SourceUnavailableError, UnknownSessionError
from sessionref_server.domain.session import SessionId

TOKEN_CHARACTERS = 64
READ_CHUNK_BYTES = 1024 * 1024
MAX_VERIFIED_FILES = 256
_HEX_DIGITS = frozenset("0123456789abcdef")
_NOT_THERE = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO})

_Identity: TypeAlias = tuple[int, int, int, int, int]


class VerifiedReader:
    """Reads pages. The whole content is checked at the first page and whenever the file has been touched since."""

    def __init__(self, folder: Path, expiry_ns: int, clock: SteadyClock) -> None:
        self._folder = folder
        self._expiry_ns = expiry_ns
        self._clock = clock
        self._verified: OrderedDict[str, _Identity] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, owner: SessionId, place: tuple[str, str], offset_bytes: int, limit_bytes: int) -> tuple[bytes, int]:
        """One page and the total size of the file at ``place``: folder name of the owner, and token. Raises a ReadFailedError."""
        owner_name, token = place
        if len(token) != TOKEN_CHARACTERS or not _HEX_DIGITS.issuperset(token):
            raise _unknown(owner)
        try:
            with contextlib.ExitStack() as stack:
                root = stack.enter_context(open_root(self._folder))
                folder = stack.enter_context(open_folder(root, owner_name, create=False))
                descriptor = stack.enter_context(open_file(folder, token + SUFFIX))
                if self._clock.now_ns() - os.fstat(descriptor).st_mtime_ns >= self._expiry_ns:
                    raise _unknown(owner)
                self._verify(descriptor, token, owner)
                return _read_page(descriptor, offset_bytes, limit_bytes), os.fstat(descriptor).st_size
        except OSError as error:
            if error.errno in _NOT_THERE:
                raise _unknown(owner) from None
            raise SourceUnavailableError("the snapshot store cannot be read", session_id=owner, source="spill") from None

    def _verify(self, descriptor: int, token: str, owner: SessionId) -> None:
        identity = _identity(descriptor)
        with self._lock:
            if self._verified.get(token) == identity:
                self._verified.move_to_end(token)
                return
        digest = hashlib.sha256()
        offset = 0
        while chunk := os.pread(descriptor, READ_CHUNK_BYTES, offset):
            digest.update(chunk)
            offset += len(chunk)
        if digest.hexdigest()[:32] != token[32:]:
            raise DamagedSessionError("the snapshot is not what was saved", session_id=owner, source="spill")
        with self._lock:
            self._verified[token] = identity
            if len(self._verified) > MAX_VERIFIED_FILES:
                self._verified.popitem(last=False)


def refresh_file(folder: Path, place: tuple[str, str], now_ns: int, max_age_ns: int) -> bool:
    """Give an existing file a new life, unless it is older than ``max_age_ns``. Returns whether it exists and got one."""
    owner_name, token = place
    try:
        with (
            open_root(folder) as root,
            open_folder(root, owner_name, create=False) as owner_folder,
            open_file(owner_folder, token + SUFFIX) as descriptor,
        ):
            if now_ns - os.fstat(descriptor).st_mtime_ns > max_age_ns:
                return False
            os.utime(descriptor, ns=(now_ns, now_ns))
    except OSError:
        return False
    return True


def _identity(descriptor: int) -> _Identity:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read_page(descriptor: int, offset_bytes: int, limit_bytes: int) -> bytes:
    if offset_bytes >= os.fstat(descriptor).st_size:
        return b""  # the system refuses offsets near the end of its numbers
    page = bytearray()
    while len(page) < limit_bytes and (chunk := os.pread(descriptor, limit_bytes - len(page), offset_bytes + len(page))):
        page += chunk
    return bytes(page)


def _unknown(owner: SessionId) -> UnknownSessionError:
    return UnknownSessionError("the locator is unknown or has expired", session_id=owner)
