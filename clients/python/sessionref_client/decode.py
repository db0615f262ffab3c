"""From messages of the contract to values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionref.v1 import candidate_pb2 as candidate_message
from sessionref.v1 import reference_pb2 as reference_message

from sessionref_client.candidate import Domain, FileCandidate, FileKind, SearchBatch, SessionCandidate, SourceStatus
from sessionref_client.content import (
    ContentBlock,
    ImageBlock,
    JsonValue,
    OpaqueBlock,
    PackedMessage,
    TextBlock,
    UnknownBlock,
)
from sessionref_client.reference import (
    CapturedReference,
    ContextMessage,
    FileMention,
    Omission,
    ParsedText,
    Prepared,
    ReadingFacts,
    SavedSnapshot,
    SessionReference,
    SessionReferenceSource,
    SnapshotChunk,
    SnapshotUnavailable,
    Trust,
)
from sessionref_client.service import ServiceInfo, ServiceLimits
from sessionref_client.status import error_from_status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.duration_pb2 import Duration
    from google.protobuf.struct_pb2 import Struct, Value
    from sessionref.v1 import session_reference_service_pb2 as service_message

_FILE_KINDS: dict[int, FileKind] = {
    candidate_message.FILE_KIND_FILE: FileKind.FILE,
    candidate_message.FILE_KIND_DIRECTORY: FileKind.DIRECTORY,
}
_UNAVAILABLE: dict[int, SnapshotUnavailable] = {
    reference_message.SNAPSHOT_UNAVAILABLE_REASON_STORAGE_NOT_CONFIGURED: SnapshotUnavailable.STORAGE_NOT_CONFIGURED,
    reference_message.SNAPSHOT_UNAVAILABLE_REASON_SAVE_FAILED: SnapshotUnavailable.SAVE_FAILED,
}


def search_batch(message: service_message.SearchCandidatesResponse) -> SearchBatch:
    """One batch of a search."""
    kind = message.WhichOneof("candidates")
    return SearchBatch(
        domain=None if kind is None else Domain(kind),
        sessions=tuple(_session_candidate(each) for each in message.sessions.candidates),
        files=tuple(_file_candidate(each) for each in message.files.candidates),
        partial=message.partial,
        truncated=message.truncated,
        source_statuses=tuple(_source_status(each) for each in message.source_statuses),
        error=error_from_status(message.status) if message.status.code else None,
    )


def sessions_of(last: SearchBatch | None) -> list[SessionCandidate]:
    """The sessions of the last batch of a search for sessions. Raises the error of the domain."""
    if last is None:
        return []
    if last.error is not None:
        raise last.error
    return list(last.sessions)


def _session_candidate(message: candidate_message.SessionReferenceCandidate) -> SessionCandidate:
    return SessionCandidate(
        session_id=message.session_id,
        label=message.label,
        display_title=message.display_title,
        cwd=message.cwd if message.HasField("cwd") else None,
        same_workspace=message.same_workspace,
        created_at_ms=message.created_at_ms,
        mention=message.mention,
        source=message.source,
        updated_at_ms=message.updated_at_ms if message.HasField("updated_at_ms") else None,
    )


def _file_candidate(message: candidate_message.FileReferenceCandidate) -> FileCandidate:
    return FileCandidate(
        path=message.path,
        kind=_FILE_KINDS.get(message.kind, FileKind.UNKNOWN),
        mention=message.mention,
        display_path=message.display_path,
    )


def _source_status(message: candidate_message.SourceStatus) -> SourceStatus:
    return SourceStatus(
        source=message.source,
        ready=message.ready,
        listed_sessions=message.listed_sessions,
        unreadable_sessions=message.unreadable_sessions,
        damaged_sessions=message.damaged_sessions,
        too_new_sessions=message.too_new_sessions,
        empty_sessions=message.empty_sessions,
        failure=message.failure,
    )


def parsed_text(message: service_message.ParsedText) -> ParsedText:
    """One text, read."""
    return ParsedText(
        text=message.text,
        references=tuple(
            SessionReference(session_id=each.session_id, label=each.label if each.HasField("label") else None)
            for each in message.references
        ),
        files=tuple(FileMention(path=each.path, quoted=each.quoted) for each in message.files),
    )


def prepared(message: service_message.PrepareResponse) -> Prepared:
    """What to send to the model."""
    has_context = message.HasField("additional_context")
    return Prepared(
        content=_blocks(message.content),
        additional_context=_context_message(message.additional_context) if has_context else None,
    )


def _context_message(message: reference_message.ContextMessage) -> ContextMessage:
    source = message.source
    return ContextMessage(
        id=message.id,
        content=_blocks(message.content),
        source=SessionReferenceSource(
            kind=source.kind,
            form=source.form,
            version=source.version,
            references=tuple(_captured_reference(each) for each in source.references),
        ),
        omissions=tuple(_omission(each) for each in message.omissions),
        trust=Trust.UNTRUSTED,  # whatever a newer server may say: this client knows nothing to be trusted
    )


def _captured_reference(message: reference_message.CapturedReference) -> CapturedReference:
    reading = message.reading
    return CapturedReference(
        session_id=message.session_id,
        label=message.label,
        captured_format_version=message.captured_format_version,
        captured_through_seq=message.captured_through_seq if message.HasField("captured_through_seq") else None,
        compacted=message.compacted,
        original_messages=message.original_messages,
        retained_messages=message.retained_messages,
        omitted_messages=message.omitted_messages,
        omitted_bytes=message.omitted_bytes,
        truncated=message.truncated,
        input_index=message.input_index,
        reading=ReadingFacts(
            damaged_records=reading.damaged_records,
            unknown_records=reading.unknown_records,
            torn_tail=reading.torn_tail,
            redactions=reading.redactions,
            notes=tuple(reading.notes),
        ),
    )


def _omission(message: reference_message.ReferenceOmission) -> Omission:
    saved = message.saved
    return Omission(
        session_id=message.session_id,
        captured_through_seq=message.captured_through_seq if message.HasField("captured_through_seq") else None,
        omitted_messages=message.omitted_messages,
        omitted_bytes=message.omitted_bytes,
        full_snapshot=SavedSnapshot(locator=saved.locator, size_bytes=saved.size_bytes, retrieval_hint=saved.retrieval_hint)
        if message.HasField("saved")
        else _UNAVAILABLE.get(message.unavailable, SnapshotUnavailable.UNKNOWN),
    )


def _blocks(messages: Iterable[reference_message.ContentBlock]) -> tuple[ContentBlock, ...]:
    return tuple(_block(each) for each in messages)


def _block(message: reference_message.ContentBlock) -> ContentBlock:
    wire = _wire_of_unknown(message)
    match message.WhichOneof("block"):
        case "text":
            return TextBlock(message.text.text, wire=wire)
        case "image":
            image = message.image
            sources = {"data": image.data, "uri": image.uri, None: None}
            return ImageBlock(media_type=image.media_type, source=sources[image.WhichOneof("source")], wire=wire)
        case "opaque":
            return OpaqueBlock(type=message.opaque.type, value=_opaque_value(message.opaque), wire=wire)
        case None:
            return UnknownBlock(wire=wire)


def _wire_of_unknown(message: reference_message.ContentBlock) -> bytes:
    """The block as received when it holds fields this version does not know, else nothing."""
    known = reference_message.ContentBlock()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return b"" if known.ByteSize() == message.ByteSize() else message.SerializeToString()


def _opaque_value(message: reference_message.OpaqueBlock) -> bytes | dict[str, JsonValue] | PackedMessage | None:
    match message.WhichOneof("value"):
        case "data":
            return message.data
        case "json":
            return _json_object(message.json)
        case "message":
            return PackedMessage(type_url=message.message.type_url, value=message.message.value)
        case None:
            return None


def _json_object(message: Struct) -> dict[str, JsonValue]:
    return {key: _json_value(value) for key, value in message.fields.items()}


def _json_value(message: Value) -> JsonValue:
    match message.WhichOneof("kind"):
        case "number_value":
            return message.number_value
        case "string_value":
            return message.string_value
        case "bool_value":
            return message.bool_value
        case "struct_value":
            return _json_object(message.struct_value)
        case "list_value":
            return [_json_value(each) for each in message.list_value.values]
        case _:
            return None


def snapshot_chunk(message: service_message.ReadSnapshotResponse) -> SnapshotChunk:
    """A piece of a saved transcript."""
    return SnapshotChunk(data=message.data, offset_bytes=message.offset_bytes, total_bytes=message.total_bytes)


def service_info(message: service_message.GetServiceInfoResponse) -> ServiceInfo:
    """What the server is."""
    limits = message.limits
    return ServiceInfo(
        version=message.version,
        limits=ServiceLimits(
            maximum_references=limits.maximum_references,
            maximum_reference_bytes=limits.maximum_reference_bytes if limits.HasField("maximum_reference_bytes") else None,
            reference_context_fraction=limits.reference_context_fraction,
            default_session_candidates=limits.default_session_candidates,
            maximum_candidates=limits.maximum_candidates,
            maximum_query_bytes=limits.maximum_query_bytes,
            maximum_request_bytes=limits.maximum_request_bytes,
            maximum_call_seconds=_seconds(limits.maximum_call_duration),
            snapshot_lifetime_seconds=_seconds(limits.snapshot_lifetime) if limits.HasField("snapshot_lifetime") else None,
            maximum_concurrent_prepares=limits.maximum_concurrent_prepares,
        ),
        sources=tuple(_source_status(each) for each in message.sources),
    )


def _seconds(duration: Duration) -> float:
    return duration.seconds + duration.nanos / 1e9
