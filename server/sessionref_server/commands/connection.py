"""The connection of a command to its server, and the target it speaks for."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from sessionref_client import ModelRoute, SyncClient, Target, connect

from sessionref_server.commands.failure import UsageError


def open_client(arguments: argparse.Namespace) -> SyncClient:
    """A client for ``--address``, or the default one.

    Raises:
        UsageError: the address makes no sense.
        PermissionError: the default socket's folder belongs to somebody else.
    """
    try:
        return connect(arguments.address, timeout_seconds=arguments.timeout)
    except ValueError as error:
        raise UsageError(str(error)) from error


def target_of(arguments: argparse.Namespace, route: ModelRoute | None = None) -> Target:
    """The session being typed into, in ``--cwd`` or the current folder."""
    return Target(session_id=arguments.target, cwd=_folder(arguments.cwd), route=route)


def _folder(named: str | None) -> str | None:
    """A folder that exists is made absolute. Any other is taken as recorded: it may be one of another machine."""
    if named is not None:
        path = Path(named).expanduser()
        return str(path.absolute()) if path.is_dir() else named
    try:
        current = os.getcwd()  # noqa: PTH109 - the text agents record, not a path to work with
        current.encode()
    except (FileNotFoundError, UnicodeEncodeError):  # deleted, or not expressible: no session can have recorded it
        return None
    return current
