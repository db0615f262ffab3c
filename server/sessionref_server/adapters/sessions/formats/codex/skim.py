"""Telling from a line's first bytes what it is, without parsing it.

Most of a rollout is tool output, and half of what is said is told twice in a row. Codex writes a line's keys in a fixed order, so
its kind stands at the beginning: a line of a silent kind, and the second telling of a text, need not be parsed. That alone makes
reading a log cost about as much as parsing it. A line written in another order is simply parsed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from sessionref_server.adapters.sessions.formats.codex.records import MODEL, PERSON

if TYPE_CHECKING:
    from sessionref_server.domain.message import Role

_SILENT_ITEMS = (
    "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "local_shell_call",
    "web_search_call", "tool_search_call", "tool_search_output", "image_generation_call", "ghost_snapshot",
)  # fmt: skip
_SILENT_EVENTS = (
    "token_count", "agent_reasoning", "agent_reasoning_raw_content", "task_complete", "patch_apply_end", "mcp_tool_call_end",
    "web_search_end", "exec_command_end", "view_image_tool_call", "image_generation_end", "dynamic_tool_call_response",
)  # fmt: skip
_USUAL_PLACE = slice(48, 88)
"""Where the kinds stand in a line without an ordinal, whose time has milliseconds."""

_USUAL_SILENT = frozenset(
    start[: _USUAL_PLACE.stop - _USUAL_PLACE.start].encode()
    for start in (
        'response_item","payload":{"type":"reasoning',
        'response_item","payload":{"type":"function_call',
        'response_item","payload":{"type":"custom_tool_call',
        'event_msg","payload":{"type":"token_count',
        'event_msg","payload":{"type":"agent_reasoning',
        'event_msg","payload":{"type":"exec_command_end',
    )
)
"""What stands there in nearly all silent lines. Looking it up is several times cheaper than matching."""

_TEXT_OF_ITEM = (
    rb'"message",(?:"id":"[^"\\]{0,80}",)?"role":"(?:(assistant)|user)","content":\[\{"type":"(?:in|out)put_text","text":()"'
)
_ITEM = rb'response_item","payload":\{"type":(?:"(?:' + "|".join(_SILENT_ITEMS).encode() + rb')"|' + _TEXT_OF_ITEM + rb")"
_EVENT = (
    rb'event_msg","payload":\{"type":"(?:(?:' + "|".join(_SILENT_EVENTS).encode() + rb')"'
    rb'|((?:user|agent)_message","message":")|(task_started)")'
)
_START = re.compile(
    rb'\{"timestamp":"[^"\\]{0,40}",(?:"ordinal":(\d{1,15}),)?"type":"(?:'
    + _ITEM + rb"|" + _EVENT + rb'|(turn_context)","payload":\{|world_state","payload":\{)'
)  # fmt: skip
_match_start = _START.match

ORDINAL = 1
"""The line's number in a paginated log."""
MODELS = 2
"""Set when an item is the model's."""
ITEM_TEXT = 3
"""A message item; its first text, a JSON string, begins where the group stands."""
RETOLD = 4
"""A ``user_message`` or ``agent_message`` event from its name on."""
TURN_START = 5
TURN_CONTEXT = 6

_RECORD_END = b"}}"
_RECORD_START = b'{"timestamp":"'
_SEARCHED_BYTES = 512
_TEXT_END = b'"}]'


def is_silent(line: bytes) -> bool:
    """Whether a line is of one of the common silent kinds. Some others are told by ``recognise``."""
    return line[_USUAL_PLACE] in _USUAL_SILENT and _is_one_record(line)


def recognise(line: bytes) -> re.Match[bytes] | None:
    """The beginning of a line as Codex writes it, when one whole record is all that stands on the line.

    The number of the match's last group says what the line is: one of the constants above, or a silent kind when it is ``None``
    or that of the ordinal.
    """
    start = _match_start(line)
    return start if start is not None and _is_one_record(line) else None


def _is_one_record(line: bytes) -> bool:
    """Whether a line ends as a record does and holds no second one, which a torn write leaves on the same line.

    Since every quote inside a JSON string is escaped, no text can pass for the start of a record. In a long line only the places
    where a second record can be expected are searched: after a short torn piece, and so that it ends with the line.
    """
    return (
        line.endswith(_RECORD_END)
        and line.find(_RECORD_START, 1, _SEARCHED_BYTES) < 0
        and (len(line) <= _SEARCHED_BYTES or line.find(_RECORD_START, -_SEARCHED_BYTES) < 0)
    )


def item_text(line: bytes, start: re.Match[bytes]) -> tuple[Role, bytes, str] | None:
    """Who speaks in a message item, and its text as written and as read; ``None`` when it has other parts than one text."""
    text_start = start.start(ITEM_TEXT)
    text_end = line.find(_TEXT_END, text_start) + 1
    written = line[text_start:text_end]
    try:
        # An end inside the text, after an escaped quote, and one behind further fields both leave no valid string.
        text = orjson.loads(written)
    except orjson.JSONDecodeError:
        return None
    return (PERSON if start[MODELS] is None else MODEL), written, text


def event_of_item(role: Role, written: bytes) -> bytes:
    """How the event begins, from its name on, that tells an item's text again: it holds the text in the same bytes."""
    return (b'user_message","message":' if role is PERSON else b'agent_message","message":') + written
