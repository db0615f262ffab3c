"""One running server for all cases of the golden vectors; its sessions and limits change from case to case."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from fakes.shelf_session_source import ShelfSessionSource
from fakes.window_catalogue import WindowCatalogue
from rpc.context_text import read_context
from rpc.served import Served, make_config, serving
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub
from sessionref_server.adapters.sessions.formats.dsh.surface import message_of_event
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.session import SessionHead, SessionId
from sessionref_server.service.prepare import PrepareLimits
from sessionref_server.wire.guard import Calls
from sessionref_server.wire.listen import parse_listener
from sessionref_server.wire.reference_service import ReferenceService, ServiceFacts
from sessionref_server.wire.server import start_server

in_module_loop = pytest.mark.asyncio(loop_scope="module")
"""Mark of the tests that share a module's rig."""


class VectorRig:
    def __init__(self, served: Served, source: ShelfSessionSource, models: WindowCatalogue, stack: AsyncExitStack) -> None:
        self.served = served
        self.source = source
        self.models = models
        self._stack = stack
        self._stubs: dict[tuple[object, ...], SessionReferenceServiceStub] = {}

    async def stub(
        self, *, limits: PrepareLimits | None = None, session_candidates: int = 50, spill: bool = True
    ) -> SessionReferenceServiceStub:
        """The same server under other limits: a second front door to everything behind it."""
        limits = limits or PrepareLimits()
        key = (limits, session_candidates, spill)
        if key not in self._stubs:
            self._stubs[key] = await self._open(limits, session_candidates, spill=spill)
        return self._stubs[key]

    async def _open(self, limits: PrepareLimits, session_candidates: int, *, spill: bool) -> SessionReferenceServiceStub:
        application = self.served.application
        prepare = replace(application.prepare, limits=limits)
        if not spill:
            snapshots = type(prepare.snapshots)(None, prepare.mentions._offload, captures_bytes=0)
            prepare = replace(prepare, snapshots=snapshots)
        facts = ServiceFacts(
            prepare=limits, session_candidates=session_candidates, concurrent_prepares=8, snapshot_lifetime_seconds=None
        )
        calls = Calls(20.0)
        service = ReferenceService(calls, facts, catalog=application.catalog, prepare=prepare, spill=application.spill)
        address = f"{application.server.addresses[0]}{len(self._stubs)}"
        server = await start_server(service, [parse_listener(address)], calls=calls, with_reflection=False)
        self._stack.push_async_callback(server.grpc_server.stop, 0)
        channel = await self._stack.enter_async_context(grpc.aio.insecure_channel(server.addresses[0]))
        return SessionReferenceServiceStub(channel)


@asynccontextmanager
async def running_rig(folder: Path) -> AsyncGenerator[VectorRig]:
    source, models = ShelfSessionSource(), WindowCatalogue()
    config = make_config(folder, {}, workers__processes="1")
    async with serving(config, sources=[source], models=models) as served, AsyncExitStack() as stack:
        yield VectorRig(served, source, models, stack)


def capture_of(session: dict[str, Any], snapshot: dict[str, Any]) -> Capture:
    messages = map(message_of_event, snapshot["events"])
    return Capture(
        session_id=SessionId(session["id"]),
        cwd=session.get("cwd"),
        format_version=session.get("version", 0),
        through_seq=snapshot["capturedThroughSeq"],
        conversation=Conversation.of(message for message in messages if message is not None),
    )


def fill(source: ShelfSessionSource, sessions: Iterable[dict[str, Any]], further: Iterable[SessionHead] = ()) -> None:
    """Put a vector's sessions on the shelf."""
    sessions = list(sessions)
    heads = [
        SessionHead(
            session_id=SessionId(session["header"]["id"]),
            source=source.name,
            cwd=session["header"].get("cwd"),
            created_at_ms=session["header"]["createdAt"],
        )
        for session in sessions
    ]
    source.fill([*heads, *further], [capture_of(session["header"], session["snapshot"]) for session in sessions])
    source.unavailable = {SessionId(session["header"]["id"]) for session in sessions if "fail" in session}


def described_context(message: reference_pb2.ContextMessage) -> dict[str, Any]:
    """A context message in the words of the vectors, without prose, fresh ids and places."""
    text = read_context(message)
    return {
        "role": "user",
        "blocks": len(message.content),
        "source": {
            "kind": message.source.kind,
            "form": message.source.form,
            "version": message.source.version,
            "references": [_described_reference(reference) for reference in message.source.references],
        },
        "data": text.previews,
        "notices": text.notices,
        "jsonBytes": text.previews_bytes,
    }


def stats_of(reference: reference_pb2.CapturedReference) -> dict[str, Any]:
    return {
        "compacted": reference.compacted,
        "originalMessages": reference.original_messages,
        "retainedMessages": reference.retained_messages,
        "omittedMessages": reference.omitted_messages,
        "omittedBytes": reference.omitted_bytes,
        "truncated": reference.truncated,
    }


def _described_reference(reference: reference_pb2.CapturedReference) -> dict[str, Any]:
    return {
        "sessionId": reference.session_id,
        "label": reference.label,
        "capturedFormatVersion": reference.captured_format_version,
        "capturedThroughSeq": reference.captured_through_seq if reference.HasField("captured_through_seq") else None,
        **stats_of(reference),
        "inputIndex": reference.input_index,
    }
