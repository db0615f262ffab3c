"""Ends the connections of a server that stops, before gRPC does.

A call that reaches gRPC while it shuts down ends as CANCELLED, which its caller takes for its own doing and does not try again.
A caller whose connection breaks gets UNAVAILABLE, and that is true.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterator
from contextlib import suppress

_OPEN_FILES = "/dev/fd"
_UNIX = "unix:"


def hang_up(addresses: Collection[str]) -> int:
    """Break every connection that was made to one of these listening addresses of this process.

    Args:
        addresses: ``unix:/path`` or ``host:port``, as the server listens.

    Returns:
        How many connections there were. None can be found where the system does not list open files.
    """
    listening = {_place(address) for address in addresses}
    ended = 0
    for connection in _sockets():
        with connection, suppress(OSError):
            if _is_listening(connection) or _own_place(connection) not in listening:
                continue
            connection.shutdown(socket.SHUT_RDWR)
            ended += 1
    return ended


def _sockets() -> Iterator[socket.socket]:
    """Every stream socket of this process, by a descriptor of its own: the original may be closed at any time."""
    try:
        names = os.listdir(_OPEN_FILES)  # noqa: PTH208 - names of numbers
    except OSError:
        return
    for name in names:
        try:
            copy = os.dup(int(name))
        except (OSError, ValueError):
            continue
        try:
            found = socket.socket(fileno=copy)
        except OSError:
            os.close(copy)
            continue
        yield found


def _is_listening(connection: socket.socket) -> bool:
    return bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _place(address: str) -> str | int:
    """What tells a listening address from all others of this process: the path, or the port."""
    if address.startswith(_UNIX):
        return address.removeprefix(_UNIX)
    return int(address.rpartition(":")[2])


def _own_place(connection: socket.socket) -> str | int | None:
    """The same of a connection; one that was accepted has the name it was made to."""
    name = connection.getsockname()
    if connection.family in {socket.AF_INET, socket.AF_INET6}:
        return int(name[1])
    return name if isinstance(name, str) else None
