"""What a notification says, whatever system it came from."""

from __future__ import annotations

from enum import Enum


class ChangeKind(Enum):
    """What happened to a path. A renamed one is deleted under its old name and added under its new one."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


LogChange = tuple[ChangeKind, str]
"""A change and the path it happened to, below a root as it was given."""
