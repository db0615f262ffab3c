"""Builds small Codex rollouts for tests."""

from __future__ import annotations

import json
from typing import Any

from sessionref_server.adapters.sessions.formats.codex.head import CodexHeadFold
from sessionref_server.adapters.sessions.formats.codex.surface import CodexSurfaceFold
from sessionref_server.adapters.sessions.log_format import LogEnd, LogFile, NativeHead, Surface

MADE_ID = "019f9000-0000-7000-8000-0000000000aa"


def log_file(name: str = f"rollout-2026-09-01T10-00-00-{MADE_ID}.jsonl", size: int = 1000) -> LogFile:
    return LogFile(path=f"/logs/{name}", device=1, inode=1, size=size, mtime_ns=1)


def message(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


class Rollout:
    """A log that grows, written as Codex writes it."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._second = 0

    def line(self, fields: dict[str, Any]) -> Rollout:
        self.lines.append(json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode())
        return self

    def add(self, kind: str, payload: object, **envelope: Any) -> Rollout:
        self._second += 1
        time = f"2026-09-01T10:{self._second // 60:02d}:{self._second % 60:02d}.000Z"
        return self.line({"timestamp": time, **envelope, "type": kind, "payload": payload})

    def meta(self, **fields: Any) -> Rollout:
        start = {"id": MADE_ID, "timestamp": "2026-09-01T10:00:00.000Z", "cwd": "/work/shop", "model_provider": "openai"}
        return self.add("session_meta", {**start, **fields})

    def item(self, role: str, *texts: str) -> Rollout:
        return self.add("response_item", message(role, *texts))

    def event(self, kind: str, /, **fields: Any) -> Rollout:
        return self.add("event_msg", {"type": kind, **fields})

    def completed(self, kind: str, /, **fields: Any) -> Rollout:
        return self.event("item_completed", thread_id="t", turn_id="u", item={"type": kind, "id": "i", **fields})

    def turn(self) -> Rollout:
        return self.event("task_started", turn_id="t")

    def user(self, text: str) -> Rollout:
        return self.item("user", text).event("user_message", message=text, images=[])

    def assistant(self, text: str) -> Rollout:
        return self.item("assistant", text).event("agent_message", message=text, phase="final_answer")

    def exchange(self, user: str, assistant: str) -> Rollout:
        return self.turn().user(user).assistant(assistant)

    def surface(self, end: LogEnd | None = None, file: LogFile | None = None) -> Surface:
        fold = CodexSurfaceFold(file or log_file())
        for line in self.lines:
            fold.feed(line)
        return fold.surface(end or LogEnd())

    def head(self, end: LogEnd | None = None, file: LogFile | None = None) -> NativeHead:
        fold = CodexHeadFold(file or log_file())
        for line in self.lines:
            fold.feed(line)
        return fold.head(end or LogEnd())

    def spoken(self) -> list[str]:
        """The surface, one short text a message: ``u:`` the person, ``a:`` the model, ``c:`` a checkpoint."""
        return spoken(self.surface())


def spoken(surface: Surface) -> list[str]:
    return [f"{'c' if said.checkpoint else said.role.value[0]}:{said.text}" for said in surface.messages]
