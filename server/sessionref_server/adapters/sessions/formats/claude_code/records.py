"""What one record of a Claude Code log is: its place in the tree, and the visible text it carries, if any.

The format is internal to Claude Code and gains record kinds every few weeks, so an unknown kind is never an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from sessionref_server.adapters.sessions.formats.claude_code.injected import is_unmarked_checkpoint, typed_text
from sessionref_server.adapters.sessions.formats.claude_code.tree import (
    BOUNDARY,
    CHECKPOINT,
    MESSAGE,
    NEEDS_PARENT,
    SIDECHAIN,
)

METADATA_KINDS = frozenset(
    {
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "atis-latch",
        "attachment",
        "attribution-snapshot",
        "bridge-session",
        "content-replacement",
        "continued-in",
        "cost-state",
        "custom-title",
        "file-history-delta",
        "file-history-snapshot",
        "fork-context-ref",
        "frame-link",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "relocated",
        "result",
        "started",
        "summary",
        "system",
        "tag",
        "task-summary",
        "worktree-state",
    }
)
"""Kinds seen in the wild beside ``user`` and ``assistant``."""

_SYNTHETIC_MODEL = "<synthetic>"
"""Stands as model of assistant records that the program wrote itself, such as API errors."""

_REPLY = MESSAGE | NEEDS_PARENT
_SIDECHAIN_REPLY = _REPLY | SIDECHAIN
_EMPTY_REPLY = "(no content)"
_MEDIA_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml", "application/pdf", "text/plain"})


class Entry(NamedTuple):
    """Visible content of one record."""

    from_assistant: bool
    text: str
    """Empty when the record carries omitted attachments only."""
    message_id: str | None = None
    """Id of the API message; one message is written as several records, one for each block."""
    omitted: tuple[str, ...] = ()
    """Attachments left out, each as ``image/png`` or, when it names no usual type, ``image`` or ``document``."""
    checkpoint: bool = False


Node = tuple[int, Entry | None]
"""How a record stands in the tree, as flags of ``tree``, and what is visible of it. A plain tuple, for speed."""


def read_user(record: dict[str, Any]) -> Node | None:
    """Read a ``user`` record; ``None`` when it has no usable content."""
    content = _field(record.get("message"), "content")
    side = SIDECHAIN if record.get("isSidechain") is True else 0
    if content.__class__ is list:
        for block in content:
            if block.__class__ is dict and block.get("type") == "tool_result":
                return side | NEEDS_PARENT, None
    elif content.__class__ is not str:
        return None
    return _read_user_text(record, content, side)


def _read_user_text(record: dict[str, Any], content: str | list[Any], side: int) -> Node:
    if record.get("isCompactSummary") is True:
        return _checkpoint(content, side)
    if record.get("isMeta") is True:
        return side, None
    if not _is_from_a_person(record):
        return side | MESSAGE, None
    if type(content) is str and is_unmarked_checkpoint(content):
        return _checkpoint(content, side)
    return side | MESSAGE, _typed_entry(content)


def read_assistant(record: dict[str, Any]) -> Node | None:
    """Read an ``assistant`` record; ``None`` when it has no usable content."""
    content = _field(record.get("message"), "content")
    if content.__class__ is list:
        text = _joined(content)
    elif content.__class__ is str:
        text = content
    else:
        return None
    flags = _SIDECHAIN_REPLY if record.get("isSidechain") is True else _REPLY
    if not text:
        return flags, None
    return flags, _reply_entry(record, text)


def read_queued_command(record: dict[str, Any]) -> Node | None:
    """Read an ``attachment`` record that delivered text typed while the agent worked; it is the only record of that text.

    ``None`` for every other attachment, and for queued notices that no person typed.
    """
    attachment = record.get("attachment")
    if type(attachment) is not dict:
        return None
    queued = cast("dict[str, Any]", attachment)
    if queued.get("type") != "queued_command" or queued.get("commandMode", "prompt") != "prompt":
        return None
    content = queued.get("prompt")
    if type(content) not in (str, list) or queued.get("isMeta") is True or not _is_from_a_person(queued):
        return None
    entry = _typed_entry(content)
    if entry is None:
        return None
    return MESSAGE | (SIDECHAIN if record.get("isSidechain") is True else 0), entry


def read_linked(record: dict[str, Any]) -> Node:
    """Read a record of another kind that stands in the tree."""
    boundary = record.get("type") == "system" and record.get("subtype") == "compact_boundary"
    return (SIDECHAIN if record.get("isSidechain") is True else 0) | (BOUNDARY if boundary else 0), None


def whole_text(record: dict[str, Any]) -> str:
    """All text of a ``user`` record, injected or not."""
    content = record["message"]["content"]
    return content if type(content) is str else _joined(content)


def reply_model(record: dict[str, Any]) -> str | None:
    """The model that wrote an ``assistant`` record; ``None`` when the program did, or none is named."""
    model = _field(record.get("message"), "model")
    return model if type(model) is str and model not in ("", _SYNTHETIC_MODEL) else None


def withdrawn_uuids(record: dict[str, Any]) -> list[str]:
    """Records that this one takes back: superseded half replies, refused replies, snipped history."""
    snipped = _field(record.get("snipMetadata"), "removedUuids")
    lists = (record.get("supersedesUuids"), record.get("retractedMessageUuids"), snipped)
    return [uuid for uuids in lists if type(uuids) is list for uuid in cast("list[object]", uuids) if type(uuid) is str]


def _reply_entry(record: dict[str, Any], text: str) -> Entry | None:
    """What the model said; ``None`` when the program said it in the model's place, or it is no text."""
    message = record["message"]
    written_by_program = message.get("model") == _SYNTHETIC_MODEL or record.get("isApiErrorMessage") is True
    if written_by_program or text == _EMPTY_REPLY or text.isspace():
        return None
    message_id = message.get("id")
    return Entry(from_assistant=True, text=text, message_id=message_id if type(message_id) is str else None)


def _is_from_a_person(record: dict[str, Any]) -> bool:
    kind = _field(record.get("origin"), "kind")
    return kind is None or kind == "human"


def _checkpoint(content: object, side: int) -> Node:
    text = _joined(cast("list[object]", content)) if type(content) is list else cast("str", content)
    if not text or text.isspace():
        return side | MESSAGE | CHECKPOINT, None
    return side | MESSAGE | CHECKPOINT, Entry(from_assistant=False, text=text, checkpoint=True)


def _typed_entry(content: object) -> Entry | None:
    if type(content) is str:
        text, omitted = typed_text(content), ()
    else:
        blocks = [cast("dict[str, Any]", block) for block in cast("list[object]", content) if type(block) is dict]
        typed = (typed_text(block["text"]) for block in blocks if block.get("type") == "text" and type(block.get("text")) is str)
        text = "\n".join(part for part in typed if part)
        omitted = tuple(_media(block) for block in blocks if block.get("type") in ("image", "document"))
    if not text and not omitted:
        return None
    return Entry(from_assistant=False, text=text, omitted=omitted)


def _field(value: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    """A field of an object of the log; ``None`` when it is no object."""
    return value.get(name) if value.__class__ is dict else None


def _joined(content: list[Any]) -> str:
    texts: list[str] = []
    for block in content:
        if block.__class__ is dict and block.get("type") == "text":
            text = block.get("text")
            if type(text) is str and text:
                texts.append(text)
    return "\n".join(texts)


def _media(block: dict[str, Any]) -> str:
    media_type = _field(block.get("source"), "media_type")
    return media_type if type(media_type) is str and media_type in _MEDIA_TYPES else cast("str", block["type"])
