"""Logs of each agent, line by line, in the shapes of its current version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from tests.bench.texts import Texts

STEPS_PER_TURN = 3
_TURN_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What is said of one session wherever it appears."""

    native_id: str
    title: str
    cwd: str
    started_ms: int


class LogMaker(Protocol):
    """Makes the lines of one session's log. Lines end with a newline."""

    source: str

    def place(self, root: Path) -> Path:
        """Where the log goes below its source's root."""
        ...

    def opening(self) -> list[bytes]:
        """The first lines, the title among them where the agent keeps titles in its logs."""
        ...

    def turn(self, texts: Texts) -> list[bytes]:
        """One turn: a prompt, a few tool calls, an answer."""
        ...


class DshLog:
    """DeepSeek Harness, version 4, plain."""

    source = "dsh"

    def __init__(self, made: Made) -> None:
        self._made = made
        self._seq = 0
        self._turn = 0

    def place(self, root: Path) -> Path:
        folder = "--" + self._made.cwd.strip("/").replace("/", "-") + "--"
        return root / folder / self._made.native_id / "session.v4.jsonl"

    def opening(self) -> list[bytes]:
        made = self._made
        header = {"type": "session", "version": 4, "id": made.native_id, "createdAt": made.started_ms, "cwd": made.cwd}
        header |= {"isSeeded": False, "delegationDepth": 0, "agentPreset": "standard"}
        title = b'{"title":%b,"messageSeqs":[],"source":{"kind":"provider"}}' % _quoted(made.title)
        return [json.dumps(header).encode() + b"\n", self._row(b"session/title", title, surface=False)]

    def turn(self, texts: Texts) -> list[bytes]:
        self._turn += 1
        turn = self._turn
        rows = [self._row(b"turn/start", b'{"turn":%d}' % turn, surface=False), self._user(texts.prompt())]
        for step in range(1, STEPS_PER_TURN + 1):
            call = b"call-%d-%d" % (turn, step)
            block = b'{"type":"tool-call","id":"%b","name":"bash","arguments":"{\\"command\\":\\"make test\\"}"}' % call
            rows.append(self._assistant(step, texts.remark(), b"," + block))
            message = b'{"role":"tool","callId":"%b","content":[{"type":"text","text":"%b"}]}' % (call, texts.output())
            rows.append(self._row(b"tool/result", b'{"turn":%d,"step":%d,"message":%b}' % (turn, step, message)))
        rows.append(self._assistant(STEPS_PER_TURN + 1, texts.answer(), b""))
        rows.append(self._row(b"turn/end", b'{"turn":%d,"reason":{"kind":"completed"}}' % turn, surface=False))
        return rows

    def _user(self, text: bytes) -> bytes:
        content = b'"role":"user","content":[{"type":"text","text":"%b"}],"source":{"kind":"user"}' % text
        return self._row(b"user/message", b'{"id":"m%d",%b}' % (self._seq, content))

    def _assistant(self, step: int, text: bytes, more: bytes) -> bytes:
        source = b'{"kind":"model","provider":"deepseek","model":"deepseek-chat"}'
        content = b'"role":"assistant","content":[{"type":"text","text":"%b"}%b],"source":%b' % (text, more, source)
        message = b'{"turn":%d,"step":%d,"message":{"id":"m%d",%b},"stream":[]}' % (self._turn, step, self._seq, content)
        return self._row(b"assistant/message", message)

    def _row(self, kind: bytes, data: bytes, *, surface: bool = True) -> bytes:
        time_ms = self._made.started_ms + self._turn * _TURN_MS + self._seq
        tail = b',"surfaceOp":"append"}\n' if surface else b"}\n"
        row = b'{"type":"%b","seq":%d,"time":%d,"data":%b%b' % (kind, self._seq, time_ms, data, tail)
        self._seq += 1
        return row


class ClaudeCodeLog:
    """Claude Code 2.1."""

    source = "claude-code"

    def __init__(self, made: Made) -> None:
        self._made = made
        self._records = 0
        self._turn = 0
        self._common = (
            b'"isSidechain":false,"userType":"external","cwd":%b,"sessionId":"%b","version":"2.1.260","gitBranch":"main"'
            % (
                _quoted(made.cwd),
                made.native_id.encode(),
            )
        )

    def place(self, root: Path) -> Path:
        return root / self._made.cwd.replace("/", "-") / f"{self._made.native_id}.jsonl"

    def opening(self) -> list[bytes]:
        title = _quoted(self._made.title)
        return [b'{"type":"ai-title","aiTitle":%b,"sessionId":"%b"}\n' % (title, self._made.native_id.encode())]

    def turn(self, texts: Texts) -> list[bytes]:
        self._turn += 1
        records = [self._record(b"user", b'{"role":"user","content":"%b"}' % texts.prompt())]
        for step in range(STEPS_PER_TURN):
            call = b"toolu_%08d%02d" % (self._turn, step)
            use = b',{"type":"tool_use","id":"%b","name":"Bash","input":{"command":"make test"}}' % call
            records.append(self._assistant(texts.remark(), use, b"tool_use"))
            result = b'{"tool_use_id":"%b","type":"tool_result","content":"%b","is_error":false}' % (call, texts.output())
            records.append(self._record(b"user", b'{"role":"user","content":[%b]}' % result))
        records.append(self._assistant(texts.answer(), b"", b"end_turn"))
        return records

    def _assistant(self, text: bytes, more: bytes, stop: bytes) -> bytes:
        rest = (
            b'"model":"claude-sonnet-4-5","type":"message","stop_reason":"%b","usage":{"input_tokens":9,"output_tokens":99}'
            % stop
        )
        content = b'{"role":"assistant","content":[{"type":"text","text":"%b"}%b],"id":"msg_%d",%b}'
        return self._record(b"assistant", content % (text, more, self._records, rest))

    def _record(self, kind: bytes, message: bytes) -> bytes:
        parent = b'"%b"' % self._uuid(self._records - 1) if self._records else b"null"
        own = self._uuid(self._records)
        time = _iso(self._made.started_ms + self._turn * _TURN_MS + self._records)
        self._records += 1
        return b'{"parentUuid":%b,%b,"type":"%b","message":%b,"uuid":"%b","timestamp":"%b"}\n' % (
            *(parent, self._common, kind, message),
            *(own, time),
        )

    def _uuid(self, number: int) -> bytes:
        return b"%b-0000-4000-8000-%012x" % (self._made.native_id[:8].encode(), number)


class CodexLog:
    """Codex CLI with the envelope of 2026. The title is the first prompt."""

    source = "codex"

    def __init__(self, made: Made) -> None:
        self._made = made
        self._turn = 0

    def place(self, root: Path) -> Path:
        day = datetime.fromtimestamp(self._made.started_ms / 1000, UTC)
        return root / "sessions" / f"{day:%Y/%m/%d}" / f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{self._made.native_id}.jsonl"

    def opening(self) -> list[bytes]:
        made = self._made
        meta = {"id": made.native_id, "timestamp": _iso(made.started_ms).decode(), "cwd": made.cwd, "originator": "codex_cli_rs"}
        meta |= {"cli_version": "0.170.0", "source": "cli", "model_provider": "openai", "git": {"branch": "main"}}
        first = self._line(b"session_meta", json.dumps(meta).encode())
        return [first, *self._said(b"user", b"input_text", b"user_message", _quoted(made.title)[1:-1])]

    def turn(self, texts: Texts) -> list[bytes]:
        self._turn += 1
        context = b'{"cwd":%b,"approval_policy":"on-request","model":"gpt-5-codex"}' % _quoted(self._made.cwd)
        lines = [self._line(b"turn_context", context), *self._said(b"user", b"input_text", b"user_message", texts.prompt())]
        for step in range(STEPS_PER_TURN):
            lines += self._said(b"assistant", b"output_text", b"agent_message", texts.remark())
            call = b"call_%d_%d" % (self._turn, step)
            asked = b'{"type":"function_call","name":"shell","arguments":"{\\"command\\":[\\"make\\"]}","call_id":"%b"}' % call
            lines.append(self._line(b"response_item", asked))
            given = b'{"type":"function_call_output","call_id":"%b","output":"%b"}' % (call, texts.output())
            lines.append(self._line(b"response_item", given))
        return lines + self._said(b"assistant", b"output_text", b"agent_message", texts.answer())

    def _said(self, role: bytes, block: bytes, event: bytes, text: bytes) -> list[bytes]:
        item = b'{"type":"message","role":"%b","content":[{"type":"%b","text":"%b"}]}' % (role, block, text)
        return [
            self._line(b"response_item", item),
            self._line(b"event_msg", b'{"type":"%b","message":"%b"}' % (event, text)),
        ]

    def _line(self, kind: bytes, payload: bytes) -> bytes:
        time = _iso(self._made.started_ms + self._turn * _TURN_MS)
        return b'{"timestamp":"%b","type":"%b","payload":%b}\n' % (time, kind, payload)


MAKERS: dict[str, type[DshLog | ClaudeCodeLog | CodexLog]] = {maker.source: maker for maker in (DshLog, ClaudeCodeLog, CodexLog)}


def log_lines(maker: LogMaker, texts: Texts, size_bytes: int) -> Iterator[bytes]:
    """Whole turns, at least one, until the log has about this size."""
    written = 0
    for line in maker.opening():
        written += len(line)
        yield line
    while True:
        for line in maker.turn(texts):
            written += len(line)
            yield line
        if written >= size_bytes:
            return


def _iso(time_ms: int) -> bytes:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()
