"""From domain values to responses.

Batches of sessions are put together from bytes. A candidate looks the same in every search that finds it, so its bytes are kept;
building fifty messages at each keystroke would take longer than the search itself. Protobuf's wire format makes this possible:
messages that lie one after the other are one message with their repeated fields joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from google.rpc.status_pb2 import Status
from sessionref.v1 import candidate_pb2, reference_pb2
from sessionref.v1 import session_reference_service_pb2 as service_pb2

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.mention import ParsedText, format_mention
from sessionref_server.domain.ports import SourceCheck
from sessionref_server.domain.prepare.render import OmissionNotice, RetainedSource, UnavailableReason
from sessionref_server.domain.reference import Content, TextContent
from sessionref_server.domain.session import SessionHead
from sessionref_server.service.prepare import ContextMessage, Prepared

NO_VISIBLE_MESSAGES = "no visible messages"
_UNAVAILABLE = {
    UnavailableReason.STORAGE_NOT_CONFIGURED: reference_pb2.SNAPSHOT_UNAVAILABLE_REASON_STORAGE_NOT_CONFIGURED,
    UnavailableReason.SAVE_FAILED: reference_pb2.SNAPSHOT_UNAVAILABLE_REASON_SAVE_FAILED,
}

MAX_KEPT_CANDIDATES: Final = 16_384
"""Candidates of the own workspace, and of others, whose bytes are kept, about 300 each. People find the same few each day."""
MAX_KEPT_STATUSES: Final = 64

_SESSIONS_TAG: Final = bytes((service_pb2.SearchCandidatesResponse.SESSIONS_FIELD_NUMBER << 3 | 2,))
"""Begins a field that holds a message: then come its length and itself."""
_PARTIAL: Final = service_pb2.SearchCandidatesResponse(partial=True).SerializeToString()

_SOURCE_KIND = "session-reference"
_SOURCE_FORM = "recall"
_SOURCE_VERSION = 1


class CandidateBytes:
    """Heads as serialized SessionCandidates of one candidate, kept for heads seen lately.

    Heads never change, so a head's identity says all; it cannot be taken by another one while the head is kept here.
    """

    def __init__(self) -> None:
        self._elsewhere: dict[int, tuple[bytes, SessionHead]] = {}
        self._here: dict[int, tuple[bytes, SessionHead]] = {}

    def __len__(self) -> int:
        return len(self._elsewhere) + len(self._here)

    def joined(self, found: Iterable[tuple[SessionHead, bool]]) -> bytes:
        """The serialized SessionCandidates of all, each head with whether it is of the target's workspace."""
        elsewhere, here = self._elsewhere, self._here
        return b"".join(
            [
                ((here if same_workspace else elsewhere).get(id(head)) or self._keep(head, same_workspace=same_workspace))[0]
                for head, same_workspace in found
            ]
        )

    def _keep(self, head: SessionHead, *, same_workspace: bool) -> tuple[bytes, SessionHead]:
        kept = self._here if same_workspace else self._elsewhere
        if len(kept) >= MAX_KEPT_CANDIDATES:
            kept.clear()
        candidate = _session(head, same_workspace=same_workspace)
        raw = candidate_pb2.SessionCandidates(candidates=[candidate]).SerializeToString()
        entry = kept[id(head)] = (raw, head)
        return entry


_candidate_bytes: Final = CandidateBytes()


def sessions_batch(found: Iterable[tuple[SessionHead, bool]], checks: Iterable[SourceCheck], *, partial: bool) -> bytes:
    """A serialized SearchCandidatesResponse: a batch of sessions with the state of their sources."""
    sessions = _candidate_bytes.joined(found)
    rest = (_PARTIAL if partial else b"", *map(_status_bytes, checks))
    return b"".join((_SESSIONS_TAG, _varint(len(sessions)), sessions, *rest))


def _varint(number: int) -> bytes:
    """A number that is not negative in base 128, the lowest digit first; every byte but the last has its highest bit set."""
    if number < 0x80:  # noqa: PLR2004 - the base
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)


@lru_cache(maxsize=MAX_KEPT_STATUSES)
def _status_bytes(check: SourceCheck) -> bytes:
    """A response that says nothing but the state of one source."""
    return service_pb2.SearchCandidatesResponse(source_statuses=[source_status(check)]).SerializeToString()


def failed_files_batch(status: Status) -> bytes:
    """A serialized SearchCandidatesResponse: the one batch of a files domain that failed."""
    return service_pb2.SearchCandidatesResponse(files=candidate_pb2.FileCandidates(), status=status).SerializeToString()


def source_status(check: SourceCheck) -> candidate_pb2.SourceStatus:
    """State of one source, without its places."""
    return candidate_pb2.SourceStatus(
        source=check.name,
        ready=check.ready,
        listed_sessions=check.listed,
        unreadable_sessions=check.unreadable,
        damaged_sessions=check.damaged,
        too_new_sessions=check.too_new,
        empty_sessions=check.empty,
        failure=check.failure,
    )


def parsed_text(parsed: ParsedText) -> service_pb2.ParsedText:
    """One text, read."""
    return service_pb2.ParsedText(
        text=parsed.text,
        references=[
            reference_pb2.SessionReferenceInput(session_id=reference.session_id, label=reference.label)
            for reference in parsed.references
        ],
        files=[service_pb2.FileMention(path=file.path, quoted=file.quoted) for file in parsed.files],
    )


def prepared(result: Prepared) -> service_pb2.PrepareResponse:
    """The answer to a Prepare."""
    response = service_pb2.PrepareResponse(content=[_content(block) for block in result.content])
    if result.context is not None:
        response.additional_context.CopyFrom(_context(result.context))
    return response


def _session(head: SessionHead, *, same_workspace: bool) -> candidate_pb2.SessionReferenceCandidate:
    title = head.display_title
    return candidate_pb2.SessionReferenceCandidate(
        session_id=head.session_id,
        label=head.label,
        display_title=title,
        cwd=head.cwd if head.shown_cwd is None else head.shown_cwd,
        same_workspace=same_workspace,
        created_at_ms=head.created_at_ms,
        mention=format_mention(head.session_id, title),
        source=head.source,
        updated_at_ms=head.updated_at_ms,
    )


def _content(block: Content) -> reference_pb2.ContentBlock:
    if isinstance(block, TextContent):
        return reference_pb2.ContentBlock(text=reference_pb2.TextBlock(text=block.text))
    assert isinstance(block.value, reference_pb2.ContentBlock)  # noqa: S101 - decode made it
    return block.value


def _context(context: ContextMessage) -> reference_pb2.ContextMessage:
    return reference_pb2.ContextMessage(
        id=context.message_id,
        content=[reference_pb2.ContentBlock(text=reference_pb2.TextBlock(text=context.text))],
        source=reference_pb2.SessionReferenceSource(
            kind=_SOURCE_KIND,
            form=_SOURCE_FORM,
            version=_SOURCE_VERSION,
            references=[_captured(source) for source in context.sources],
        ),
        omissions=[_omission(notice) for notice in context.omissions],
        trust=reference_pb2.TRUST_UNTRUSTED,
    )


def _captured(source: RetainedSource) -> reference_pb2.CapturedReference:
    capture, retained = source.capture, source.retained
    return reference_pb2.CapturedReference(
        session_id=capture.session_id,
        label=source.reference.label,
        captured_format_version=capture.format_version,
        captured_through_seq=capture.through_seq,
        compacted=retained.compacted,
        original_messages=retained.original_messages,
        retained_messages=retained.retained_messages,
        omitted_messages=retained.omitted_messages,
        omitted_bytes=retained.omitted_bytes,
        truncated=retained.truncated,
        input_index=source.reference.input_index,
        reading=_reading(capture),
    )


def _reading(capture: Capture) -> reference_pb2.ReadingFacts:
    notes = [NO_VISIBLE_MESSAGES] if not len(capture.conversation) else []
    return reference_pb2.ReadingFacts(
        damaged_records=capture.reading.damaged_records,
        unknown_records=capture.reading.unknown_records,
        torn_tail=capture.reading.torn_tail,
        redactions=capture.redactions,
        notes=[*notes, *capture.reading.notes],
    )


def _omission(notice: OmissionNotice) -> reference_pb2.ReferenceOmission:
    omission = reference_pb2.ReferenceOmission(
        session_id=notice.session_id,
        captured_through_seq=notice.captured_through_seq,
        omitted_messages=notice.omitted_messages,
        omitted_bytes=notice.omitted_bytes,
    )
    where = notice.full_snapshot
    if isinstance(where, UnavailableReason):
        omission.unavailable = _UNAVAILABLE[where]
    else:
        omission.saved.CopyFrom(
            reference_pb2.SavedSnapshot(locator=where.locator, size_bytes=where.size_bytes, retrieval_hint=where.retrieval_hint)
        )
    return omission
