"""Lines of a rollout as records: the envelope of today, the bare lines of before September 2025, and what neither is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from sessionref_server.adapters.sessions.formats.codex.texts import (
    is_agent_mail,
    is_injected,
    person_text,
    person_text_of_item,
    text_blocks,
)
from sessionref_server.adapters.sessions.json_line import parse_json_line
from sessionref_server.domain.limits import MAX_SAFE_INTEGER
from sessionref_server.domain.message import Role

Payload = dict[str, Any]

ITEM = 1
"""Channel of ``response_item``: what the model was sent and said."""
EVENT = 2
"""Channel of ``event_msg`` ``user_message`` and ``agent_message``."""
COMPLETED = 4
"""Channel of ``item_completed`` ``UserMessage`` and ``AgentMessage`` (paginated logs)."""
PLAN = 8
"""Channel of ``item_completed`` ``Plan``: a part of an assistant message, told once more."""
KEPT = 16
"""Not a channel: the text is known to be the person's without a second witness."""

HEADER = "header"
"""Kind given to the first line of a log of before September 2025, which has no type."""

_ENVELOPES = frozenset(
    {
        "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "rollout_reference",
        "inter_agent_communication", "inter_agent_communication_metadata", "token_usage_record",
    }
)  # fmt: skip
_ITEMS = frozenset(
    {
        "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
        "local_shell_call", "web_search_call", "tool_search_call", "tool_search_output", "image_generation_call", "other",
        "compaction", "context_compaction", "compaction_summary", "compaction_trigger", "agent_message", "additional_tools",
        "configuration_update", "ghost_snapshot",
    }
)  # fmt: skip
_EVENTS = frozenset(
    {
        "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "token_count", "item_started",
        "item_completed", "task_started", "task_complete", "turn_started", "turn_complete", "turn_aborted", "thread_rolled_back",
        "thread_name_updated", "thread_settings_applied", "thread_goal_updated", "context_compacted", "entered_review_mode",
        "exited_review_mode", "undo_completed", "patch_apply_end", "mcp_tool_call_end", "web_search_end", "exec_command_end",
        "view_image_tool_call", "image_generation_end", "dynamic_tool_call_request", "dynamic_tool_call_response",
        "collab_agent_spawn_end", "collab_agent_interaction_end", "collab_waiting_end", "collab_close_end", "collab_resume_end",
        "guardian_assessment", "guardian_warning", "sub_agent_activity", "error", "warning", "stream_error", "plan_update",
    }
)  # fmt: skip
_INNER_KINDS = {"response_item": _ITEMS, "event_msg": _EVENTS}
_BARE_ITEMS = _ITEMS - {"message"}
PERSON, MODEL = Role.USER, Role.ASSISTANT
"""Looking a member up in its class costs more than all else that is done with it, and is done for every message."""

_ROLES = {"user": PERSON, "assistant": MODEL}
_RECORD_START = b'{"timestamp"'


Record = tuple[str, Payload, Payload]
"""One line: its kind, what it carries, and all its fields. A plain tuple, since there may be a million of them."""

Said = tuple[Role, int, str]
"""One text of the person or the model: who speaks, the channel that tells it, the text."""


@dataclass(slots=True)
class Tally:
    """What passed through a fold: how much, how much of it was not readable, and whether any of it is Codex's."""

    lines: int = 0
    """Lines that are not blank and were parsed."""
    silent: int = 0
    """Lines of a silent kind, which are not parsed."""
    damaged: int = 0
    unknown: int = 0
    recognised: bool = False
    ordinal: int | None = None
    """Greatest ordinal seen. Ordinals may repeat or skip; logs that are not paginated have none."""

    def read(self, line: bytes) -> Record | None:
        """Parse one line, whatever its era, and count it; ``None`` for one that says nothing here.

        A blank line is nothing. What cannot be parsed or has a wrong shape is damage; a kind we do not know is unknown.
        """
        fields = parse_json_line(line)
        if fields is None:
            fields = self._salvage(line)
            if fields is None:
                return None
        self.lines += 1
        kind = fields.get("type")
        if type(kind) is not str or kind not in _ENVELOPES:
            return self._read_bare(kind, fields)
        payload: Payload | None = fields.get("payload")
        if type(payload) is not dict:
            self.damaged += 1
            return None
        self.recognised = True
        if "ordinal" in fields:
            self.see_ordinal(fields["ordinal"])
        known = _INNER_KINDS.get(kind)
        if known is not None and not _is_known(payload, known):
            self.unknown += 1
            return None
        return kind, payload, fields

    def _salvage(self, line: bytes) -> Payload | None:
        """A whole record at the end of a bad line: a torn write, or a run of NULs, may share its line with the next record."""
        stripped = line.strip(b"\0 \t\r\n")
        if not stripped and b"\0" not in line:
            return None
        self.damaged += 1
        fields = parse_json_line(stripped) if len(stripped) < len(line) else None
        start = line.rfind(_RECORD_START)
        if fields is None and start > 0:
            fields = parse_json_line(line[start:])
        if fields is None:
            self.lines += 1
        return fields

    def see_ordinal(self, ordinal: object) -> None:
        """Remember the greatest ordinal; one that is negative or too large for other languages is none."""
        if type(ordinal) is int and 0 <= ordinal <= MAX_SAFE_INTEGER and (self.ordinal is None or ordinal > self.ordinal):
            self.ordinal = ordinal

    def _read_bare(self, kind: object, fields: Payload) -> Record | None:
        if word(fields.get("role")) in _ROLES and kind in (None, "message"):
            self.recognised = True
            return "response_item", fields, fields
        if kind is None and isinstance(fields.get("id"), str) and "timestamp" in fields:
            self.recognised = True
            return HEADER, fields, fields
        if word(kind) not in _BARE_ITEMS and "record_type" not in fields:
            self.unknown += 1
        return None


def _is_known(payload: Payload, known: frozenset[str]) -> bool:
    kind = payload.get("type")
    # Some writers leave out that an item with a role is a message.
    return kind in known if type(kind) is str else kind is None and "role" in payload


def word(value: object) -> str:
    """The value when it is a string, else the empty string: a log may hold anything where a word belongs."""
    return value if isinstance(value, str) else ""


def said_in_event(payload: Payload) -> Said | None:
    """The text an event shows of the person or the model; ``None`` when it shows none."""
    event = payload.get("type")
    if event == "user_message":
        return _said_in_user_event(payload)
    if event == "agent_message":
        return _assistant(EVENT, payload.get("message"))
    return _said_in_completed(payload.get("item")) if event == "item_completed" else None


def said_in_item(payload: Payload) -> Said | None:
    """The text a message item shows of the person or the model, also of one inside a replacement history."""
    if payload.get("type") not in ("message", None):
        return None
    role = _ROLES.get(word(payload.get("role")))
    content = payload["content"] if "content" in payload else payload.get("message")
    if role is None:
        return None
    texts = text_blocks(content)
    return _assistant(ITEM, "\n".join(texts)) if role is MODEL else _person(ITEM, texts)


def said_in_text(role: Role, text: str) -> Said | None:
    """What a message item of one text block says."""
    return _assistant(ITEM, text) if role is MODEL else _person(ITEM, [text])


def _said_in_user_event(payload: Payload) -> Said | None:
    text = payload.get("message")
    if not isinstance(text, str) or payload.get("kind") not in (None, "plain") or is_injected(text):
        return None
    text = person_text(text)
    return (PERSON, EVENT, text) if text else None


def _said_in_completed(item: object) -> Said | None:
    if not isinstance(item, dict):
        return None
    fields = cast("Payload", item)
    kind = fields.get("type")
    if kind == "UserMessage":
        return _person(COMPLETED, text_blocks(fields.get("content")))
    if kind == "AgentMessage":
        return _assistant(COMPLETED, "\n".join(text_blocks(fields.get("content"))))
    return _assistant(PLAN, fields.get("text")) if kind == "Plan" else None


def _person(channel: int, texts: list[str]) -> Said | None:
    text = person_text_of_item(texts)
    return (PERSON, channel, text) if text else None


def _assistant(channel: int, text: object) -> Said | None:
    if not isinstance(text, str) or not text or text.isspace() or is_agent_mail(text):
        return None
    return MODEL, channel, text
