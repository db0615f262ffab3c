"""The same damage done to the logs of every agent: what is intact is used, what is not is counted, and nobody else suffers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from rpc.agent_logs import AGENTS, Agent, Said, line
from rpc.context_text import read_context
from rpc.failures import failure_of
from rpc.served import Served, make_config, serving
from rpc.vector_rig import in_module_loop

SAID: list[Said] = [("user", "first question"), ("assistant", "first answer"), ("user", "second question")]
NEST = 20_000
OVER_CAP_BYTES = 33 * 1024 * 1024


def joined(lines: list[bytes]) -> bytes:
    return b"".join(part + b"\n" for part in lines)


def after_second_last(lines: list[bytes], inserted: bytes) -> bytes:
    """Put raw bytes between the last two lines."""
    return joined(lines[:-1]) + inserted + joined(lines[-1:])


def cut_record(lines: list[bytes]) -> bytes:
    return lines[-1][: len(lines[-1]) // 2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Bytes of a log with the damage, and what a reader has to say of it."""

    write: Callable[[list[bytes]], bytes]
    damaged: int = 0
    torn: bool = False


def with_fields(lines: list[bytes], fields: bytes) -> bytes:
    """More fields in the last record."""
    return joined([*lines[:-1], lines[-1][:-1] + b"," + fields + b"}"])


DAMAGES = {
    "none": Damage(write=joined),
    "CRLF line ends": Damage(write=lambda lines: joined(lines).replace(b"\n", b"\r\n")),
    "blank lines": Damage(write=lambda lines: b"\n" + joined(lines).replace(b"\n", b"\n\n  \n\t\n\r\n") + b"\n\n"),
    "byte order mark": Damage(write=lambda lines: b"\xef\xbb\xbf" + joined(lines)),
    "form feeds between records": Damage(write=lambda lines: joined(lines).replace(b"\n", b"\n\x0c\n")),
    "blanks around records": Damage(write=lambda lines: joined([b"  " + part + b" \t" for part in lines])),
    "a megabyte of blank lines": Damage(write=lambda lines: after_second_last(lines, b"\n" * 2**20)),
    "numbers that are none": Damage(write=lambda lines: with_fields(lines, b'"x":NaN,"y":-Infinity,"z":1e999')),
    "field that comes twice": Damage(write=lambda lines: with_fields(lines, b'"x":1,"x":{"y":2}')),
    "nested deep but readable": Damage(write=lambda lines: with_fields(lines, b'"x":' + b"[" * 500 + b"]" * 500)),
    "whole last record without its newline": Damage(write=lambda lines: joined(lines)[:-1]),
    "torn last record": Damage(write=lambda lines: joined(lines) + cut_record(lines), torn=True),
    "torn inside a character": Damage(write=lambda lines: joined(lines) + b'{"type":"user","text":"\xe4\xb8', torn=True),
    "one brace": Damage(write=lambda lines: joined(lines) + b"{", torn=True),
    "NUL run after a record": Damage(
        write=lambda lines: joined(lines[:-2]) + lines[-2] + bytes(4096) + b"\n" + joined(lines[-1:]), damaged=1
    ),
    "NUL run before a record": Damage(write=lambda lines: joined(lines[:-1]) + bytes(4096) + joined(lines[-1:]), damaged=1),
    "lines of NUL": Damage(write=lambda lines: after_second_last(lines, bytes(100) + b"\n" + bytes(5000) + b"\n"), damaged=2),
    "last block of NUL": Damage(write=lambda lines: joined(lines) + bytes(8192), torn=True),
    "NUL in the middle and at the end": Damage(
        write=lambda lines: after_second_last(lines, bytes(4096) + b"\n") + bytes(8192), damaged=1, torn=True
    ),
    "line that is no JSON": Damage(write=lambda lines: after_second_last(lines, b"not json at all\n"), damaged=1),
    "cut record that was closed": Damage(write=lambda lines: after_second_last(lines, cut_record(lines) + b"\n"), damaged=1),
    "line that is no object": Damage(write=lambda lines: after_second_last(lines, b"[1,2]\n"), damaged=1),
    "bytes that are no UTF-8": Damage(write=lambda lines: after_second_last(lines, b'{"type":"\xff\xfe"}\n'), damaged=1),
    "nested deeper than any reader goes": Damage(
        write=lambda lines: after_second_last(
            lines, b'{"type":"tool/result","seq":9,"data":' + b"[" * NEST + b"]" * NEST + b"}\n"
        ),
        damaged=1,
    ),
    "nested objects, never closed": Damage(write=lambda lines: after_second_last(lines, b'{"a":' * NEST + b"\n"), damaged=1),
    "line over the cap": Damage(
        write=lambda lines: after_second_last(lines, b'{"type":"x","data":"' + b"x" * OVER_CAP_BYTES + b'"}\n'), damaged=1
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    agent: Agent
    damage: Damage
    number: int

    @property
    def session_id(self) -> str:
        return self.agent.session_id(self.number)


CASES = {
    f"{name}: {description}": Case(agent=agent, damage=damage, number=number)
    for name, agent in AGENTS.items()
    for number, (description, damage) in enumerate(DAMAGES.items(), start=1)
}
each_case = pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served]:
    folder = tmp_path_factory.mktemp("damaged")
    roots = {name: folder / name for name in AGENTS}
    for root in roots.values():
        root.mkdir()
    for case in CASES.values():
        write(roots[case.agent.source], case)
    async with serving(make_config(folder, roots)) as served:
        yield served


def write(root: Path, case: Case) -> None:
    native_id = case.agent.native_id(case.number)
    (root / case.agent.file_name(case.number)).write_bytes(case.damage.write(case.agent.lines(native_id, SAID)))


@in_module_loop
@each_case
async def test_damaged_log_gives_all_that_is_intact_and_says_what_is_not(served: Served, case: Case) -> None:
    context = (await served.prepare(case.session_id)).additional_context
    (preview,) = read_context(context).previews
    assert [(message["role"], message["text"]) for message in preview["conversation"]] == SAID
    reading = context.source.references[0].reading
    assert (reading.damaged_records, reading.torn_tail) == (case.damage.damaged, case.damage.torn)
    assert (reading.unknown_records, list(reading.notes)) == (0, [])


@in_module_loop
async def test_every_damaged_log_is_listed(served: Served) -> None:
    assert sorted(await served.listed_ids(limit=1000)) == sorted(case.session_id for case in CASES.values())


UNREADABLE = {
    "no bytes": b"",
    "blank": b"\n\n \n",
    "NUL": bytes(5000),
    "NUL with a newline": bytes(5000) + b"\n",
    "no JSON": b"hello\nworld\n",
    "one torn line": b'{"type":"ses',
    "another program's lines": line({"type": "turn_state", "state": "idle"}) + b"\n",
    "a JSON array": b"[1,2,3]\n",
    "a JSON document over lines": json.dumps({"a": [1, 2, 3]}, indent=2).encode(),
    "a newer version": line({"type": "session", "version": 99, "id": "n", "createdAt": 1, "delegationDepth": 0}) + b"\n",
    "binary": bytes(range(256)) * 64,
    "zstd magic and nothing else": b"\x28\xb5\x2f\xfd",
    "nothing but brackets": b"[" * 500_000,
}


@pytest.mark.parametrize("name", sorted(AGENTS))
async def test_logs_that_are_none_hide_no_other_and_are_never_prepared(name: str, tmp_path: Path) -> None:
    agent, root = AGENTS[name], tmp_path / "logs"
    root.mkdir()
    for number, content in enumerate(UNREADABLE.values(), start=10):
        (root / agent.file_name(number)).write_bytes(content)
    for number in (1, 2):
        (root / agent.file_name(number)).write_bytes(joined(agent.lines(agent.native_id(number), SAID)))
    good = {agent.session_id(1), agent.session_id(2)}
    async with serving(make_config(tmp_path, {name: root})) as served:
        batch = await served.search(limit=1000)
        found = {candidate.session_id for candidate in batch.sessions.candidates}
        (status,) = batch.source_statuses
        assert good <= found
        assert (status.ready, status.failure) == (True, "")
        assert status.listed_sessions == len(found)
        assert status.unreadable_sessions + status.empty_sessions == len(UNREADABLE)
        for session_id in (found - good) | {agent.session_id(number) for number in range(10, 10 + len(UNREADABLE))}:
            assert (await failure_of(served.prepare(session_id))).reason == "SESSION_REFERENCE_READ_FAILED"
