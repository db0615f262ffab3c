r"""When two recorded working directories are the same workspace.

A recorded path is text with its own flavour, POSIX or Windows, written perhaps on another machine: the rules of the host that
reads it never apply. POSIX paths are equal when equal as recorded; Windows paths when equal up to case, kind of separator,
separators at the end and the ``\\?\`` prefix. That two existing paths lead to the same directory is for the service to find
out.
"""

from __future__ import annotations

import string
from collections.abc import Callable

_VERBATIM_PREFIX = "\\\\?\\"


def workspace_key(cwd: str) -> str:
    """A string that is equal for two paths exactly when their text names the same directory."""
    if not _is_windows_path(cwd):
        return cwd
    path = cwd.replace("/", "\\").lower().removeprefix(_VERBATIM_PREFIX)
    return "\\\\?" + path.rstrip("\\")


def same_workspace(recorded: str | None, target: str | None, same_directory: Callable[[str, str], bool] | None = None) -> bool:
    """Whether a session recorded in ``recorded`` belongs to the workspace of the target.

    Args:
        recorded: Working directory of the session, as recorded; ``None`` when none was.
        target: Working directory of the target.
        same_directory: Says whether both paths exist here and are one directory; asked only when the texts differ.
    """
    if recorded is None or target is None:
        return False
    if recorded == target or workspace_key(recorded) == workspace_key(target):
        return True
    return same_directory is not None and same_directory(recorded, target)


def _is_windows_path(path: str) -> bool:
    drive = path[:1] in string.ascii_letters and path[1:2] == ":" and path[2:3] in {"", "\\", "/"}
    return (bool(path) and drive) or path.startswith("\\\\")
