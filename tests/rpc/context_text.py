"""Takes a context message apart the way a model reads it, and refuses everything the contract does not allow in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sessionref.v1 import reference_pb2

OPENING_TAG = "<referenced-sessions>"
CLOSING_TAG = "</referenced-sessions>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextText:
    heading: str
    warning: str
    previews: list[dict[str, Any]]
    previews_bytes: int
    """Size of the JSON array of previews, brackets included."""
    notices: list[dict[str, Any]] | None
    facts: list[str]


def read_context(message: reference_pb2.ContextMessage) -> ContextText:
    assert message.trust == reference_pb2.TRUST_UNTRUSTED
    assert [block.WhichOneof("block") for block in message.content] == ["text"]
    text = message.content[0].text.text
    assert (text.count(OPENING_TAG), text.count(CLOSING_TAG), text.count("<")) == (1, 1, 2)
    heading, _, warning, _, opening, previews, closing, *rest = text.split("\n")
    assert (opening, closing) == (OPENING_TAG, CLOSING_TAG)
    notices = [line for line in rest if line.startswith("[")]
    return ContextText(
        heading=heading,
        warning=warning,
        previews=strict_json(previews),
        previews_bytes=len(previews.encode()),
        notices=strict_json(notices[0]) if notices else None,
        facts=[line for line in rest if line.startswith("- ")],
    )


def strict_json(text: str) -> Any:
    """JSON without NaN, and in the one spelling the server writes: compact, ``<`` escaped, nothing else escaped without need."""
    value = json.loads(text, parse_constant=_refuse)
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    assert text == written
    return value


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
