"""A word that stands in everything a client and a log say, and is looked for in everything the server says to others."""

from __future__ import annotations

import logging
from pathlib import Path

import grpc
import pytest
from rpc.agent_logs import dsh_header, dsh_title, dsh_user
from rpc.failures import DETAILS_KEY
from rpc.served import Serve
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import (
    GetServiceInfoRequest,
    ParseMentionsRequest,
    PrepareRequest,
    ReadSnapshotRequest,
    SearchCandidatesRequest,
)
from sessionref_server.telemetry import LOGGER

CANARY = "xyzzy-canary-7261"


def write_logs(root: Path) -> None:
    root.mkdir()
    lines = [dsh_header("good", cwd=f"/work/{CANARY}"), dsh_user(1, CANARY), dsh_title(2, CANARY)]
    (root / "good.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    (root / f"{CANARY}.jsonl").write_text(f'{{"type": "session", "{CANARY}": ')
    (root / "damaged.jsonl.zstd").write_bytes(CANARY.encode() * 100)
    (root / "broken.jsonl").write_bytes(dsh_header("broken") + b"\n" + CANARY.encode() + b"\n")


async def test_nothing_of_callers_or_logs_reaches_events_errors_or_standard_error(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / CANARY
    write_logs(root)
    LOGGER.propagate = True
    caplog.set_level(logging.DEBUG)
    told: list[bytes] = []
    async with serve({"dsh": root, "codex": tmp_path / f"missing-{CANARY}"}, prepare__max_reference_bytes="100") as served:
        target = reference_pb2.Target(session_id=f"me-{CANARY}", cwd=f"/{CANARY}")
        text = reference_pb2.ContentBlock(text=reference_pb2.TextBlock(text=f"@[{CANARY}](dsh-session:{CANARY})"))
        good = [reference_pb2.SessionReferenceInput(session_id="good", label=CANARY)]
        unary = [
            (served.stub.Prepare, PrepareRequest(target=target, content=[text], parse_mentions=True)),
            (served.stub.Prepare, PrepareRequest(target=target, references=good)),
            (served.stub.Prepare, PrepareRequest(target=target, references=[{"session_id": "broken"}, {"session_id": "x"}])),
            (served.stub.ParseMentions, ParseMentionsRequest(texts=[f"dsh-session:{CANARY}"])),
            (served.stub.GetServiceInfo, GetServiceInfoRequest()),
        ]
        streams = [
            (served.stub.SearchCandidates, SearchCandidatesRequest(query=CANARY * 100)),
            (served.stub.SearchCandidates, SearchCandidatesRequest(sources=[CANARY])),
            (served.stub.ReadSnapshot, ReadSnapshotRequest(locator=CANARY, owner_session_id="me")),
        ]
        metadata = (("x-request-id", f"{CANARY}/not an id"), ("authorization", f"Bearer {CANARY}"))
        for method, request in unary:
            try:
                answer = await method(request, metadata=metadata, timeout=10)
                told.append(answer.SerializeToString() if method == served.stub.GetServiceInfo else b"")
            except grpc.aio.AioRpcError as error:
                told += refusal(error)
        for method, request in streams:
            try:
                async for _ in method(request, metadata=metadata, timeout=10):
                    pass
            except grpc.aio.AioRpcError as error:
                told += refusal(error)
        statuses = (await served.search()).source_statuses
        told += [status.SerializeToString() for status in statuses]
    said = capfd.readouterr()
    events = "".join(f"{record.getMessage()}{vars(record)}" for record in caplog.records if record.name != "asyncio")
    assert CANARY not in said.out + said.err + events
    assert [message for message in told if CANARY.encode() in message] == []
    assert len(told) > len(unary)


def refusal(error: grpc.aio.AioRpcError) -> list[bytes]:
    trailing = dict(error.trailing_metadata() or ())
    details = trailing[DETAILS_KEY]
    assert isinstance(details, bytes)
    return [details, (error.details() or "").encode(), repr(trailing).encode()]
