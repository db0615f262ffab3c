"""From requests to domain values. Everything malformed is refused here, by the name of its field."""

from __future__ import annotations

from collections.abc import Sequence

from sessionref.v1 import candidate_pb2, reference_pb2
from sessionref.v1 import session_reference_service_pb2 as service_pb2

from sessionref_server.domain.errors import InvalidReferenceError, InvalidRequestError, TooManyReferencesError
from sessionref_server.domain.limits import (
    MAX_CANDIDATES,
    MAX_CONTENT_BLOCKS,
    MAX_LISTED_REFERENCES,
    MAX_NAMED_SOURCES,
    MAX_QUERY_BYTES,
    MAX_SNAPSHOT_CHUNK_BYTES,
    MAX_TEXTS,
    SNAPSHOT_CHUNK_BYTES,
    check_limit,
)
from sessionref_server.domain.reference import Content, OpaqueContent, SessionReference, TextContent
from sessionref_server.domain.session import ModelRoute, SessionId
from sessionref_server.service.prepare import PrepareCall, Target
from sessionref_server.service.session_catalog import SessionQuery

FILES = candidate_pb2.CANDIDATE_DOMAIN_FILES
SESSIONS = candidate_pb2.CANDIDATE_DOMAIN_SESSIONS
_INCLUDE_SUBAGENTS = {
    candidate_pb2.SUBAGENT_VISIBILITY_UNSPECIFIED: None,
    candidate_pb2.SUBAGENT_VISIBILITY_INCLUDE: True,
    candidate_pb2.SUBAGENT_VISIBILITY_EXCLUDE: False,
}


def domains(requested: Sequence[int]) -> frozenset[int]:
    """Domains a search wants; none named means both."""
    if len(requested) > MAX_NAMED_SOURCES:
        raise InvalidRequestError(f"more than {MAX_NAMED_SOURCES} domains", field="domains")
    known = {domain for domain in requested if domain in (FILES, SESSIONS)}
    return frozenset(known or (FILES, SESSIONS))


def session_query(request: service_pb2.SearchCandidatesRequest, default_limit: int) -> SessionQuery:
    """What a search asks of sessions.

    Args:
        request: the request.
        default_limit: candidates when the request does not say.
    """
    return SessionQuery(
        target_id=request.target.session_id,
        target_cwd=request.target.cwd if request.target.HasField("cwd") else None,
        limit=_limit(request, default_limit),
        text=_query(request.query),
        sources=_sources(request.sources),
        subagents=_include_subagents(request.subagents),
    )


def _sources(named: Sequence[str]) -> tuple[str, ...]:
    """The sources a search names, each once."""
    if len(named) > MAX_NAMED_SOURCES:
        raise InvalidRequestError(f"more than {MAX_NAMED_SOURCES} sources", field="sources")
    return tuple(dict.fromkeys(named))


def _limit(request: service_pb2.SearchCandidatesRequest, default: int) -> int:
    if not request.HasField("limit"):
        return default
    return min(check_limit(request.limit), MAX_CANDIDATES)


def _query(text: str) -> str:
    if len(text) > MAX_QUERY_BYTES or len(text.encode()) > MAX_QUERY_BYTES:
        raise InvalidRequestError(f"query is longer than {MAX_QUERY_BYTES} bytes", field="query")
    return text


def _include_subagents(visibility: int) -> bool | None:
    """Whether subagents are offered; ``None`` leaves it to each source. An unknown value is refused."""
    if visibility not in _INCLUDE_SUBAGENTS:
        raise InvalidRequestError("subagents has an unknown value", field="subagents")
    return _INCLUDE_SUBAGENTS[candidate_pb2.SubagentVisibility.ValueType(visibility)]


def prepare_call(request: service_pb2.PrepareRequest) -> PrepareCall:
    """A Prepare request."""
    if len(request.content) > MAX_CONTENT_BLOCKS:
        raise InvalidRequestError(f"more than {MAX_CONTENT_BLOCKS} content blocks", field="content")
    if len(request.references) > MAX_LISTED_REFERENCES:
        count = len(request.references)
        raise TooManyReferencesError("far too many references are listed", count=count, maximum=MAX_LISTED_REFERENCES)
    return PrepareCall(
        target=_target(request.target),
        content=tuple(_content(block, index) for index, block in enumerate(request.content)),
        references=tuple(
            SessionReference(reference.session_id, reference.label if reference.HasField("label") else None)
            for reference in request.references
        ),
        parse_mentions=request.parse_mentions,
    )


def texts(request: service_pb2.ParseMentionsRequest) -> Sequence[str]:
    """Texts to parse."""
    if len(request.texts) > MAX_TEXTS:
        raise InvalidRequestError(f"more than {MAX_TEXTS} texts", field="texts")
    return request.texts


def snapshot_range(request: service_pb2.ReadSnapshotRequest) -> tuple[int, int, int | None]:
    """Offset, chunk size and total limit of a snapshot read, in bytes."""
    offset = request.offset_bytes if request.HasField("offset_bytes") else 0
    chunk = request.chunk_bytes if request.HasField("chunk_bytes") else SNAPSHOT_CHUNK_BYTES
    total = request.limit_bytes if request.HasField("limit_bytes") else None
    if offset < 0:
        raise InvalidRequestError("offset_bytes is negative", field="offset_bytes")
    if not 0 < chunk <= MAX_SNAPSHOT_CHUNK_BYTES:
        raise InvalidRequestError(f"chunk_bytes is not from 1 to {MAX_SNAPSHOT_CHUNK_BYTES}", field="chunk_bytes")
    if total is not None and total <= 0:
        raise InvalidRequestError("limit_bytes is not positive", field="limit_bytes")
    return offset, chunk, total


def _target(target: reference_pb2.Target) -> Target:
    if not target.session_id:
        raise InvalidRequestError("target.session_id is empty", field="target.session_id")
    route = target.route
    window = route.context_window_tokens if route.HasField("context_window_tokens") else None
    if window is not None and window <= 0:
        field = "target.route.context_window_tokens"
        raise InvalidReferenceError(f"{field} must be positive", field=field)
    return Target(
        session_id=SessionId(target.session_id),
        route=ModelRoute(
            provider=route.provider if route.HasField("provider") else None,
            model=route.model if route.HasField("model") else None,
        ),
        context_window_tokens=window,
    )


def _content(block: reference_pb2.ContentBlock, index: int) -> Content:
    kind = block.WhichOneof("block")
    if kind == "text":
        return TextContent(block.text.text)
    if kind is None and not block.ByteSize():
        raise InvalidRequestError(f"content[{index}] is empty", field="content", index=index)
    detached = reference_pb2.ContentBlock()
    detached.CopyFrom(block)
    return OpaqueContent(detached)
