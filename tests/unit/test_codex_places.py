from __future__ import annotations

import os
from pathlib import Path

import pytest
from sessionref_server.adapters.sessions.formats.codex import CodexFormat

A = "019f9000-0000-7000-8000-00000000000a"
B = "019f9000-0000-7000-8000-00000000000b"
C = "019f9000-0000-7000-8000-00000000000c"
DAY = "sessions/2026/09/01"


def rollout(native_id: str, suffix: str = ".jsonl", day: str = "2026-09-01") -> str:
    return f"rollout-{day}T10-00-00-{native_id}{suffix}"


def write(root: Path, *names: str) -> None:
    for age, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}\n")
        os.utime(path, ns=(10**18 - age, 10**18 - age))


def found(root: Path) -> list[str]:
    return [log.path.removeprefix(f"{root}/") for log in CodexFormat({}).discover(root)]


@pytest.mark.parametrize(
    ("environment", "root"),
    [({}, "/home/dev/.codex"), ({"CODEX_HOME": " "}, "/home/dev/.codex"), ({"CODEX_HOME": "/data/codex"}, "/data/codex")],
)
def test_default_root_is_the_codex_home(environment: dict[str, str], root: str) -> None:
    assert CodexFormat({}).default_roots(environment, Path("/home/dev")) == [Path(root)]


def test_logs_are_found_by_place_and_name_newest_first(tmp_path: Path) -> None:
    write(
        tmp_path,
        f"{DAY}/{rollout(A)}",
        f"sessions/2026/08/31/{rollout(B, '.jsonl.zst')}",
        f"archived_sessions/{rollout(C)}",
        "loose.jsonl",
    )
    write(
        tmp_path,
        "history.jsonl",
        "session_index.jsonl",
        "config.toml",
        f"{DAY}/notes.txt",
        "log/codex.jsonl",
        "sessions/1/2/3/4/deep.jsonl",
    )
    write(tmp_path, f"{DAY}/{rollout(C, '.jsonl.zst.compress.4711.tmp')}")
    assert found(tmp_path) == [
        f"{DAY}/{rollout(A)}",
        f"sessions/2026/08/31/{rollout(B, '.jsonl.zst')}",
        "loose.jsonl",
        f"archived_sessions/{rollout(C)}",
    ]
    assert [log.archived for log in CodexFormat({}).discover(tmp_path)] == [False, False, False, True]


def test_a_log_tells_what_stat_says(tmp_path: Path) -> None:
    write(tmp_path, rollout(A))
    (log,) = CodexFormat({}).discover(tmp_path)
    status = (tmp_path / rollout(A)).stat()
    expected = (str(tmp_path / rollout(A)), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    assert (log.path, log.device, log.inode, log.size, log.mtime_ns) == expected


@pytest.mark.parametrize("order", [(".jsonl", ".jsonl.zst"), (".jsonl.zst", ".jsonl")])
def test_plain_log_beats_its_compressed_sibling_whichever_is_newer(tmp_path: Path, order: tuple[str, str]) -> None:
    write(tmp_path, *(f"{DAY}/{rollout(A, suffix)}" for suffix in order))
    assert found(tmp_path) == [f"{DAY}/{rollout(A)}"]


def test_a_session_in_two_places_is_found_once(tmp_path: Path) -> None:
    write(tmp_path, f"archived_sessions/{rollout(A)}", f"{DAY}/{rollout(A)}", f"sessions/2026/08/31/{rollout(A)}")
    assert found(tmp_path) == [f"{DAY}/{rollout(A)}"]


@pytest.mark.parametrize(("folder", "archived"), [("sessions", False), ("archived_sessions", True), (DAY, False)])
def test_a_folder_inside_the_home_is_a_root_too(tmp_path: Path, folder: str, archived: bool) -> None:  # noqa: FBT001
    write(tmp_path, f"{folder}/{rollout(A)}")
    logs = list(CodexFormat({}).discover(tmp_path / folder))
    assert [(log.path, log.archived) for log in logs] == [(str(tmp_path / folder / rollout(A)), archived)]


def test_years_below_a_sessions_folder_are_walked(tmp_path: Path) -> None:
    write(tmp_path, f"{DAY}/{rollout(A)}")
    assert found(tmp_path / "sessions") == [f"2026/09/01/{rollout(A)}"]


def test_links_pipes_and_folders_are_no_logs(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/2026/09/01/" + rollout(A))
    (tmp_path / "sessions").symlink_to(tmp_path / "elsewhere")
    (tmp_path / rollout(B)).symlink_to(tmp_path / "elsewhere/2026/09/01" / rollout(A))
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")).write_bytes(b"")
    assert found(tmp_path) == []


def test_an_unreadable_folder_below_the_root_is_skipped_and_a_missing_root_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, f"{DAY}/{rollout(A)}", f"archived_sessions/{rollout(B)}")
    if os.geteuid():
        (tmp_path / "archived_sessions").chmod(0)
        assert found(tmp_path) == [f"{DAY}/{rollout(A)}"]
        (tmp_path / "archived_sessions").chmod(0o700)
    with pytest.raises(FileNotFoundError):
        found(tmp_path / "missing")
