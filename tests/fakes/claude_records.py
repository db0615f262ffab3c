"""Builds small Claude Code logs for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sessionref_server.adapters.sessions.formats.claude_code.head import ClaudeHeadFold
from sessionref_server.adapters.sessions.formats.claude_code.surface import ClaudeSurfaceFold
from sessionref_server.adapters.sessions.log_format import LogEnd, NativeHead, Surface

Record = dict[str, Any]
MADE_ID = "5f0c0000-0000-4000-8000-000000000001"


class Log:
    """A log that grows; each record hangs on the one before unless it names its parent."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._last: str | None = None
        self._minute = 0

    def add(self, kind: str, uuid: str, **fields: Any) -> Log:
        self._minute += 1
        record: Record = {
            "parentUuid": self._last,
            "isSidechain": False,
            "cwd": "/work/shop",
            "sessionId": MADE_ID,
            "type": kind,
            "uuid": uuid,
        }
        record["timestamp"] = f"2026-09-01T{10 + self._minute // 60:02d}:{self._minute % 60:02d}:00.000Z"
        record.update(fields)
        self.records.append(record)
        self._last = uuid
        return self

    def user(self, uuid: str, content: Any, **fields: Any) -> Log:
        return self.add("user", uuid, message={"role": "user", "content": content}, **fields)

    def assistant(self, uuid: str, text: str, message_id: str | None = None, **fields: Any) -> Log:
        return self.reply(uuid, [{"type": "text", "text": text}], message_id, **fields)

    def tool_use(self, uuid: str, message_id: str | None = None, **fields: Any) -> Log:
        return self.reply(uuid, [{"type": "tool_use", "id": f"t-{uuid}", "name": "Bash", "input": {}}], message_id, **fields)

    def reply(self, uuid: str, content: list[Record], message_id: str | None = None, **fields: Any) -> Log:
        message = {"role": "assistant", "id": message_id or f"msg_{uuid}", "model": "claude-sonnet-5", "content": content}
        return self.add("assistant", uuid, **{"message": message, **fields})

    def tool_result(self, uuid: str, **fields: Any) -> Log:
        return self.user(uuid, [{"type": "tool_result", "tool_use_id": "t", "content": "output"}], **fields)

    def meta(self, kind: str, **fields: Any) -> Log:
        self.records.append({"type": kind, **fields})
        return self

    @property
    def lines(self) -> list[bytes]:
        return [json.dumps(record, separators=(",", ":")).encode() for record in self.records]


def surface_of(lines: Iterable[bytes], end: LogEnd | None = None, *, is_subagent: bool = False) -> Surface:
    fold = ClaudeSurfaceFold(MADE_ID, is_subagent=is_subagent)
    for line in lines:
        fold.feed(line)
    return fold.surface(end or LogEnd())


def head_of(lines: Iterable[bytes], end: LogEnd | None = None, *, is_subagent: bool = False) -> NativeHead:
    fold = ClaudeHeadFold(MADE_ID, None, is_subagent=is_subagent)
    for line in lines:
        fold.feed(line)
    return fold.head(end or LogEnd())


def spoken(surface: Surface) -> list[tuple[str, str]]:
    return [("summary" if message.checkpoint else message.role.value, message.text) for message in surface.messages]
