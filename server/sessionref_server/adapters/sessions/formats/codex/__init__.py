"""OpenAI Codex CLI: rollouts, JSON lines of an envelope ``{timestamp, type, payload}``, plain or as one zstd frame."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sessionref_server.adapters.sessions.formats.codex import places, titles
from sessionref_server.adapters.sessions.formats.codex.head import CodexHeadFold
from sessionref_server.adapters.sessions.formats.codex.surface import CodexSurfaceFold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from sessionref_server.adapters.sessions.log_format import LogFile

__all__ = ["CodexFormat"]

_SQLITE_HOME = "CODEX_SQLITE_HOME"


class CodexFormat:
    """Codex rollouts. The name database is looked for in ``$CODEX_SQLITE_HOME`` of the given environment, else in the root."""

    name = "codex"
    version = 1
    prefixed_ids = True
    lists_subagents = False

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """The Codex home: ``$CODEX_HOME``, else ``~/.codex``."""
        return places.default_roots(environment, home)

    def discover(self, root: Path) -> Iterator[LogFile]:
        """Logs below a Codex home, its ``sessions`` folder, or any folder of logs; one for each session."""
        return places.discover(root)

    def head_fold(self, file: LogFile) -> CodexHeadFold:
        """A fresh fold for a head."""
        return CodexHeadFold(file)

    def surface_fold(self, file: LogFile) -> CodexSurfaceFold:
        """A fresh fold for a surface."""
        return CodexSurfaceFold(file)

    def titles(self, root: Path) -> Mapping[str, str]:
        """Names people gave to sessions, and titles Codex made."""
        return titles.read_titles(root, self._environment.get(_SQLITE_HOME))

    def title_files(self, root: Path) -> Sequence[Path]:
        """Files that hold the titles."""
        return titles.title_files(root, self._environment.get(_SQLITE_HOME))
