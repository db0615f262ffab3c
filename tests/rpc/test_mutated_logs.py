"""Logs with values of other types, flipped bytes and cuts: each is read, refused or left out; none is a fault of the server."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from rpc.agent_logs import AGENTS, Agent, Said, dsh_checkpoint, dsh_title
from rpc.context_text import read_context
from rpc.served import Serve
from sessionref_server.telemetry import LOGGER

MUTANTS = int(os.environ.get("SESSIONREF_MUTANTS", "250"))
SEED = os.environ.get("SESSIONREF_SEED", "1")
SAID: list[Said] = [("user", "first question"), ("assistant", "first answer"), ("user", "second question"), ("assistant", "end")]
ODD_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    -0.0,
    1.5,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "\x00",
    "\ud83d",
    "x" * 10_000,
    [],
    {},
    [[[]]],
    [None],
    {"type": None},
    {"op": "replace", "start": 0, "end": 10**9},
    {"op": "replace", "startSeq": 3, "endSeq": 1},
    "9999-99-99T99:99:99Z",
    2**63,
    -(2**63),
    "append",
    "user",
]


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Places of all values in a record."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        found += paths_of(below, (*path, key))
    return found


def with_odd_value(chance: random.Random, lines: list[bytes]) -> bytes:
    index = chance.randrange(len(lines))
    record = json.loads(lines[index])
    *way, last = chance.choice(paths_of(record))
    place = record
    for key in way:
        place = place[key]
    if chance.random() < 0.2:
        del place[last]
    else:
        place[last] = chance.choice(ODD_VALUES)
    return joined([*lines[:index], json.dumps(record).encode(), *lines[index + 1 :]])


def with_lines_moved(chance: random.Random, lines: list[bytes]) -> bytes:
    return joined(chance.choices(lines, k=len(lines) + chance.randrange(3)))


def with_bytes_flipped(chance: random.Random, lines: list[bytes]) -> bytes:
    content = bytearray(joined(lines))
    for _ in range(chance.randrange(1, 8)):
        content[chance.randrange(len(content))] = chance.randrange(256)
    return bytes(content)


def with_a_cut(chance: random.Random, lines: list[bytes]) -> bytes:
    content = joined(lines)
    start, end = sorted(chance.sample(range(len(content)), 2))
    return content[:start] + content[end:] if chance.random() < 0.5 else content[:end]


def spliced(chance: random.Random, lines: list[bytes]) -> bytes:
    content = joined(lines)
    return content[: chance.randrange(len(content))] + content[chance.randrange(len(content)) :]


MUTATIONS: list[Callable[[random.Random, list[bytes]], bytes]] = [
    with_odd_value,
    with_odd_value,
    with_odd_value,
    with_lines_moved,
    with_bytes_flipped,
    with_a_cut,
    spliced,
]


def joined(lines: list[bytes]) -> bytes:
    return b"".join(part + b"\n" for part in lines)


def lines_of(agent: Agent, number: int) -> list[bytes]:
    lines = agent.lines(agent.native_id(number), SAID)
    if agent.source == "dsh":
        return [*lines, dsh_title(5, "title"), dsh_checkpoint(6, "summary", 1, 2)]
    return lines


@pytest.mark.parametrize("agent", list(AGENTS.values()), ids=list(AGENTS))
async def test_mutated_logs_are_read_refused_or_left_out(
    serve: Serve, tmp_path: Path, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    LOGGER.propagate = True
    chance = random.Random(f"{agent.source} {SEED}")
    root = tmp_path / "logs"
    root.mkdir()
    lines: dict[str, int] = {agent.session_id(MUTANTS): len(SAID) * 3}
    for number in range(MUTANTS):
        mutant = chance.choice(MUTATIONS)(chance, lines_of(agent, number))
        lines[agent.session_id(number)] = mutant.count(b"\n") + 1
        (root / agent.file_name(number)).write_bytes(mutant)
    (root / agent.file_name(MUTANTS)).write_bytes(joined(lines_of(agent, MUTANTS)))
    outcomes: Counter[grpc.StatusCode] = Counter()
    async with serve({agent.source: root}) as served:
        found = await served.listed_ids(limit=1000, subagents=1)
        assert agent.session_id(MUTANTS) in found
        for session_id in {*found, *map(agent.session_id, range(MUTANTS))}:
            try:
                context = (await served.prepare(session_id)).additional_context
            except grpc.aio.AioRpcError as error:
                outcomes[error.code()] += 1
            else:
                outcomes[grpc.StatusCode.OK] += 1
                (preview,) = read_context(context).previews
                assert len(preview["conversation"]) <= lines.get(session_id, max(lines.values()))
    assert set(outcomes) <= {
        grpc.StatusCode.OK,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.FAILED_PRECONDITION,
    }
    assert outcomes[grpc.StatusCode.OK] > MUTANTS // 2
    # A reader that fails is caught, and its log refused; but none should.
    assert [record.getMessage() for record in caplog.records if "failed" in record.getMessage()] == []
