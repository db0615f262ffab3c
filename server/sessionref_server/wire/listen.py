"""Listening addresses: private Unix sockets and loopback TCP. Anything else is refused until it can be secured."""

from __future__ import annotations

import ipaddress
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from sessionref_server.domain.errors import InvalidConfigError

_KEY = "listen.addresses"
_UNIX = "unix:"
_MAX_SOCKET_PATH_BYTES = 103


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One address to bind. ``socket_path`` is set for a Unix socket."""

    address: str
    socket_path: Path | None = None


def parse_listener(text: str) -> Listener:
    """Read ``unix:/path``, ``unix:///path`` or ``host:port``.

    Raises:
        InvalidConfigError: the address is malformed, or not a loopback one.
    """
    if text.startswith(_UNIX):
        path = Path(text.removeprefix(_UNIX).removeprefix("//"))
        if not path.is_absolute() or len(os.fsencode(path)) > _MAX_SOCKET_PATH_BYTES:
            message = f"{_KEY}: {text!r} needs an absolute path of at most {_MAX_SOCKET_PATH_BYTES} bytes"
            raise InvalidConfigError(message, key=_KEY)
        return Listener(address=f"{_UNIX}{path}", socket_path=path)
    host, separator, port = text.rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004 - the largest port
        raise InvalidConfigError(f"{_KEY}: {text!r} is neither unix:/path nor host:port", key=_KEY)
    if not _is_loopback(host):
        message = (
            f"{_KEY}: {text!r} is not a loopback address. Sessions are private: without TLS and identity this server listens on "
            "127.0.0.1, [::1], localhost or a Unix socket only"
        )
        raise InvalidConfigError(message, key=_KEY)
    return Listener(address=text)


def make_room(path: Path) -> None:
    """Prepare a private folder for a socket, and remove a socket nobody answers on.

    Raises:
        InvalidConfigError: a server already answers there, the path is something else, or the folder is not ours alone.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = path.parent.stat()
    if folder.st_uid != os.geteuid() or folder.st_mode & 0o022:
        raise InvalidConfigError(f"{_KEY}: folder {path.parent} must belong to you and be writable by you only", key=_KEY)
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise InvalidConfigError(f"{_KEY}: {path} exists and is no socket", key=_KEY)
    if _answers(path):
        raise InvalidConfigError(f"{_KEY}: a server already listens on {path}; stop it, or choose another address", key=_KEY)
    path.unlink(missing_ok=True)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except (ConnectionError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
