"""The full text of a cut source, as it is saved for the target's model to read back.

A heading, the warning, the facts of the capture as one line of JSON, then per message a line ``### Message n: role`` and its
text as JSON string fragments, one a line. Fragments are short, so that tools which cut long lines lose nothing; joining the
decoded fragments gives back the exact text. Ends with a newline.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.limits import TRANSCRIPT_FRAGMENT_CODE_POINTS
from sessionref_server.domain.prepare.warning import SNAPSHOT_WARNING
from sessionref_server.domain.tag_safe_json import escape_tags, tag_safe_json

_HEADING = "# Referenced session: full snapshot"
_EXPLANATION = (
    "Each message is a line `### Message n: role` and then its text in pieces, one JSON string a line; decoded and joined, "
    "they are the exact text."
)
_CHUNK_BYTES = 262_144
_CODE_POINTS_PER_PIECE = 4_096 * TRANSCRIPT_FRAGMENT_CODE_POINTS


def transcript_bytes(capture: Capture, label: str) -> bytes:
    """The whole transcript of a capture."""
    return b"".join(transcript_chunks(capture, label))


def transcript_chunks(capture: Capture, label: str) -> Iterator[bytes]:
    """The transcript in chunks of a few hundred kilobytes, for a caller that must not block for long."""
    gathered = bytearray()
    for piece in _pieces(capture, label):
        gathered += piece
        if len(gathered) >= _CHUNK_BYTES:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered)


def _pieces(capture: Capture, label: str) -> Iterator[bytes]:
    yield _head(capture, label)
    conversation = capture.conversation
    for index in range(len(conversation)):
        yield f"### Message {index + 1}: {conversation.role(index).value}\n".encode()
        yield from _fragments(conversation.text_utf8(index).decode())


def _fragments(text: str) -> Iterator[bytes]:
    """Lines of JSON strings of at most 64 code points each."""
    for piece_start in range(0, len(text), _CODE_POINTS_PER_PIECE):
        piece = text[piece_start : piece_start + _CODE_POINTS_PER_PIECE]
        starts = range(0, len(piece), TRANSCRIPT_FRAGMENT_CODE_POINTS)
        fragments = [piece[start : start + TRANSCRIPT_FRAGMENT_CODE_POINTS] for start in starts]
        # One call writes `[\n  "…",\n  "…"\n]`. In a JSON string a newline is always escaped: the raw ones part the fragments.
        array = orjson.dumps(fragments, option=orjson.OPT_INDENT_2)
        yield escape_tags(array[len(b"[\n  ") : -len(b"\n]")].replace(b",\n  ", b"\n")) + b"\n"


def _head(capture: Capture, label: str) -> bytes:
    facts = tag_safe_json(
        {
            "sessionId": capture.session_id,
            "label": label,
            "cwd": capture.cwd,
            "capturedThroughSeq": capture.through_seq,
            "capturedFormatVersion": capture.format_version,
        }
    )
    return b"\n".join([_HEADING.encode(), b"", SNAPSHOT_WARNING.encode(), b"", facts, b"", _EXPLANATION.encode(), b"", b""])
