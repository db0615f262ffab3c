from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from sessionref_server.adapters.sessions.formats.claude_code import ClaudeCodeFormat

SESSION = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
FORMAT = ClaudeCodeFormat()


def write(path: Path, content: str = "{}\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def found(root: Path) -> set[tuple[str, bool, str | None]]:
    return {(str(Path(log.path).relative_to(root)), log.is_subagent, log.parent_native_id) for log in FORMAT.discover(root)}


def test_sessions_and_subagents_are_found_and_nothing_else(tmp_path: Path) -> None:
    project = tmp_path / "-work-shop"
    for name in (
        f"{SESSION}.jsonl",
        "agent-old.jsonl",
        "sessions-index.json",
        f"{SESSION}/subagents/agent-a1.jsonl",
        f"{SESSION}/subagents/agent-a1.meta.json",
        f"{SESSION}/subagents/workflows/run/agent-a2.jsonl",
        f"{SESSION}/subagents/workflows/run/journal.jsonl",
        f"{SESSION}/tool-results/t.jsonl",
        f"{SESSION}/other.jsonl",
        "11111111-4e5f-4061-8071-2a3b4c5d6e7f/subagents/agent-orphan.jsonl",
    ):
        write(project / name)
    write(tmp_path / "history.jsonl")
    assert found(tmp_path) == {
        (f"-work-shop/{SESSION}.jsonl", False, None),
        ("-work-shop/agent-old.jsonl", True, None),
        (f"-work-shop/{SESSION}/subagents/agent-a1.jsonl", True, SESSION),
        (f"-work-shop/{SESSION}/subagents/workflows/run/agent-a2.jsonl", True, SESSION),
        (
            "-work-shop/11111111-4e5f-4061-8071-2a3b4c5d6e7f/subagents/agent-orphan.jsonl",
            True,
            "11111111-4e5f-4061-8071-2a3b4c5d6e7f",
        ),
    }


def test_root_that_holds_logs_directly_is_accepted(tmp_path: Path) -> None:
    write(tmp_path / "s-1.jsonl")
    write(tmp_path / "s-1" / "subagents" / "agent-a.jsonl")
    assert found(tmp_path) == {("s-1.jsonl", False, None), ("s-1/subagents/agent-a.jsonl", True, "s-1")}


def test_facts_are_those_of_stat(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", "12345\n")
    (log,) = FORMAT.discover(tmp_path)
    stat = path.stat()
    assert (log.size, log.mtime_ns, log.inode, log.device) == (6, stat.st_mtime_ns, stat.st_ino, stat.st_dev)


def test_links_and_special_files_are_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "s.jsonl")
    root = tmp_path / "root"
    write(root / "p" / f"{SESSION}" / "keep")
    (root / "linked-folder").symlink_to(outside.parent)
    (root / "p" / "linked.jsonl").symlink_to(outside)
    (root / "p" / SESSION / "subagents").symlink_to(outside.parent)
    os.mkfifo(root / "p" / "fifo.jsonl")
    (root / "p" / "folder.jsonl").mkdir()
    assert found(root) == set()


def test_missing_root_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        list(FORMAT.discover(tmp_path / "missing"))


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
def test_name_that_is_no_unicode_is_skipped(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"s-\xff.jsonl")).write_text("{}\n")
    write(tmp_path / "s.jsonl")
    assert found(tmp_path) == {("s.jsonl", False, None)}


def test_unreadable_folder_hides_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "bad" / "x.jsonl")
    write(tmp_path / "good" / "s.jsonl")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("bad"):
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert found(tmp_path) == {("good/s.jsonl", False, None)}


@pytest.mark.parametrize(
    ("environment", "roots"),
    [
        ({}, ["/home/u/.claude/projects", "/home/u/.config/claude/projects"]),
        ({"CLAUDE_CONFIG_DIR": " "}, ["/home/u/.claude/projects", "/home/u/.config/claude/projects"]),
        ({"CLAUDE_CONFIG_DIR": "/a, ~/b,"}, ["/a/projects", "/home/u/b/projects", "/home/u/.config/claude/projects"]),
        ({"XDG_CONFIG_HOME": "/x"}, ["/home/u/.claude/projects", "/x/claude/projects"]),
    ],
)
def test_usual_places_follow_the_environment(environment: dict[str, str], roots: list[str]) -> None:
    assert FORMAT.default_roots(environment, Path("/home/u")) == [Path(root) for root in roots]


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="place of the desktop application on Linux")
def test_cowork_projects_are_places_where_they_exist(tmp_path: Path) -> None:
    projects = tmp_path / ".config" / "Claude" / "local-agent-mode-sessions" / "account" / "local_1" / ".claude" / "projects"
    projects.mkdir(parents=True)
    assert FORMAT.default_roots({}, tmp_path)[-1] == projects


def test_titles_are_never_taken_from_outside_the_logs(tmp_path: Path) -> None:
    assert (FORMAT.titles(tmp_path), FORMAT.title_files(tmp_path)) == ({}, ())
