"""The real server on a real socket, built as production builds it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
from sessionref.v1 import reference_pb2
from sessionref.v1 import session_reference_service_pb2 as service_pb2
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceStub
from sessionref_server.bootstrap import Application, running
from sessionref_server.config import SOURCE_NAMES, Config, load_config
from sessionref_server.domain.ports import ModelCatalogue, SessionSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server and a channel to it."""

    application: Application
    channel: grpc.aio.Channel
    stub: SessionReferenceServiceStub

    async def search(self, query: str = "", **fields: Any) -> service_pb2.SearchCandidatesResponse:
        """The last batch of sessions."""
        target = fields.pop("target", None) or reference_pb2.Target()
        request = service_pb2.SearchCandidatesRequest(query=query, target=target, domains=[2], **fields)
        batches = [batch async for batch in self.stub.SearchCandidates(request, timeout=10)]
        assert [batch.partial for batch in batches] == [True] * (len(batches) - 1) + [False]
        return batches[-1]

    async def listed_ids(self, query: str = "", **fields: Any) -> list[str]:
        """Ids of the candidates, in order."""
        batch = await self.search(query, **fields)
        return [candidate.session_id for candidate in batch.sessions.candidates]

    async def prepare(self, *session_ids: str, target: str = "me", **fields: Any) -> service_pb2.PrepareResponse:
        """Prepare with structured references."""
        references = [reference_pb2.SessionReferenceInput(session_id=session_id) for session_id in session_ids]
        request = service_pb2.PrepareRequest(target=reference_pb2.Target(session_id=target), references=references, **fields)
        return await self.stub.Prepare(request, timeout=20)

    async def read_snapshot(self, locator: str, owner: str, **fields: Any) -> bytes:
        """A saved transcript, or a part of it."""
        request = service_pb2.ReadSnapshotRequest(locator=locator, owner_session_id=owner, **fields)
        return b"".join([chunk.data async for chunk in self.stub.ReadSnapshot(request, timeout=20)])


Serve = Callable[..., AbstractAsyncContextManager[Served]]


def make_config(folder: Path, roots: dict[str, Path], **flags: str) -> Config:
    """Only the named sources are read, from the given folders; all is kept in ``folder``."""
    given = {
        "listen.addresses": f"unix:{folder}/s",
        "cache.folder": str(folder / "cache"),
        "spill.folder": str(folder / "spill"),
        "workers.processes": "2",
    }
    for name in SOURCE_NAMES:
        given[f"sources.{name}.enabled"] = str(name in roots).lower()
        given[f"sources.{name}.redact"] = "false"
        if name in roots:
            given[f"sources.{name}.roots"] = str(roots[name])
    given |= {key.replace("__", "."): value for key, value in flags.items()}
    return load_config(flags=given)[0]


@asynccontextmanager
async def serving(
    config: Config, *, sources: Sequence[SessionSource] | None = None, models: ModelCatalogue | None = None
) -> AsyncGenerator[Served]:
    """Run the server and connect to it."""
    async with (
        running(config, sources=sources, models=models) as application,
        grpc.aio.insecure_channel(
            application.server.addresses[0], options=[("grpc.max_receive_message_length", 64 * 1024 * 1024)]
        ) as channel,
    ):
        await application.catalog.wait_ready()
        yield Served(application=application, channel=channel, stub=SessionReferenceServiceStub(channel))
