"""Logs of DeepSeek Harness (dsh), versions 0 to 4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sessionref_server.adapters.sessions.formats.dsh.discover import default_root, discover_logs
from sessionref_server.adapters.sessions.formats.dsh.fold import CanonicalSurfaceFold, LooseSurfaceFold, surface_fold_of
from sessionref_server.adapters.sessions.formats.dsh.head import HeadFold
from sessionref_server.adapters.sessions.log_format import LogFile


class DshFormat:
    """Everything about one session is in its log: titles, labels, parent."""

    name = "dsh"
    version = 1
    prefixed_ids = False
    lists_subagents = True

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """``$DSH_HOME/sessions``, else ``~/.dsh/sessions``."""
        return [default_root(environment, home)]

    def discover(self, root: Path) -> Iterator[LogFile]:
        """The newest generation of each session's log, and flat logs in the root. Raises OSError when the root is unreadable."""
        return discover_logs(root)

    def head_fold(self, file: LogFile) -> HeadFold:
        """A fresh fold for a head."""
        return HeadFold(file)

    def surface_fold(self, file: LogFile) -> CanonicalSurfaceFold | LooseSurfaceFold:
        """A fresh fold for a surface."""
        return surface_fold_of(file.path)

    def titles(self, root: Path) -> Mapping[str, str]:
        """None outside the logs: the agent's own projection cache can lag behind them."""
        del root
        return {}

    def title_files(self, root: Path) -> Sequence[Path]:
        """None."""
        del root
        return ()
