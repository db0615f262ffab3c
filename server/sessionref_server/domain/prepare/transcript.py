"""The full text of a cut source, as it is saved for the target's model to read back.

A heading, the warning, the facts of the capture as one line of JSON, then per message a line ``### Message n: role`` and its
text as JSON string fragments, one a line. Fragments are short, so that tools which cut long lines lose nothing; joining the
decoded fragments gives back the exact text. Ends with a newline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.limits import TRANSCRIPT_FRAGMENT_CODE_POINTS
from sessionref_server.domain.prepare.warning import SNAPSHOT_WARNING
from sessionref_server.domain.tag_safe_json import escape_tags, tag_safe_json

_HEADING = "# Referenced session: full snapshot"
_EXPLANATION = (
    "Each message is a line `### Message n: role` and then its text in pieces, one JSON string a line; decoded and joined, "
    "they are the exact text."
)
_CHUNK_CODE_POINTS = 4_096 * TRANSCRIPT_FRAGMENT_CODE_POINTS
_FRAGMENT_STARTS = range(0, _CHUNK_CODE_POINTS, TRANSCRIPT_FRAGMENT_CODE_POINTS)
_FRAGMENTS = [slice(start, start + TRANSCRIPT_FRAGMENT_CODE_POINTS) for start in _FRAGMENT_STARTS]
"""Where the fragments of a piece are."""
_DELETE = b"\x7f"


def transcript_bytes(capture: Capture, label: str) -> bytes:
    """The whole transcript of a capture."""
    return transcript_head(capture, label) + b"".join(transcript_body(capture.conversation))


def transcript_body(conversation: Conversation, messages_before: int = 0) -> Iterator[bytes]:
    """Messages in chunks of a few hundred kilobytes, for a caller that must not block for long.

    Args:
        conversation: what to write, perhaps the end of a longer one.
        messages_before: how many messages of the longer one came before.
    """
    comma = _comma(conversation)
    lines: list[str | orjson.Fragment] = []
    code_points = 0
    for heading, text in _pieces(conversation, messages_before, comma):
        if heading:
            lines.append(orjson.Fragment(heading))
        fragments = _FRAGMENTS[: -(-len(text) // TRANSCRIPT_FRAGMENT_CODE_POINTS)]
        lines += map(text.__getitem__, fragments)
        code_points += len(heading) + len(text)
        if code_points >= _CHUNK_CODE_POINTS:
            yield _written(lines, comma)
            lines, code_points = [], 0
    if lines:
        yield _written(lines, comma)


def _comma(conversation: Conversation) -> bytes:
    """What stands for a comma until the JSON is written: a character that is in no text and that JSON leaves alone, or itself."""
    return b"," if _DELETE in conversation.texts_utf8 else _DELETE


def _pieces(conversation: Conversation, messages_before: int, comma: bytes) -> Iterator[tuple[bytes, str]]:
    """Texts with the headings of their messages; a long text in pieces, of which the first one has the heading."""
    for index in range(len(conversation)):
        heading = f"### Message {messages_before + index + 1}: {conversation.role(index).value}".encode()
        text = conversation.text_utf8(index).replace(b",", comma).decode()
        yield heading, text[:_CHUNK_CODE_POINTS]
        for start in range(_CHUNK_CODE_POINTS, len(text), _CHUNK_CODE_POINTS):
            yield b"", text[start : start + _CHUNK_CODE_POINTS]


def _written(lines: Sequence[str | orjson.Fragment], comma: bytes) -> bytes:
    """Headings as they are and texts as JSON strings, one a line. Written in one call, as a list."""
    if comma != b",":
        # Every comma parts two lines. Single bytes are replaced by others ten times faster than what stands between lines below.
        array = orjson.dumps(lines)[len(b"[") : -len(b"]")].replace(b",", b"\n").replace(comma, b",")
    else:
        # `[\n  "…",\n  "…"\n]`. In a JSON string a newline is always escaped: the raw ones part the lines.
        array = orjson.dumps(lines, option=orjson.OPT_INDENT_2)[len(b"[\n  ") : -len(b"\n]")].replace(b",\n  ", b"\n")
    return escape_tags(array) + b"\n"


def transcript_head(capture: Capture, label: str) -> bytes:
    """What stands before the messages."""
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
