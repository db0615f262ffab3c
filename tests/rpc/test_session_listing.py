"""What is listed: no odd file, flood, link or clock hides a session or moves it to where it does not belong."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from rpc.agent_logs import (
    AGENTS,
    Agent,
    claude_lines,
    claude_record,
    codex_event,
    codex_lines,
    dsh_header,
    dsh_lines,
    dsh_user,
)
from rpc.failures import failure_of
from rpc.served import Serve, Served
from sessionref.v1 import candidate_pb2, reference_pb2

INCLUDE = candidate_pb2.SUBAGENT_VISIBILITY_INCLUDE
EXCLUDE = candidate_pb2.SUBAGENT_VISIBILITY_EXCLUDE

each_agent = pytest.mark.parametrize("agent", list(AGENTS.values()), ids=list(AGENTS))


def write(path: Path, lines: list[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


ODD_FILES: dict[str, Callable[[Path], None]] = {
    "named pipe": os.mkfifo,
    "directory": Path.mkdir,
    "socket": make_socket,
    "link to a pipe": lambda path: (os.mkfifo(path.with_suffix(".pipe")), path.symlink_to(path.with_suffix(".pipe")))[1],
    "link to nowhere": lambda path: path.symlink_to("/nonexistent/log"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to a directory above": lambda path: path.symlink_to(".."),
}


@each_agent
async def test_what_is_no_regular_file_is_no_session_and_stops_nobody(serve: Serve, tmp_path: Path, agent: Agent) -> None:
    root = tmp_path / "logs"
    write(root / agent.file_name(1), agent.lines(agent.native_id(1), [("user", "hello")]))
    for number, make in enumerate(ODD_FILES.values(), start=10):
        make(root / agent.file_name(number))
    async with serve({agent.source: root}) as served:
        assert await served.listed_ids(subagents=INCLUDE) == [agent.session_id(1)]
        health = health_pb2_grpc.HealthStub(served.channel)
        for number in range(10, 10 + len(ODD_FILES)):
            failure, answer = await asyncio.gather(
                failure_of(served.prepare(agent.session_id(number))), health.Check(health_pb2.HealthCheckRequest(), timeout=5)
            )
            assert (failure.code, failure.reason) == (grpc.StatusCode.NOT_FOUND, "SESSION_REFERENCE_READ_FAILED")
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


@each_agent
@pytest.mark.parametrize("make", list(ODD_FILES.values()), ids=list(ODD_FILES))
async def test_log_that_became_something_else_is_refused_at_once(
    serve: Serve, tmp_path: Path, agent: Agent, make: Callable[[Path], None]
) -> None:
    path = write(tmp_path / "logs" / agent.file_name(1), agent.lines(agent.native_id(1), [("user", "hello")]))
    async with serve({agent.source: path.parent}) as served:
        assert await served.listed_ids() == [agent.session_id(1)]
        path.unlink()
        make(path)
        assert (await failure_of(served.prepare(agent.session_id(1)))).reason == "SESSION_REFERENCE_READ_FAILED"


async def changed_until(served: Served, is_true: Callable[[list[str]], bool]) -> list[str]:
    """The list of sessions as soon as it is as wanted; the test's time limit is the last resort."""
    while not is_true(found := await served.listed_ids()):
        await served.application.catalog.wait_change(1.0)
    return found


@each_agent
async def test_new_and_deleted_sessions_are_noticed(serve: Serve, tmp_path: Path, agent: Agent) -> None:
    root = tmp_path / "logs"
    first = write(root / agent.file_name(1), agent.lines(agent.native_id(1), [("user", "hello")]))
    async with serve({agent.source: root}) as served:
        write(root / agent.file_name(2), agent.lines(agent.native_id(2), [("user", "hello")]))
        assert set(await changed_until(served, lambda found: len(found) == 2)) == {agent.session_id(1), agent.session_id(2)}
        first.unlink()
        assert await changed_until(served, lambda found: len(found) == 1) == [agent.session_id(2)]
        assert (await failure_of(served.prepare(agent.session_id(1)))).code == grpc.StatusCode.NOT_FOUND


@each_agent
async def test_order_follows_recorded_times_whatever_a_backup_did_to_the_files(
    serve: Serve, tmp_path: Path, agent: Agent
) -> None:
    days = {1: b"2026-08-30", 2: b"2026-08-31", 3: b"2026-09-01"}
    for number, day in days.items():
        lines = [
            line.replace(b"2026-09-01", day).replace(b"1790000000000", b"179000000%d000" % number)
            for line in agent.lines(agent.native_id(number), [("user", "hello")])
        ]
        path = write(tmp_path / "logs" / agent.file_name(number), lines)
        os.utime(path, (2_000_000_000 - number,) * 2)
    async with serve({agent.source: tmp_path / "logs"}) as served:
        assert await served.listed_ids() == [agent.session_id(number) for number in (3, 2, 1)]


async def test_two_thousand_helpers_bury_no_session_of_dsh(serve: Serve, tmp_path: Path) -> None:
    root = tmp_path / "logs"
    for number in range(2000):
        header = dsh_header(f"helper-{number:04d}", origin="subagent", delegationDepth=1, parentSession="real-1")
        write(root / f"helper-{number:04d}.jsonl", [header, dsh_user(1, "<purpose>check</purpose>")])
    real = {f"real-{number}" for number in (1, 2, 3)}
    for session_id in real:
        write(root / f"{session_id}.jsonl", dsh_lines(session_id, [("user", "How do we rotate the signing key?")]))
    async with serve({"dsh": root}) as served:
        first_page = await served.listed_ids(limit=50)
        assert (len(first_page), real - set(first_page)) == (50, set())
        assert set(await served.listed_ids(limit=50, subagents=EXCLUDE)) == real
        assert len(await served.listed_ids(limit=1000, subagents=INCLUDE)) == 1000


async def test_helpers_of_other_agents_are_listed_when_asked_for_only(serve: Serve, tmp_path: Path) -> None:
    claude, codex = tmp_path / "claude", tmp_path / "codex"
    parent = AGENTS["claude-code"].native_id(1)
    write(claude / "-work-app" / f"{parent}.jsonl", claude_lines(parent, [("user", "hello")]))
    write(codex / AGENTS["codex"].file_name(1), codex_lines(AGENTS["codex"].native_id(1), [("user", "hello")]))
    for number in range(2, 52):
        helper = [claude_record(parent, 0, "user", "look it up", agentId=f"a{number}", isSidechain=True)]
        write(claude / "-work-app" / parent / "subagents" / f"agent-a{number}.jsonl", helper)
        header, *rest = codex_lines(AGENTS["codex"].native_id(number), [("user", "look it up")])
        header = header.replace(b'"source":"cli"', b'"source":"cli","thread_source":"subagent"')
        write(codex / AGENTS["codex"].file_name(number), [header, *rest])
    async with serve({"claude-code": claude, "codex": codex}) as served:
        assert sorted(await served.listed_ids()) == [f"claude-code:{parent}", AGENTS["codex"].session_id(1)]
        assert len(await served.listed_ids(limit=1000, subagents=INCLUDE)) == 102
        helper_id = "claude-code:agent-a7"
        assert (await served.prepare(helper_id)).additional_context.source.references[0].session_id == helper_id


@pytest.mark.parametrize("link", ["home/app", "home/deep/app", "twice"], ids=["link", "link in a path", "link to a link"])
async def test_session_is_of_the_workspace_however_the_workspace_is_reached(serve: Serve, tmp_path: Path, link: str) -> None:
    place = tmp_path / "srv" / "app"
    place.mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "app").symlink_to("../srv/app")
    (tmp_path / "home" / "deep").symlink_to("../srv")
    (tmp_path / "twice").symlink_to("home/app")
    root = tmp_path / "logs"
    write(root / "s-7.jsonl", [dsh_header("s-7", cwd=str(place)), dsh_user(1, "here")])
    write(root / "s-8.jsonl", [dsh_header("s-8", cwd="/elsewhere", createdAt=1_790_000_000_009), dsh_user(1, "there")])
    write(root / "s-9.jsonl", [dsh_header("s-9", cwd=str(tmp_path / link)), dsh_user(1, "here too")])
    async with serve({"dsh": root}) as served:
        for cwd in (tmp_path / link, place):
            batch = await served.search(target=reference_pb2.Target(session_id="me", cwd=str(cwd)))
            found = [(candidate.session_id, candidate.same_workspace) for candidate in batch.sessions.candidates]
            assert found == [("s-7", True), ("s-9", True), ("s-8", False)]


INJECTED_FIRST: dict[str, tuple[str, list[bytes]]] = {
    "dsh plugin": (
        "dsh",
        [
            dsh_header(AGENTS["dsh"].native_id(1)),
            dsh_user(1, "<env-note>os=linux</env-note>", kind="plugin", plugin="env"),
            dsh_user(2, "typed"),
        ],
    ),
    "dsh kinds of version 4": (
        "dsh",
        [
            dsh_header(AGENTS["dsh"].native_id(1)),
            *(dsh_user(seq, f"<{kind}>", kind=kind) for seq, kind in enumerate(("recall", "goal", "skill", "team"), start=1)),
            dsh_user(9, "typed"),
        ],
    ),
    "claude caveat and command": (
        "claude-code",
        [
            claude_record("s", 0, "user", "<local-command-caveat>Caveat</local-command-caveat>", isMeta=True),
            claude_record("s", 1, "user", "<command-name>/clear</command-name>"),
            claude_record("s", 2, "user", "<local-command-stdout></local-command-stdout>"),
            claude_record("s", 3, "user", "<system-reminder>obey</system-reminder>"),
            claude_record("s", 4, "user", "typed"),
        ],
    ),
    "codex instructions and environment": (
        "codex",
        [
            codex_event(0, "session_meta", id=AGENTS["codex"].native_id(1), cwd="/work/app", source="cli"),
            *(
                codex_event(minute, "response_item", type="message", role="user", content=[{"type": "input_text", "text": text}])
                for minute, text in enumerate(
                    (
                        "# AGENTS.md instructions for /work/app\n\n<INSTRUCTIONS>obey</INSTRUCTIONS>",
                        "<environment_context><cwd>/work/app</cwd></environment_context>",
                        "typed",
                    ),
                    start=1,
                )
            ),
        ],
    ),
}


@pytest.mark.parametrize(("source", "lines"), list(INJECTED_FIRST.values()), ids=list(INJECTED_FIRST))
async def test_label_is_the_first_text_a_person_typed(serve: Serve, tmp_path: Path, source: str, lines: list[bytes]) -> None:
    agent = AGENTS[source]
    write(tmp_path / "logs" / agent.file_name(1), lines)
    async with serve({source: tmp_path / "logs"}) as served:
        (candidate,) = (await served.search()).sessions.candidates
        assert (candidate.label, candidate.display_title) == ("typed", "typed")
        context = (await served.prepare(candidate.session_id)).additional_context
        assert context.source.references[0].original_messages == 1
