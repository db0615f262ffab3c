"""Makes dsh logs and reads them the way the product does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sessionref_server.adapters.sessions.formats.dsh import DshFormat
from sessionref_server.adapters.sessions.log_format import LogFile, NativeHead, Surface
from sessionref_server.adapters.sessions.log_reader import FoldReader, ReadLimits

OWN = Path(__file__).parents[1] / "logs"
FORMAT = DshFormat()


def log_file(path: Path) -> LogFile:
    found = path.stat()
    return LogFile(path=str(path), device=found.st_dev, inode=found.st_ino, size=found.st_size, mtime_ns=found.st_mtime_ns)


def read(path: Path, limits: ReadLimits | None = None) -> tuple[NativeHead, Surface]:
    log = log_file(path)
    head, surface = FORMAT.head_fold(log), FORMAT.surface_fold(log)
    head_end = FoldReader(log.path, head, is_head=True, limits=limits).read()
    return head.head(head_end), surface.surface(FoldReader(log.path, surface, is_head=False, limits=limits).read())


def spoken(surface: Surface) -> list[list[str]]:
    return [["summary" if message.checkpoint else str(message.role), message.text] for message in surface.messages]


def row(kind: str, seq: int, data: dict[str, Any] | None = None, **fields: object) -> dict[str, Any]:
    return {"type": kind, "seq": seq, "time": 1_790_000_000_000 + seq, "data": data or {}, **fields}


def user(seq: int, text: str, source: dict[str, Any] | None = None, **fields: object) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return row(
        "user/message",
        seq,
        {"role": "user", "source": source or {"kind": "user"}, "content": content},
        **{"surfaceOp": "append", **fields},
    )


def assistant(seq: int, text: str, *calls: str, **fields: object) -> dict[str, Any]:
    content: list[Any] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool-call", "id": call, "name": "read", "arguments": "{}"} for call in calls]
    message = {"role": "assistant", "source": {"kind": "model", "provider": "p", "model": "m"}, "content": content}
    return row("assistant/message", seq, {"turn": 1, "step": 1, "message": message}, **{"surfaceOp": "append", **fields})


def header(version: int = 4, **fields: object) -> dict[str, Any]:
    seeded = {"isSeeded": False} if version >= 2 else {}
    return {
        "type": "session",
        "version": version,
        "id": "made",
        "createdAt": 1_790_000_000_000,
        "cwd": "/work",
        "delegationDepth": 0,
        **seeded,
        **fields,
    }


def lines(*rows: object) -> bytes:
    return b"".join(item if isinstance(item, bytes) else json.dumps(item).encode() + b"\n" for item in rows)
