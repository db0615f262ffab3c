"""The real server on a real socket, built as production builds it, for one test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
import pytest
from sessionref.v1 import reference_pb2, session_reference_service_pb2
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub

from sessionref_server.bootstrap import Application, running
from sessionref_server.config import SOURCE_NAMES, Config, load_config


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server and a channel to it."""

    application: Application
    channel: grpc.aio.Channel
    stub: SessionReferenceServiceStub

    async def search(self, query: str = "", **fields: object) -> session_reference_service_pb2.SearchCandidatesResponse:
        """The last batch of sessions."""
        target = fields.pop("target", None) or reference_pb2.Target()
        request = session_reference_service_pb2.SearchCandidatesRequest(query=query, target=target, domains=[2], **fields)
        batches = [batch async for batch in self.stub.SearchCandidates(request, timeout=10)]
        assert [batch.partial for batch in batches] == [True] * (len(batches) - 1) + [False]
        return batches[-1]

    async def prepare(
        self, *session_ids: str, target: str = "me", **fields: object
    ) -> session_reference_service_pb2.PrepareResponse:
        """Prepare with structured references."""
        references = [reference_pb2.SessionReferenceInput(session_id=session_id) for session_id in session_ids]
        request = session_reference_service_pb2.PrepareRequest(
            target=reference_pb2.Target(session_id=target), references=references, **fields
        )
        return await self.stub.Prepare(request, timeout=20)


Serve = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture
def config_for(tmp_path: Path) -> Callable[..., Config]:
    """A configuration in which only the named sources are read, from the given folders, and all is kept in tmp_path."""

    def make(roots: dict[str, Path], **flags: str) -> Config:
        given = {
            "listen.addresses": f"unix:{tmp_path}/s",
            "cache.folder": str(tmp_path / "cache"),
            "spill.folder": str(tmp_path / "spill"),
            "workers.processes": "2",
        }
        for name in SOURCE_NAMES:
            given[f"sources.{name}.enabled"] = str(name in roots).lower()
            given[f"sources.{name}.redact"] = "false"
            if name in roots:
                given[f"sources.{name}.roots"] = str(roots[name])
        given |= {key.replace("__", "."): value for key, value in flags.items()}
        return load_config(flags=given)[0]

    return make


@pytest.fixture
def serve(config_for: Callable[..., Config]) -> Serve:
    """Serve folders: ``async with serve({"dsh": folder}, prepare__max_references="2") as served``."""

    @asynccontextmanager
    async def start(roots: dict[str, Path], **flags: str) -> AsyncGenerator[Served]:
        config = config_for(roots, **flags)
        async with (
            running(config) as application,
            grpc.aio.insecure_channel(
                application.server.addresses[0], options=[("grpc.max_receive_message_length", 64 * 1024 * 1024)]
            ) as channel,
        ):
            await application.catalog.wait_ready()
            yield Served(application=application, channel=channel, stub=SessionReferenceServiceStub(channel))

    return start
