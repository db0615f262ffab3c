"""Every case of vectors/sessionlog.json through the real reader and fold, and again as the product reads it."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sessionref_server.adapters.sessions.formats.dsh import DshFormat
from sessionref_server.adapters.sessions.formats.dsh.names import parse_log_name
from sessionref_server.adapters.sessions.formats.dsh.strict import StrictFold
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import LogFault
from sessionref_server.adapters.sessions.log_format import LogEnd, LogFile
from sessionref_server.adapters.sessions.log_reader import FoldReader
from sessionref_server.domain.session import SessionStatus

SHARED = os.environ.get("SESSIONREF_FIXTURES")
VECTORS = Path(SHARED) / "vectors" if SHARED else Path(__file__).parents[1] / "vectors"
CASES = json.loads((VECTORS / "sessionlog.json").read_text())["cases"]
REFUSED = {SessionStatus.DAMAGED, SessionStatus.TOO_NEW, SessionStatus.EMPTY}
STATUS_OF_CODE = {
    "CORRUPT": {SessionStatus.DAMAGED, SessionStatus.EMPTY},
    "INVALID_SURFACE": {SessionStatus.DAMAGED},
    "UNSUPPORTED": {SessionStatus.TOO_NEW},
}


@pytest.fixture(params=CASES, ids=[case["name"] for case in CASES])
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


@pytest.fixture
def log(case: dict[str, Any], tmp_path: Path) -> LogFile:
    given = case["input"]
    path = tmp_path / given["filename"]
    path.write_bytes(base64.b64decode(given["base64"]) if "base64" in given else given["text"].encode())
    found = path.stat()
    return LogFile(path=str(path), device=found.st_dev, inode=found.st_ino, size=found.st_size, mtime_ns=found.st_mtime_ns)


def read_strictly(log: LogFile) -> dict[str, Any]:
    name = parse_log_name(Path(log.path).name)
    if name is None:
        return {"error_code": str(LogFault.NOT_A_LOG)}
    fold = StrictFold(file_version=name.version, compressed=name.compressed)
    end: LogEnd = FoldReader(log.path, fold, is_head=False).read()
    reading = fold.reading(end)
    if reading.fault is not None or reading.header is None:
        return {"error_code": str(reading.fault)}
    subagent = asdict(reading.labels.subagent) if reading.labels.subagent else None
    if subagent and subagent["label"] is None:
        del subagent["label"]
    return {
        "output": {
            "version": reading.header.version,
            "header": reading.header.raw,
            "eventCount": reading.events,
            "closers": reading.closers,
            "capturedThroughSeq": reading.through_seq,
            "surface": [*reading.nodes, *reading.owed_result_seqs],
            "conversation": [
                {"role": str(message.role), "text": message.text, "checkpoint": message.checkpoint}
                for message in reading.nodes.messages()
            ],
            "title": reading.labels.title,
            "subagent": subagent,
            "tornTail": reading.torn_tail,
            "recovered": reading.recovered_events,
        }
    }


def test_strict_reading_is_as_pinned(case: dict[str, Any], log: LogFile) -> None:
    expected = {key: case[key] for key in ("output", "error_code") if key in case}
    assert expected == read_strictly(log)


def test_product_reads_the_same_conversation_and_refuses_the_same_logs(case: dict[str, Any], log: LogFile) -> None:
    if case.get("error_code") == "NOT_A_LOG":
        assert [file.path for file in DshFormat().discover(Path(log.path).parent) if parse_log_name(Path(file.path).name)] == []
        return
    fold = DshFormat().surface_fold(log)
    surface = fold.surface(FoldReader(log.path, fold, is_head=False).read())
    if "error_code" in case:
        assert surface.reading.status in STATUS_OF_CODE[case["error_code"]]
        assert list(surface.messages) == []
        return
    expected = case["output"]
    assert expected["capturedThroughSeq"] == surface.through_seq
    assert expected["header"].get("cwd") == surface.cwd
    assert expected["header"]["id"] == surface.native_id
    assert expected["conversation"] == [
        {"role": str(message.role), "text": message.text, "checkpoint": message.checkpoint} for message in surface.messages
    ]


def test_head_of_each_log_agrees_with_its_surface(case: dict[str, Any], log: LogFile) -> None:
    if case.get("error_code") == "NOT_A_LOG":
        pytest.skip("not a log")
    head_fold, surface_fold = DshFormat().head_fold(log), DshFormat().surface_fold(log)
    head = head_fold.head(FoldReader(log.path, head_fold, is_head=True).read())
    surface = surface_fold.surface(FoldReader(log.path, surface_fold, is_head=False).read())
    assert (surface.native_id, surface.cwd, surface.reading.status) == (head.native_id, head.cwd, head.status)
    if "output" in case and case["output"]["title"] is not None:
        assert case["output"]["title"] == head.title
