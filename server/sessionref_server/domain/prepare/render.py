"""Renders the one text block of the context message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.label import clean_label
from sessionref_server.domain.prepare.retain import Retained
from sessionref_server.domain.prepare.warning import SNAPSHOT_WARNING
from sessionref_server.domain.reference import Reference
from sessionref_server.domain.session import ReadingFacts, SessionId
from sessionref_server.domain.tag_safe_json import tag_safe_json

_HEADING = "# Referenced sessions"
_OPENING_TAG = "<referenced-sessions>"
_CLOSING_TAG = "</referenced-sessions>"
_OMISSIONS_HEADING = "# Omitted from the snapshot"
_FACTS_HEADING = "# About the snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedSource:
    """One source, read and cut to its budget."""

    reference: Reference
    capture: Capture
    retained: Retained


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedSnapshot:
    """The full text of a cut source was saved."""

    locator: str
    size_bytes: int
    retrieval_hint: str
    """One sentence for the model on how to get the rest."""


class UnavailableReason(StrEnum):
    """Why the full text of a cut source was not saved."""

    STORAGE_NOT_CONFIGURED = "storage-not-configured"
    SAVE_FAILED = "save-failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class OmissionNotice:
    """What a source lost to its budget, and where the rest is. Stands outside the budget."""

    session_id: SessionId
    captured_through_seq: int | None
    omitted_messages: int
    omitted_bytes: int
    full_snapshot: SavedSnapshot | UnavailableReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextText:
    """The rendered text."""

    text: str
    json_bytes: int
    """Size of the array of previews as tag-safe JSON, brackets included."""


def omission_notice(source: RetainedSource, full_snapshot: SavedSnapshot | UnavailableReason) -> OmissionNotice:
    """The notice of one cut source."""
    return OmissionNotice(
        session_id=source.reference.session_id,
        captured_through_seq=source.capture.through_seq,
        omitted_messages=source.retained.omitted_messages,
        omitted_bytes=source.retained.omitted_bytes,
        full_snapshot=full_snapshot,
    )


def render(sources: Sequence[RetainedSource], notices: Sequence[OmissionNotice]) -> ContextText:
    """Render previews in reference order, then notices, then what the readers had to skip.

    Whatever the sources hold, the text has exactly one opening and one closing tag: all foreign text is inside JSON strings, in
    which no ``<`` is left.
    """
    previews = b"[" + b",".join(source.retained.preview_json for source in sources) + b"]"
    lines = [_HEADING, "", SNAPSHOT_WARNING, "", _OPENING_TAG, previews.decode(), _CLOSING_TAG]
    if notices:
        lines += ["", _OMISSIONS_HEADING, "", tag_safe_json([*map(_notice_object, notices)]).decode()]
    facts = [line for source in sources for line in _fact_lines(source)]
    if facts:
        lines += ["", _FACTS_HEADING, "", *facts]
    return ContextText(text="\n".join(lines), json_bytes=len(previews))


def fact_sentences(capture: Capture) -> list[str]:
    """What is to be said of a capture beside its text, in sentences of our own; empty for an intact, speaking session."""
    return [*_sentences(capture)]


def _notice_object(notice: OmissionNotice) -> dict[str, object]:
    return {
        "sessionId": notice.session_id,
        "capturedThroughSeq": notice.captured_through_seq,
        "omittedMessages": notice.omitted_messages,
        "omittedBytes": notice.omitted_bytes,
        "fullSnapshot": _snapshot_object(notice.full_snapshot),
    }


def _snapshot_object(snapshot: SavedSnapshot | UnavailableReason) -> dict[str, object]:
    if isinstance(snapshot, UnavailableReason):
        return {"status": "unavailable", "reason": snapshot.value}
    return {
        "status": "saved",
        "locator": snapshot.locator,
        "bytes": snapshot.size_bytes,
        "retrievalHint": snapshot.retrieval_hint,
    }


def _fact_lines(source: RetainedSource) -> Iterator[str]:
    session_id = tag_safe_json(source.reference.session_id).decode()
    return (f"- {session_id}: {sentence}" for sentence in fact_sentences(source.capture))


def _sentences(capture: Capture) -> Iterator[str]:
    if len(capture.conversation) == 0:
        yield "no visible messages: the session holds no text of the user or the assistant."
    yield from _reading_sentences(capture.reading)
    if capture.redactions > 0:
        yield f"{_count(capture.redactions, 'key-shaped string')} replaced; others may remain."


def _reading_sentences(reading: ReadingFacts) -> Iterator[str]:
    if reading.damaged_records > 0:
        yield f"{_count(reading.damaged_records, 'damaged record')} of its log skipped."
    if reading.unknown_records > 0:
        yield f"{_count(reading.unknown_records, 'record')} of unknown kind skipped."
    if reading.torn_tail:
        yield "its log ends inside a record, which is left out."
    # Notes are ours, but may name a session id, which is anybody's text.
    yield from (clean_label(note).replace("<", "\\u003c") for note in reading.notes)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
