"""Where the service listens, and how an address is written. Standard library only: the server reads its default from here too."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

ADDRESS_VARIABLE = "SESSIONREF_ADDRESS"
_FORMS = "unix:/path, unix:///path or host:port"


def default_address() -> str:
    """The address used when none is given: ``SESSIONREF_ADDRESS``, else a Unix socket in the user's runtime directory.

    Raises:
        PermissionError: the socket's directory would be in the shared temporary directory and belongs to somebody else.
    """
    return os.environ.get(ADDRESS_VARIABLE) or f"unix:{default_socket_path()}"


def default_socket_path() -> Path:
    """``$XDG_RUNTIME_DIR/sessionref/sessionref.sock``, else ``<temporary directory>/sessionref-<uid>/sessionref.sock``.

    Raises:
        PermissionError: as in ``default_address``.
    """
    runtime_directory = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if runtime_directory.is_absolute():  # the XDG specification: a path that is not absolute is ignored
        return runtime_directory / "sessionref" / "sessionref.sock"
    directory = Path(tempfile.gettempdir()) / f"sessionref-{os.getuid()}"
    _refuse_foreign(directory)
    return directory / "sessionref.sock"


def _refuse_foreign(directory: Path) -> None:
    """In a directory everybody writes to, another user may have made ours first, to answer in the server's place."""
    try:
        found = directory.lstat()
    except FileNotFoundError:
        return
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{directory} is not a directory of this user; set XDG_RUNTIME_DIR or {ADDRESS_VARIABLE}")


def grpc_target(address: str) -> str:
    """The gRPC name of an address.

    Raises:
        ValueError: the address has none of the forms ``unix:/path``, ``unix:///path``, ``host:port``.
    """
    if address.startswith("unix:"):
        path = address.removeprefix("unix:").removeprefix("//")
        if not path.startswith("/"):
            raise ValueError(f"address {address!r}: the path of a Unix socket must be absolute; write {_FORMS}")
        return f"unix:{quote(path)}"
    host, separator, port = address.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    is_port = port.isascii() and port.isdecimal()
    if not (host and separator and is_port) or "/" in host or (":" in host and not is_bracketed):
        raise ValueError(f"address {address!r} is not understood; write {_FORMS}")
    return address
