from __future__ import annotations

import os
from pathlib import Path

import pytest
from unit.dsh_log_rig import FORMAT


def test_discover_ignores_links_fifos_locks_and_staging_files(tmp_path: Path) -> None:
    session = tmp_path / "--work--" / "s1"
    session.mkdir(parents=True)
    for name in ("session.jsonl", "session.v2.jsonl", "session.v10.jsonl", "session.v0.jsonl", "session.v11.jsonl.zst"):
        (session / name).write_bytes(b"")
    (session / "session.v12.jsonl.0af3.tmp").write_bytes(b"")
    (session / "session.lock").write_bytes(b"")
    os.mkfifo(session / "session.v13.jsonl")
    (session / "session.v14.jsonl").symlink_to("session.jsonl")
    (tmp_path / "linked").symlink_to(session)
    (tmp_path / "s2").mkdir()
    (tmp_path / "s2" / "session.jsonl.zstd").write_bytes(b"")
    (tmp_path / "export.jsonl").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe.jsonl")
    found = sorted(Path(log.path).relative_to(tmp_path).as_posix() for log in FORMAT.discover(tmp_path))
    assert found == ["--work--/s1/session.v10.jsonl", "export.jsonl", "s2/session.jsonl.zstd"]


def test_discover_refuses_a_missing_root(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        list(FORMAT.discover(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("value", "root"),
    [
        (None, "/home/u/.dsh/sessions"),
        ("  ", "/home/u/.dsh/sessions"),
        ("/data", "/data/sessions"),
        ("~", "/home/u/sessions"),
        ("~/d", "/home/u/d/sessions"),
        ("~\\d", "/home/u/d/sessions"),
    ],
)
def test_default_root_follows_the_variable(value: str | None, root: str) -> None:
    assert FORMAT.default_roots({"DSH_HOME": value} if value is not None else {}, Path("/home/u")) == [Path(root)]
