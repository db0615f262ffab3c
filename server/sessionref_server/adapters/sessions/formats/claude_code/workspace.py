"""The working directory of a session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(slots=True)
class Workspace:
    """The directory a session was started in.

    Each record carries the directory of its moment, which follows every ``cd``; the first one outside a subagent's records is
    where the person started the session. A ``relocated`` record says that the session itself has moved; the last one wins. The
    folder name is never used: it cannot be turned back into a path.
    """

    first: str | None = None
    first_of_subagent: str | None = None
    relocated: str | None = None

    @property
    def settled(self) -> bool:
        """Whether ordinary records can no longer change it."""
        return self.first is not None

    @property
    def cwd(self) -> str | None:
        """The directory as recorded; ``None`` when no record names one."""
        return self.relocated or self.first or self.first_of_subagent

    def copy(self) -> Workspace:
        """An independent copy."""
        return replace(self)

    def note(self, record: dict[str, Any]) -> None:
        """Look at the directory of an ordinary record."""
        cwd = record.get("cwd")
        if type(cwd) is not str or not cwd:
            return
        if record.get("isSidechain") is True:
            self.first_of_subagent = self.first_of_subagent or cwd
        else:
            self.first = self.first or cwd

    def relocate(self, record: dict[str, Any]) -> None:
        """Take a ``relocated`` record."""
        cwd = record.get("relocatedCwd")
        if type(cwd) is str and cwd:
            self.relocated = cwd
