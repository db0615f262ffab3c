"""Logs long enough that Prepare has to cut them and to save the rest."""

from __future__ import annotations

from pathlib import Path

from rpc.agent_logs import dsh_lines

BUDGET = {"prepare__max_reference_bytes": "20000"}
"""Flags under which the logs written here are cut."""
BUDGET_FLAG = "--set=prepare.max_reference_bytes=20000"


def write_dsh_log(root: Path, session_id: str, *, messages: int = 150, message_bytes: int = 2000) -> Path:
    """Write a log of about ``messages`` times ``message_bytes``; returns its path."""
    folder = root / "--work-app--" / session_id
    folder.mkdir(parents=True)
    path = folder / "session.v4.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in dsh_lines(session_id, said(messages, message_bytes))))
    return path


def said(messages: int, message_bytes: int) -> list[tuple[str, str]]:
    """Numbered messages, so that each is recognised when it comes back."""
    filling = "lorem < ipsum " * (message_bytes // 14)
    return [("user" if number % 2 == 0 else "assistant", f"{number} {filling}") for number in range(messages)]
