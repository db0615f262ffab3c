"""Whole dsh logs, read as expected."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from unit.dsh_log_rig import FORMAT, OWN, read, spoken

SHARED = os.environ.get("SESSIONREF_FIXTURES")


def expected_rows() -> list[Any]:
    places = [(OWN, OWN / "EXPECTED.dsh.jsonl")]
    if SHARED:
        places.append((Path(SHARED) / "sessions", Path(SHARED) / "sessions" / "EXPECTED.jsonl"))
    rows: list[Any] = []
    for base, file in places:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["file"].startswith("dsh/"):
                rows.append(pytest.param(base, row, id=f"{base.name}-{row['file'].removeprefix('dsh/')}"))
    return rows


@pytest.mark.parametrize(("base", "row"), expected_rows())
def test_log_is_read_as_expected(base: Path, row: dict[str, Any]) -> None:
    head, surface = read(base / row["file"])
    assert (head.status, surface.reading.status) == (row["status"], row["status"])
    assert (head.native_id, head.cwd, head.parent_native_id) == (row["id"], row["cwd"], row["parent"])
    assert (surface.native_id, surface.cwd) == (row["id"], row["cwd"])
    if row["title"] is not None:
        assert head.title == row["title"]
    if row["surface"] is not None:
        assert spoken(surface) == row["surface"]


def test_discover_gives_the_newest_generation_of_each_session_and_nothing_else() -> None:
    root = OWN / "dsh" / "home" / "sessions"
    assert sorted(Path(log.path).relative_to(root).as_posix() for log in FORMAT.discover(root)) == [
        "--work--/bad-checksum/session.v3.jsonl.zstd",
        "--work--/future/session.v9.jsonl",
        "--work--/huge-line/session.v3.jsonl",
        "--work--/injection/session.v3.jsonl",
        "--work--/released-v0-real-shapes/session.v3.jsonl.zstd",
        "--work--/torn-line/session.v3.jsonl",
        "_no-cwd/no-cwd/session.v3.jsonl",
    ]


def test_logs_are_never_changed_by_reading(tmp_path: Path) -> None:
    root = tmp_path / "home"
    shutil.copytree(OWN / "dsh" / "home", root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    for log in FORMAT.discover(root / "sessions"):
        read(Path(log.path))
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
