"""Logs of Claude Code: JSON lines that form a tree, one file a session.

The format is internal to Claude Code and undocumented; what is known of it is public observation. Which text a person typed is in
``injected``, which turns are live in ``tree`` and ``segments``, where the logs are in ``places``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sessionref_server.adapters.sessions.formats.claude_code import places
from sessionref_server.adapters.sessions.formats.claude_code.head import ClaudeHeadFold
from sessionref_server.adapters.sessions.formats.claude_code.surface import ClaudeSurfaceFold
from sessionref_server.adapters.sessions.log_format import LogFile

__all__ = ["ClaudeCodeFormat"]


class ClaudeCodeFormat:
    """The format of Claude Code and of what embeds it (Cowork, the Agent SDK)."""

    name = "claude-code"
    version = 1
    prefixed_ids = True
    lists_subagents = False

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Usual projects folders."""
        return places.default_roots(environment, home)

    def discover(self, root: Path) -> Iterator[LogFile]:
        """Sessions and subagents below a projects folder, or a folder that holds logs directly."""
        return places.discover(root)

    def head_fold(self, file: LogFile) -> ClaudeHeadFold:
        """A fresh fold for a head."""
        return ClaudeHeadFold(places.native_id(file.path), file.parent_native_id, is_subagent=file.is_subagent)

    def surface_fold(self, file: LogFile) -> ClaudeSurfaceFold:
        """A fresh fold for a surface."""
        return ClaudeSurfaceFold(places.native_id(file.path), is_subagent=file.is_subagent)

    def titles(self, root: Path) -> Mapping[str, str]:  # noqa: ARG002 - titles stand in the logs; the index beside them is stale
        """None: every title stands in the log itself."""
        return {}

    def title_files(self, root: Path) -> Sequence[Path]:  # noqa: ARG002 - as above
        """None."""
        return ()
