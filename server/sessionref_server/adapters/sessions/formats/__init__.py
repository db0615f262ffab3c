"""The log formats: one package each, and one row in the table here."""

from __future__ import annotations

from collections.abc import Mapping

from sessionref_server.adapters.sessions.log_format import LogFormat


def log_formats() -> Mapping[str, LogFormat]:
    """Every format by its name on the wire, in the order in which sources are shown.

    Imported when asked for: a worker process loads only the format it reads.
    """
    from sessionref_server.adapters.sessions.formats.claude_code import ClaudeCodeFormat
    from sessionref_server.adapters.sessions.formats.codex import CodexFormat
    from sessionref_server.adapters.sessions.formats.dsh import DshFormat

    table: tuple[LogFormat, ...] = (DshFormat(), ClaudeCodeFormat(), CodexFormat())
    return {log_format.name: log_format for log_format in table}
