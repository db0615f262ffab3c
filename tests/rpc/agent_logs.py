"""Small logs of every agent, as lines without line ends, for tests that damage or place them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Said = tuple[str, str]
"""Role and text."""

START_MS = 1_790_000_000_000


def line(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


# --- DeepSeek Harness --------------------------------------------------------------------------------------------------------


def dsh_header(session_id: str, **fields: Any) -> bytes:
    header = {"type": "session", "version": 0, "id": session_id, "createdAt": START_MS, "delegationDepth": 0}
    return line({**header, "cwd": "/work/app", **fields})


def dsh_user(seq: int, text: str, **source: Any) -> bytes:
    data = {"id": f"m{seq}", "role": "user", "content": [{"type": "text", "text": text}], "source": source or {"kind": "user"}}
    return line({"type": "user/message", "seq": seq, "time": START_MS + 1000 * seq, "surfaceOp": "append", "data": data})


def dsh_assistant(seq: int, *blocks: str | dict[str, Any]) -> bytes:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    message = {
        "id": f"m{seq}",
        "role": "assistant",
        "content": content,
        "source": {"kind": "model", "provider": "p", "model": "m"},
    }
    data = {"turn": 1, "step": 1, "message": message}
    return line({"type": "assistant/message", "seq": seq, "time": START_MS + 1000 * seq, "surfaceOp": "append", "data": data})


def dsh_tool_result(seq: int, text: str) -> bytes:
    message = {"role": "tool", "callId": f"c{seq}", "content": [{"type": "text", "text": text}]}
    data = {"turn": 1, "step": 1, "message": message}
    return line({"type": "tool/result", "seq": seq, "time": START_MS + 1000 * seq, "surfaceOp": "append", "data": data})


def dsh_checkpoint(seq: int, text: str, start: int, end: int) -> bytes:
    source = {"kind": "plugin", "plugin": "compact", "compactionId": f"c{seq}"}
    data = {"id": f"m{seq}", "role": "user", "content": [{"type": "text", "text": text}], "source": source}
    operation = {"op": "replace", "start": start, "end": end}
    replaced = list(range(start, end + 1))
    row = {"type": "user/message", "seq": seq, "time": START_MS + 1000 * seq, "surfaceOp": operation, "data": data}
    return line({**row, "sourceEventSeqs": replaced})


def dsh_title(seq: int, title: str) -> bytes:
    data = {"title": title, "messageSeqs": [], "source": {"kind": "user"}}
    return line({"type": "session/title", "seq": seq, "time": START_MS + 1000 * seq, "data": data})


def dsh_lines(session_id: str, said: Sequence[Said]) -> list[bytes]:
    rows = [dsh_user(seq, text) if role == "user" else dsh_assistant(seq, text) for seq, (role, text) in enumerate(said, start=1)]
    return [dsh_header(session_id), *rows]


# --- Claude Code -------------------------------------------------------------------------------------------------------------


def claude_record(session_id: str, number: int, kind: str, content: Any, **fields: Any) -> bytes:
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "type": "message"}
    record = {
        "parentUuid": f"u{number - 1}" if number else None,
        "isSidechain": False,
        "cwd": "/work/app",
        "sessionId": session_id,
        "type": kind,
        "uuid": f"u{number}",
        "timestamp": f"2026-09-01T10:{number:02d}:00.000Z",
        "message": message,
    }
    return line({**record, **fields})


def claude_lines(session_id: str, said: Sequence[Said]) -> list[bytes]:
    return [
        claude_record(session_id, number, role, text if role == "user" else [{"type": "text", "text": text}])
        for number, (role, text) in enumerate(said)
    ]


# --- Codex -------------------------------------------------------------------------------------------------------------------


def codex_event(minute: int, kind: str, **payload: Any) -> bytes:
    return line({"timestamp": f"2026-09-01T10:{minute:02d}:00.000Z", "type": kind, "payload": payload})


def codex_lines(session_id: str, said: Sequence[Said]) -> list[bytes]:
    header = codex_event(0, "session_meta", id=session_id, cwd="/work/app", source="cli", model_provider="openai")
    lines = [header]
    for minute, (role, text) in enumerate(said, start=1):
        if role == "user":
            lines.append(codex_event(minute, "event_msg", type="user_message", message=text))
        else:
            content = [{"type": "output_text", "text": text}]
            lines.append(codex_event(minute, "response_item", type="message", role="assistant", content=content))
            lines.append(codex_event(minute, "event_msg", type="agent_message", message=text, phase="final_answer"))
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """How one agent writes a log directly in its root."""

    source: str
    lines: Callable[[str, Sequence[Said]], list[bytes]]
    id_prefix: str = ""
    file_prefix: str = ""

    def native_id(self, number: int) -> str:
        """An id of the agent's own kind."""
        return f"019f9000-0000-7000-8000-{number:012d}"

    def session_id(self, number: int) -> str:
        return self.id_prefix + self.native_id(number)

    def file_name(self, number: int) -> str:
        return f"{self.file_prefix}{self.native_id(number)}.jsonl"


AGENTS = {
    "dsh": Agent(source="dsh", lines=dsh_lines),
    "claude-code": Agent(source="claude-code", lines=claude_lines, id_prefix="claude-code:"),
    "codex": Agent(source="codex", lines=codex_lines, id_prefix="codex:", file_prefix="rollout-2026-09-01T10-00-00-"),
}
