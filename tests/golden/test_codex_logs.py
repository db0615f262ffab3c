from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from sessionref_server.adapters.sessions.formats.codex import CodexFormat
from sessionref_server.adapters.sessions.log_format import LogFile, NativeHead, Surface
from sessionref_server.adapters.sessions.log_reader import FoldReader

FORMAT = CodexFormat(environment={})
OWN = Path(__file__).parent.parent / "logs"
SHARED = os.environ.get("SESSIONREF_FIXTURES")


def expected_rows() -> list[Any]:
    files = [(OWN, OWN / "EXPECTED.codex.jsonl")]
    if SHARED:
        files.append((Path(SHARED) / "sessions", Path(SHARED) / "sessions" / "EXPECTED.jsonl"))
    rows = [(base, json.loads(line)) for base, file in files for line in file.read_text().splitlines()]
    return [
        pytest.param(base, row, id=f"{base.name}-{row['file'].removeprefix('codex/')}")
        for base, row in rows
        if row["file"].startswith("codex/") and row["file"] != "codex/history.jsonl"
    ]


def read(log: LogFile) -> tuple[NativeHead, Surface]:
    head_fold, surface_fold = FORMAT.head_fold(log), FORMAT.surface_fold(log)
    head_end = FoldReader(log.path, head_fold, is_head=True).read()
    surface_end = FoldReader(log.path, surface_fold, is_head=False).read()
    return head_fold.head(head_end), surface_fold.surface(surface_end)


def shown(surface: Surface) -> list[list[str]]:
    omitted = [["omitted", note] for note in surface.reading.notes]
    return omitted + [["summary" if said.checkpoint else said.role.value, said.text] for said in surface.messages]


@pytest.mark.parametrize(("base", "row"), expected_rows())
def test_log_reads_as_expected(base: Path, row: dict[str, Any]) -> None:
    root = base / "codex"
    (log,) = (log for log in FORMAT.discover(root) if log.path == str(base / row["file"]))
    head, surface = read(log)
    assert (head.status, surface.reading.status) == (row["status"], row["status"])
    if row["status"] == "not_a_session":
        return
    title = FORMAT.titles(root).get(head.native_id, head.title)
    assert (head.native_id, title, head.cwd, head.parent_native_id, log.archived) == (
        row["id"],
        row["title"],
        row["cwd"],
        row["parent"],
        row["listed"] == "archived",
    )
    assert (surface.native_id, surface.cwd) == (head.native_id, head.cwd)
    if row["surface"] is not None:
        # Where in the surface something is missing is not told, so notes stand at its beginning.
        assert sorted(shown(surface)) == sorted(row["surface"])
        assert [each for each in shown(surface) if each[0] != "omitted"] == [
            each for each in row["surface"] if each[0] != "omitted"
        ]


def test_made_logs_are_found_once_and_nothing_else_is() -> None:
    found = {log.path.removeprefix(str(OWN) + "/") for log in FORMAT.discover(OWN / "codex")}
    rows = [json.loads(line) for line in (OWN / "EXPECTED.codex.jsonl").read_text().splitlines()]
    assert found == {row["file"] for row in rows}


def public(name: str) -> LogFile:
    if not SHARED:
        pytest.skip("needs SESSIONREF_FIXTURES")
    root = Path(SHARED) / "sessions" / "codex"
    return next(log for log in FORMAT.discover(root) if log.path == str(root / name))


def test_prompt_history_is_no_log() -> None:
    root = Path(public("schema-drift.jsonl").path).parent
    assert not [log.path for log in FORMAT.discover(root) if log.path.endswith(("history.jsonl", "session_index.jsonl"))]


@pytest.mark.parametrize(
    ("name", "native_id", "title", "status", "roles"),
    [
        ("agentsview-blockquotes_session.jsonl", "quote-123", "blablabla?", "ok", "ua"),
        ("agentsview-fc_args_1.jsonl", "fc-args-1", "inspect files", "ok", "u"),
        ("agentsview-fc_stdin.jsonl", "fc-stdin", "send input", "ok", "u"),
        ("agentsview-function_calls.jsonl", "fc-1", "Run the tests", "ok", "u"),
        ("agentsview-standard_session.jsonl", "abc-123", "Add rate limiting", "ok", "ua"),
        ("claudian-agent-lifecycle.jsonl", "claudian-agent-lifecycle", "Refactor the module using subagents.", "ok", "ua"),
        ("claudian-persisted-tools.jsonl", "claudian-persisted-tools", "Fix the bug and run the tests.", "ok", "ua"),
        ("claudian-websearch-persisted.jsonl", "claudian-websearch-persisted", "Search for Obsidian API docs.", "ok", "ua"),
        ("codex_050_legacy.jsonl", "test-legacy-session", None, "empty", ""),
        ("codex_051_usage.jsonl", "test-usage-session", None, "empty", ""),
        ("codex_052_raw.jsonl", "test-raw-session", None, "empty", ""),
        ("codex_053_rate_limit.jsonl", "test-ratelimit-session", None, "empty", ""),
        ("rollout-2026-07-17T09-00-00-registry-codex.jsonl", "registry-codex", "inspect the rollout", "ok", "ua"),
        ("schema-drift.jsonl", "schema-drift", "Translate 'hello' to Spanish", "ok", "ua"),
        ("session_branch.jsonl", "session_branch", "What branch am I on?", "ok", "ua"),
        ("session_simple.jsonl", "session_simple", "What's the weather like in SF today?", "ok", "ua"),
        ("session_toolcall.jsonl", "session_toolcall", "Translate 'hello' to Spanish", "ok", "ua"),
        ("stage0-large.jsonl", "019b2ea4-aaaa-bbbb-cccc-58208e1f0000", "Start", "ok", "uaauauauauaua"),
        ("subagent-thread-spawn.jsonl", "019fbcca-9fd4-7d20-83dc-0762b2f839b3", "Explore the parser package.", "ok", "ua"),
        ("all-record-kinds.jsonl", "019fc8be-3658-7ca3-9e29-000000000000", "List the files", "ok", "uuuuuuuuu"),
    ],
)
def test_public_log_reads_sensibly(name: str, native_id: str, title: str | None, status: str, roles: str) -> None:
    head, surface = read(public(name))
    spoken = "".join(said.role[0] for said in surface.messages)
    assert (head.native_id, head.title, head.status, surface.reading.status, spoken) == (native_id, title, status, status, roles)
