"""Logs of every agent as a client meets them: what is listed, what a reference gives, and how it is refused.

The right readings stand in EXPECTED.jsonl beside the shared logs; without those the project's own made logs are read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from rpc.context_text import read_context
from rpc.failures import failure_of
from rpc.served import Served, make_config, serving
from rpc.vector_rig import in_module_loop
from sessionref.v1 import candidate_pb2
from sessionref_server.adapters.sessions.formats.dsh.names import encode_segment
from sessionref_server.domain.session import SessionId

SHARED = os.environ.get("SESSIONREF_FIXTURES")
LOGS = Path(SHARED) / "sessions" if SHARED else Path(__file__).parents[1] / "logs"
SOURCES = {"claude": "claude-code", "codex": "codex", "dsh": "dsh"}
WHOLE_BUDGET = str(32 * 1024 * 1024)
REFUSED = {
    "damaged": grpc.StatusCode.DATA_LOSS,
    "too_new": grpc.StatusCode.FAILED_PRECONDITION,
    "empty": grpc.StatusCode.NOT_FOUND,
    "not_a_session": grpc.StatusCode.NOT_FOUND,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One right reading, and the house its log is served from: a folder as the agent has it, or files placed in two ways."""

    house: str
    expected: dict[str, Any]

    @property
    def file(self) -> Path:
        return Path(self.expected["file"])

    @property
    def status(self) -> str:
        return self.expected["status"]

    @property
    def native_id(self) -> str:
        return self.expected["id"] or self.file.name.split(".")[0]

    @property
    def session_id(self) -> SessionId:
        source = SOURCES[self.file.parts[0]]
        return SessionId(self.native_id if source == "dsh" else f"{source}:{self.native_id}")

    @property
    def is_listed(self) -> bool:
        return bool(self.expected["listed"])

    @property
    def is_hidden_subagent(self) -> bool:
        return not self.is_listed and self.status == "ok"


def load_rows() -> list[Row]:
    lines = [line for file in sorted(LOGS.glob("EXPECTED*.jsonl")) for line in file.read_text().splitlines()]
    rows = [Row(house=Path(row["file"]).parts[0], expected=row) for row in map(json.loads, lines)]
    rows = [row for row in rows if row.house in SOURCES]
    loose = [row for row in rows if row.house == "dsh" and row.file.parts[1] != "home"]
    placed = [replace(row, house=house) for row in loose for house in ("dsh flat", "dsh placed")]
    return [row for row in rows if row not in loose] + placed


ROWS = load_rows()
each_row = pytest.mark.parametrize("row", [pytest.param(row, id=f"{row.house}: {row.file.name}") for row in ROWS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """All houses, each with its own server."""

    houses: dict[str, Served]

    def of(self, row: Row) -> Served:
        return self.houses[row.house]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Town]:
    houses: dict[str, Served] = {}
    async with AsyncExitStack() as stack:
        for house in sorted({row.house for row in ROWS}):
            folder = tmp_path_factory.mktemp("house")
            source, root = move_in(house, folder / "agent")
            config = make_config(folder, {source: root}, workers__processes="1", prepare__max_reference_bytes=WHOLE_BUDGET)
            houses[house] = await stack.enter_async_context(serving(config))
        yield Town(houses=houses)


def move_in(house: str, folder: Path) -> tuple[str, Path]:
    """Copy what belongs in a house; returns its source and root."""
    if house in {"claude", "codex"}:
        shutil.copytree(LOGS / house, folder, copy_function=shutil.copyfile)
        return SOURCES[house], folder
    if house == "dsh":
        shutil.copytree(LOGS / "dsh" / "home" / "sessions", folder, copy_function=shutil.copyfile)
        return "dsh", folder
    for row in (row for row in ROWS if row.house == house):
        place = folder / row.file.name
        if house == "dsh placed":
            version = row.file.parts[1]
            name = "session.jsonl" if version == "v0" else f"session.{version}.jsonl"
            place = folder / "--work--" / encode_segment(row.session_id) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(LOGS / row.file, place)
    return "dsh", folder


async def candidate_of(served: Served, row: Row, **fields: Any) -> candidate_pb2.SessionReferenceCandidate | None:
    batch = await served.search(limit=1000, **fields)
    found = {candidate.session_id: candidate for candidate in batch.sessions.candidates}
    return found.get(row.session_id)


@in_module_loop
@each_row
async def test_session_is_listed_as_expected(town: Town, row: Row) -> None:
    candidate = await candidate_of(town.of(row), row)
    assert row.is_listed == (candidate is not None)
    if candidate is None:
        return
    assert (candidate.source, len(candidate.label) <= 200) == (SOURCES[row.file.parts[0]], True)
    if row.expected["title"] is not None:
        assert row.expected["title"] == candidate.label
    if row.status in {"ok", "partial"}:
        assert row.expected["cwd"] == (candidate.cwd if candidate.HasField("cwd") else None)
        assert candidate.created_at_ms > 0


@in_module_loop
@each_row
async def test_parent_is_known_as_expected(town: Town, row: Row) -> None:
    head = town.of(row).application.catalog.head(row.session_id)
    if row.expected["parent"] is not None:
        assert head is not None
        assert head.parent_id == row.session_id.replace(row.native_id, row.expected["parent"])
    elif row.is_listed:
        assert head is not None
        assert head.parent_id is None


@in_module_loop
@each_row
async def test_reference_gives_the_expected_surface_or_the_expected_refusal(town: Town, row: Row) -> None:
    served = town.of(row)
    if row.status in REFUSED:
        failure = await failure_of(served.prepare(row.session_id))
        assert (failure.code, failure.reason) == (REFUSED[row.status], "SESSION_REFERENCE_READ_FAILED")
        assert failure.metadata["session_id"] == row.session_id
        return
    context = (await served.prepare(row.session_id)).additional_context
    (preview,) = read_context(context).previews
    (reference,) = context.source.references
    reading = reference.reading
    assert (reading.damaged_records > 0 or reading.torn_tail or bool(reading.notes)) >= (row.status == "partial")
    if row.expected["surface"] is None:
        return
    expected = [(role, text) for role, text in row.expected["surface"] if role != "omitted"]
    shown = [("user" if role == "summary" else role, text) for role, text in expected]
    assert shown == [(message["role"], message["text"]) for message in preview["conversation"]]
    assert reference.compacted == any(role == "summary" for role, _ in expected)
    assert {text for role, text in row.expected["surface"] if role == "omitted"} <= set(reading.notes)


@in_module_loop
@pytest.mark.parametrize("row", [pytest.param(row, id=row.file.name) for row in ROWS if row.is_hidden_subagent])
async def test_subagent_is_listed_when_asked_for_and_reachable_by_id(town: Town, row: Row) -> None:
    served = town.of(row)
    assert await candidate_of(served, row, subagents=candidate_pb2.SUBAGENT_VISIBILITY_INCLUDE) is not None
    assert (await served.prepare(row.session_id)).additional_context.source.references[0].session_id == row.session_id


@in_module_loop
@pytest.mark.parametrize("house", sorted({row.house for row in ROWS}))
async def test_every_listed_session_is_prepared_or_refused_as_unreadable(town: Town, house: str) -> None:
    served = town.houses[house]
    batch = await served.search(limit=1000, subagents=candidate_pb2.SUBAGENT_VISIBILITY_INCLUDE)
    assert len(batch.sessions.candidates) > 0
    for candidate in batch.sessions.candidates:
        head = served.application.catalog.head(SessionId(candidate.session_id))
        assert head is not None
        if head.status in REFUSED:
            failure = await failure_of(served.prepare(candidate.session_id))
            assert failure.code == REFUSED[head.status]
        else:
            (preview,) = read_context((await served.prepare(candidate.session_id)).additional_context).previews
            assert preview["sessionId"] == candidate.session_id
