"""SessionReferenceService: each method checks, calls a use case, translates."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from sessionref.v1 import session_reference_service_pb2 as service_pb2
from sessionref.v1.session_reference_service_pb2_grpc import SessionReferenceServiceServicer

from sessionref_server import __version__
from sessionref_server.domain.errors import NotServedError, UnknownSessionError
from sessionref_server.domain.limits import MAX_CANDIDATES, MAX_QUERY_BYTES, MAX_REQUEST_BYTES
from sessionref_server.domain.ports import SpillStore
from sessionref_server.domain.session import SessionId
from sessionref_server.service.prepare import PrepareLimits, PrepareService
from sessionref_server.service.session_catalog import SessionCatalog, SessionQuery
from sessionref_server.wire import decode, encode
from sessionref_server.wire.guard import Calls, Context, guarded, remaining_seconds
from sessionref_server.wire.status import status_of

_FIRST_SCAN_PATIENCE_SECONDS = 2.0
"""How long a search goes on sending better batches while the first scan of a source runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """What GetServiceInfo says of the configuration."""

    prepare: PrepareLimits
    session_candidates: int
    concurrent_prepares: int
    snapshot_lifetime_seconds: float | None


class ReferenceService(SessionReferenceServiceServicer):
    """The servicer."""

    def __init__(
        self, calls: Calls, facts: ServiceFacts, *, catalog: SessionCatalog, prepare: PrepareService, spill: SpillStore | None
    ) -> None:
        self.calls = calls
        self._facts = facts
        self._catalog = catalog
        self._prepare = prepare
        self._spill = spill

    @guarded
    async def SearchCandidates(self, request: service_pb2.SearchCandidatesRequest, context: Context) -> bytes:  # noqa: N802
        """Stream the batches of one query; the last one is returned, the others are written.

        What is ready goes first; a malformed request fails whatever domain it is for.
        """
        wanted = decode.domains(request.domains)
        query = decode.session_query(request, self._facts.session_candidates)
        self._catalog.check_names(query.sources)
        files = b""
        if decode.FILES in wanted:
            files = encode.failed_files_batch(status_of(NotServedError("file candidates are not in this release")))
        if decode.SESSIONS not in wanted:
            return files
        if files:
            await context.write(files)
        return await self._search_sessions(query, context)

    async def _search_sessions(self, query: SessionQuery, context: Context) -> bytes:
        patience_ends = monotonic() + min(_FIRST_SCAN_PATIENCE_SECONDS, remaining_seconds.get()() / 2)
        while True:
            result = self._catalog.search(query)
            waiting = not result.complete and monotonic() < patience_ends
            batch = encode.sessions_batch(result.found, result.checks, partial=waiting)
            if not waiting:
                return batch
            await context.write(batch)
            await self._catalog.wait_change(min(patience_ends - monotonic(), result.better_within_seconds), result.state)

    @guarded
    async def CompleteMentions(self, request_iterator: object, context: Context) -> None:  # noqa: ARG002, N802
        """Not in this release."""
        raise NotServedError("CompleteMentions is not in this release")

    @guarded
    async def Prepare(self, request: service_pb2.PrepareRequest, context: Context) -> None:  # noqa: N802
        """Prepare one message. A caller that leaves while the answer is being sent was told of nothing either."""
        result = await self._prepare.prepare(decode.prepare_call(request), remaining_seconds.get()())
        try:
            await context.write(encode.prepared(result))
        except BaseException:
            result.undo()
            raise

    @guarded
    async def ParseMentions(  # noqa: N802
        self,
        request: service_pb2.ParseMentionsRequest,
        context: Context,  # noqa: ARG002
    ) -> service_pb2.ParseMentionsResponse:
        """Read texts."""
        parsed = await self._prepare.mentions.parse(decode.texts(request))
        return service_pb2.ParseMentionsResponse(texts=[encode.parsed_text(text) for text in parsed])

    @guarded
    async def ReadSnapshot(self, request: service_pb2.ReadSnapshotRequest, context: Context) -> None:  # noqa: N802
        """Stream a saved transcript."""
        offset, chunk_bytes, limit = decode.snapshot_range(request)
        owner = SessionId(request.owner_session_id)
        if self._spill is None:
            raise UnknownSessionError("no such snapshot", session_id=owner)
        end = None if limit is None else offset + limit
        while True:
            size = chunk_bytes if end is None else min(chunk_bytes, end - offset)
            data, total = await self._spill.read(request.locator, owner, offset, size)
            await context.write(service_pb2.ReadSnapshotResponse(data=data, offset_bytes=offset, total_bytes=total))
            offset += len(data)
            if not data or offset >= total or offset == end:
                return

    @guarded
    async def GetServiceInfo(  # noqa: N802
        self,
        request: service_pb2.GetServiceInfoRequest,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> service_pb2.GetServiceInfoResponse:
        """Say what this server is."""
        return service_pb2.GetServiceInfoResponse(
            version=__version__,
            limits=self._limits(),
            sources=[encode.source_status(check) for check in self._catalog.checks()],
        )

    def _limits(self) -> service_pb2.ServiceLimits:
        facts = self._facts
        limits = service_pb2.ServiceLimits(
            maximum_references=facts.prepare.max_references,
            maximum_reference_bytes=facts.prepare.max_reference_bytes,
            reference_context_fraction=facts.prepare.reference_context_fraction,
            default_session_candidates=facts.session_candidates,
            maximum_candidates=MAX_CANDIDATES,
            maximum_query_bytes=MAX_QUERY_BYTES,
            maximum_request_bytes=MAX_REQUEST_BYTES,
            maximum_concurrent_prepares=facts.concurrent_prepares,
        )
        limits.maximum_call_duration.FromMilliseconds(round(self.calls.max_seconds * 1000))
        if facts.snapshot_lifetime_seconds is not None:
            limits.snapshot_lifetime.FromMilliseconds(round(facts.snapshot_lifetime_seconds * 1000))
        return limits
