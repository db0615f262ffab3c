"""From values to messages of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from google.protobuf.any_pb2 import Any
from google.protobuf.struct_pb2 import Struct
from sessionref.v1.candidate_pb2 import CandidateDomain, SubagentVisibility
from sessionref.v1.reference_pb2 import ContentBlock as BlockMessage
from sessionref.v1.reference_pb2 import ModelRoute as RouteMessage
from sessionref.v1.reference_pb2 import OpaqueBlock as OpaqueMessage
from sessionref.v1.reference_pb2 import SessionReferenceInput
from sessionref.v1.reference_pb2 import Target as TargetMessage
from sessionref.v1.session_reference_service_pb2 import PrepareRequest, ReadSnapshotRequest, SearchCandidatesRequest

from sessionref_client.candidate import Domain
from sessionref_client.content import ContentBlock, ImageBlock, OpaqueBlock, PackedMessage, TextBlock, UnknownBlock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionref_client.calls import SearchOptions, SnapshotOptions
    from sessionref_client.reference import SessionReference, Target

_DOMAINS = {
    Domain.FILES: CandidateDomain.CANDIDATE_DOMAIN_FILES,
    Domain.SESSIONS: CandidateDomain.CANDIDATE_DOMAIN_SESSIONS,
}
_SUBAGENTS = {
    None: SubagentVisibility.SUBAGENT_VISIBILITY_UNSPECIFIED,
    True: SubagentVisibility.SUBAGENT_VISIBILITY_INCLUDE,
    False: SubagentVisibility.SUBAGENT_VISIBILITY_EXCLUDE,
}


def search_request(query: str, options: SearchOptions) -> SearchCandidatesRequest:
    """What SearchCandidates takes."""
    target = options.get("target")
    return SearchCandidatesRequest(
        target=None if target is None else target_message(target),
        query=query,
        domains=[_DOMAINS[Domain(domain)] for domain in options.get("domains", ())],
        limit=options.get("limit"),
        sources=options.get("sources", ()),
        subagents=_SUBAGENTS[options.get("subagents")],
    )


def prepare_request(
    content: str | Iterable[str | ContentBlock],
    target: Target,
    references: Iterable[SessionReference],
    *,
    parse_mentions: bool,
) -> PrepareRequest:
    """What Prepare takes. One string is one text block."""
    blocks = (content,) if isinstance(content, str) else content
    return PrepareRequest(
        target=target_message(target),
        content=[block_message(block) for block in blocks],
        references=[SessionReferenceInput(session_id=each.session_id, label=each.label) for each in references],
        parse_mentions=parse_mentions,
    )


def snapshot_request(locator: str, owner_session_id: str, options: SnapshotOptions) -> ReadSnapshotRequest:
    """What ReadSnapshot takes."""
    return ReadSnapshotRequest(
        locator=locator,
        owner_session_id=owner_session_id,
        offset_bytes=options.get("offset_bytes"),
        chunk_bytes=options.get("chunk_bytes"),
        limit_bytes=options.get("limit_bytes"),
    )


def target_message(target: Target) -> TargetMessage:
    """The target, absent fields absent."""
    route = target.route
    return TargetMessage(
        session_id=target.session_id,
        cwd=target.cwd,
        route=None
        if route is None
        else RouteMessage(provider=route.provider, model=route.model, context_window_tokens=route.context_window_tokens),
    )


def block_message(block: str | ContentBlock) -> BlockMessage:
    """The block, over what it was received as when that holds more than this version knows."""
    if isinstance(block, str):
        block = TextBlock(block)
    message = BlockMessage.FromString(block.wire)
    match block:
        case TextBlock():
            message.text.text = block.text
        case ImageBlock():
            message.image.media_type = block.media_type
            if isinstance(block.source, str):
                message.image.uri = block.source
            elif block.source is not None:
                message.image.data = block.source
        case OpaqueBlock():
            _set_opaque(message.opaque, block)
        case UnknownBlock():
            pass
        case _:
            assert_never(block)
    return message


def _set_opaque(message: OpaqueMessage, block: OpaqueBlock) -> None:
    message.type = block.type
    match block.value:
        case None:
            pass
        case bytes():
            message.data = block.value
        case PackedMessage():
            message.message.MergeFrom(Any(type_url=block.value.type_url, value=block.value.value))
        case _:
            value = Struct()
            value.update(block.value)
            message.json.CopyFrom(value)
