from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from sessionref_server.adapters.sessions.formats.claude_code import ClaudeCodeFormat
from sessionref_server.adapters.sessions.log_format import LogFile, NativeHead, Surface
from sessionref_server.adapters.sessions.log_reader import FoldReader
from sessionref_server.domain.session import LISTED_STATUSES

FORMAT = ClaudeCodeFormat()
OWN = Path(__file__).parent.parent / "logs"
SHARED = os.environ.get("SESSIONREF_FIXTURES")
RAW_TITLES = {"made-lone-surrogates": "evil \u202etxt.exe\u202c \u001b[31mred\u001b[0m \u0000 title\ufffd"}
"""Titles are cleaned by the source, not by the format."""


def expected_rows() -> list[Any]:
    files = [(OWN, OWN / "EXPECTED.claude.jsonl")]
    if SHARED:
        files.append((Path(SHARED) / "sessions", Path(SHARED) / "sessions" / "EXPECTED.jsonl"))
    rows = [(base, json.loads(line)) for base, file in files for line in file.read_text().splitlines()]
    return [
        pytest.param(base, row, id=f"{base.name}-{row['file'].removeprefix('claude/')}")
        for base, row in rows
        if row["file"].startswith("claude/")
    ]


def read(log: LogFile) -> tuple[NativeHead, Surface]:
    head_fold, surface_fold = FORMAT.head_fold(log), FORMAT.surface_fold(log)
    head_end = FoldReader(log.path, head_fold, is_head=True).read()
    surface_end = FoldReader(log.path, surface_fold, is_head=False).read()
    return head_fold.head(head_end), surface_fold.surface(surface_end)


@pytest.mark.parametrize(("base", "row"), expected_rows())
def test_log_reads_as_expected(base: Path, row: dict[str, Any]) -> None:
    (log,) = (log for log in FORMAT.discover(base / "claude") if log.path == str(base / row["file"]))
    head, surface = read(log)
    stem = Path(row["file"]).stem
    title = RAW_TITLES.get(stem, row["title"] or head.title)
    cwd = row["cwd"] if row["listed"] else head.cwd
    parent = row["parent"] or (head.parent_native_id if log.is_subagent else None)
    listed = head.status in LISTED_STATUSES and not head.is_subagent
    spoken = [["summary" if message.checkpoint else message.role.value, message.text] for message in surface.messages]
    actual = (listed, head.status, surface.reading.status, head.native_id, head.title, head.cwd, head.parent_native_id, spoken)
    assert actual == (
        row["listed"],
        row["status"],
        row["status"],
        row["id"] or stem,
        title,
        cwd,
        parent,
        row["surface"] or spoken,
    )
    assert (surface.native_id, surface.cwd) == (head.native_id, head.cwd)


def public(name: str) -> LogFile:
    if not SHARED:
        pytest.skip("needs SESSIONREF_FIXTURES")
    root = Path(SHARED) / "sessions" / "claude"
    return next(log for log in FORMAT.discover(root) if log.path == str(root / name))


def test_image_is_named_and_its_bytes_are_not_kept() -> None:
    _, surface = read(public("made-huge-image-line.jsonl"))
    assert surface.reading.notes == ("1 image omitted (image/png)",)


def test_inline_sidechains_are_no_part_of_the_session() -> None:
    head, surface = read(public("real-tool-heavy-cwd-changes.jsonl"))
    assert (head.title, head.cwd, head.status) == ("Thanks! Please update CLAUDE.md for current changes", "/path/to/Demo", "ok")
    assert [(message.role, len(message.text)) for message in surface.messages] == [
        ("assistant", 188),
        ("assistant", 152),
        ("assistant", 77),
        ("assistant", 62),
        ("assistant", 1544),
        ("user", 51),
        ("assistant", 121),
        ("assistant", 175),
    ]


@pytest.mark.parametrize(
    ("name", "title", "status", "roles"),
    [
        ("real-demo-caveat.jsonl", "/init", "ok", "aaa"),
        ("real-cjk-inline-sidechain.jsonl", "/orchestrator @CLAUDE.md を最新の状態にアップデートしてください", "ok", "aaa"),
        ("agentsview-queued_system_messages.jsonl", "Your final response is captured verbatim into ...", "ok", "u"),
        ("agentsview-truncated.jsonl", "hello", "partial", "ua"),
        ("simonw-sample.jsonl", "Create a hello world function", "ok", "uaua"),
        ("schema-drift.jsonl", "Open README", "ok", "ua"),
        ("session-b.jsonl", "This is from a different session file to test multi-session handling.", "ok", "uau"),
        ("todowrite.jsonl", "Feature Implementation with Task Management", "ok", "uaaua"),
        ("stage0-large.jsonl", "Start", "ok", "uaauauaua"),
        (
            "es6kr/-Users-test-duplicate-uuid/session-dup-uuid.jsonl",
            "Duplicate UUID regression fixture for Issue #137",
            "ok",
            "uaua",
        ),
        ("es6kr/-Users-test-project/session-with-agent-name.jsonl", "Skill Sync Session", "ok", "ua"),
        ("es6kr/-Users-test-project/session-with-custom-title.jsonl", "Database Migration v2", "ok", "ua"),
        (
            "es6kr/-Users-test-project/session-with-summary.jsonl",
            "Refactored authentication module with JWT support",
            "ok",
            "uaua",
        ),
        ("es6kr/-Users-test-project/session-cross-ref.jsonl", "Continue from previous session", "ok", "ua"),
        ("es6kr/-Users-test-cli-tooling/session-empty-one.jsonl", None, "empty", ""),
    ],
)
def test_public_log_reads_sensibly(name: str, title: str | None, status: str, roles: str) -> None:
    head, surface = read(public(name))
    assert (head.title, head.status, "".join(message.role[0] for message in surface.messages)) == (title, status, roles)
