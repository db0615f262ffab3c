"""What one event shows: who speaks, the text, and what a text projection leaves out."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

from sessionref_server.adapters.sessions.formats.dsh.json_fields import fields_of, items_of
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import ASSISTANT_MESSAGE, STEERING_MESSAGE, USER_MESSAGE
from sessionref_server.domain.message import Message, Role

_MEDIA_TYPES = frozenset(f"image/{kind}" for kind in ("avif", "bmp", "gif", "heic", "jpeg", "png", "svg+xml", "tiff", "webp"))
"""Types a sentence of ours may name: it stands outside the quoted data, where no words of a log may."""
_CHECKPOINT_KINDS = frozenset({"compact-checkpoint", "compaction"})
_SPOKEN = frozenset({USER_MESSAGE, ASSISTANT_MESSAGE, STEERING_MESSAGE})
_ASSISTANT = Role.ASSISTANT
_NOTHING: list[str] = []

Shown = tuple[Message | None, list[str], list[str]]
"""The visible message, ids of the tool calls it asks for, media types of the images in it (``""`` when not told)."""
SHOWS_NOTHING: Shown = (None, _NOTHING, _NOTHING)


def message_of_event(event: dict[str, Any]) -> Message | None:
    """The visible message an event shows: direct user text, assistant text, or a compaction checkpoint; else ``None``.

    Text is the text blocks joined by one newline; an event without text shows nothing.
    """
    kind = event.get("type")
    if kind not in _SPOKEN:
        return None
    return shown_by_assistant(event)[0] if kind == ASSISTANT_MESSAGE else shown_by_user(event)[0]


def shown_by_assistant(event: dict[str, Any]) -> Shown:
    """What an ``assistant/message`` shows."""
    try:
        content = event["data"]["message"]["content"]
    except (KeyError, TypeError):
        content = message_object(event).get("content")
    text, calls, images = _scan(content)
    return Message(_ASSISTANT, text) if text else None, calls, images


def shown_by_user(event: dict[str, Any]) -> Shown:
    """What a ``user/message`` shows: nothing, unless a person or a compaction made it."""
    message = message_object(event)
    source = fields_of(message.get("source"))
    person = source.get("kind") == "user"
    if not person and not _is_checkpoint(source):
        return SHOWS_NOTHING
    text, _, images = _scan(message.get("content"))
    return Message(Role.USER, text, not person) if text else None, _NOTHING, images


def message_object(event: dict[str, Any]) -> dict[str, Any]:
    """The message in an event's data; user messages are the data itself."""
    data = fields_of(event.get("data"))
    return fields_of(data.get("message")) or data


def source_of(event: dict[str, Any]) -> dict[str, Any]:
    """Who made an event's message."""
    return fields_of(message_object(event).get("source"))


def is_person(event: dict[str, Any]) -> bool:
    """Whether a person typed an event's message."""
    return source_of(event).get("kind") == "user"


def text_of(event: dict[str, Any]) -> str:
    """Text blocks of an event's message, whoever made it."""
    return _scan(message_object(event).get("content"))[0]


def answered_calls(event: dict[str, Any]) -> list[str]:
    """Ids of the tool calls a ``tool/result`` answers, wherever its version keeps them."""
    message = message_object(event)
    ids: list[object] = [fields_of(message.get("source")).get("callId"), message.get("toolCallId")]
    ids += [fields_of(block).get("toolCallId") for block in items_of(message.get("content"))]
    return [call_id for call_id in ids if type(call_id) is str]


def images_note(images: Counter[str]) -> str:
    """One sentence about images that a text projection leaves out."""
    count = images.total()
    types = ", ".join(sorted(filter(None, images)))
    return f"{count} image block{'s' if count != 1 else ''} omitted{f' ({types})' if types else ''}"


def _scan(content: Any) -> tuple[str, list[str], list[str]]:  # noqa: ANN401 - any JSON value
    """Text, tool call ids and image types of a message's content, in one pass: it runs for every message."""
    texts: list[Any] = []
    calls: list[Any] = []
    images: list[str] = []
    for block in cast("list[Any]", content) if type(content) is list else [{"type": "text", "text": content}]:
        try:
            kind = block["type"]
        except (KeyError, TypeError):
            continue
        if kind == "text":
            texts.append(block.get("text"))
        elif kind == "tool-call":
            calls.append(block.get("id"))
        elif kind == "image":
            images.append(_media_type(block))
    return _joined(texts), calls, images


def _joined(texts: list[Any]) -> str:
    if len(texts) == 1 and type(texts[0]) is str:
        return texts[0]
    return "\n".join([text for text in texts if type(text) is str])


def _is_checkpoint(source: dict[str, Any]) -> bool:
    kind = source.get("kind")
    return (type(kind) is str and kind in _CHECKPOINT_KINDS) or (kind == "plugin" and source.get("plugin") == "compact")


def _media_type(block: dict[str, Any]) -> str:
    for holder in (block, block.get("attachment"), block.get("source")):
        fields = fields_of(holder)
        for key in ("mediaType", "mimeType", "media_type"):
            value = fields.get(key)
            if type(value) is str and value in _MEDIA_TYPES:
                return value
    return ""
