"""Projection of one event, and the surface as a list that replacements can cut into."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sessionref_server.adapters.sessions.formats.dsh.json_fields import fields_of, items_of
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import (
    ASSISTANT_MESSAGE,
    STEERING_MESSAGE,
    SYSTEM_MESSAGE,
    TOOL_RESULT,
    USER_MESSAGE,
)
from sessionref_server.domain.message import Message, Role

_EDGE = -1
_MEDIA_TYPE = re.compile(r"image/[a-z0-9.+-]{1,32}")
_CHECKPOINT_KINDS = frozenset({"compact-checkpoint", "compaction"})
_SPOKEN = frozenset({USER_MESSAGE, ASSISTANT_MESSAGE, STEERING_MESSAGE})


class InvalidSurfaceError(Exception):
    """A row breaks the surface; the message is one sentence of ours."""


def message_of_event(event: dict[str, Any]) -> Message | None:
    """The visible message an event shows: direct user text, assistant text, or a compaction checkpoint; else ``None``.

    Text is the text blocks joined by one newline; an event without text shows nothing.
    """
    kind = event.get("type")
    if kind not in _SPOKEN:
        return None
    message = message_object(event)
    checkpoint = False
    if kind != ASSISTANT_MESSAGE:
        source = message.get("source")
        checkpoint = _is_checkpoint(source)
        if not checkpoint and not is_person(source):
            return None
    text = _text_of(message.get("content"))
    return Message(Role.ASSISTANT if kind == ASSISTANT_MESSAGE else Role.USER, text, checkpoint) if text else None


def message_object(event: dict[str, Any]) -> dict[str, Any]:
    """The message in an event's data; user messages are the data itself."""
    data = fields_of(event.get("data"))
    return fields_of(data.get("message")) or data


def source_of(event: dict[str, Any]) -> dict[str, Any]:
    """Who made an event's message."""
    return fields_of(message_object(event).get("source"))


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Content blocks that are objects."""
    return [block for item in items_of(message.get("content")) if (block := fields_of(item))]


def image_types(event: dict[str, Any]) -> list[str]:
    """Media type of each image in an event's message; ``""`` when it is not told."""
    return [_media_type(block) for block in blocks_of(message_object(event)) if block.get("type") == "image"]


def images_note(images: Counter[str]) -> str:
    """One sentence about images that a text projection leaves out."""
    count = images.total()
    types = ", ".join(sorted(filter(None, images)))
    return f"{count} image block{'s' if count != 1 else ''} omitted{f' ({types})' if types else ''}"


def _text_of(content: object) -> str:
    if type(content) is str:
        return content
    texts: list[str] = []
    for block in items_of(content):
        fields = fields_of(block)
        if fields.get("type") == "text" and type(text := fields.get("text")) is str:
            texts.append(text)
    return "\n".join(texts)


def is_person(source: object) -> bool:
    """Whether a message's source is the person who typed it."""
    return fields_of(source).get("kind") == "user"


def _is_checkpoint(source: object) -> bool:
    fields = fields_of(source)
    kind = fields.get("kind")
    return (type(kind) is str and kind in _CHECKPOINT_KINDS) or (kind == "plugin" and fields.get("plugin") == "compact")


def _media_type(block: dict[str, Any]) -> str:
    for holder in (block, block.get("attachment"), block.get("source")):
        fields = fields_of(holder)
        for key in ("mediaType", "mimeType", "media_type"):
            value = fields.get(key)
            if type(value) is str and _MEDIA_TYPE.fullmatch(value):
                return value
    return ""


class SurfaceNodes:
    """Nodes in surface order, linked both ways: a replacement costs what it removes, however long the surface is."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {_EDGE: _EDGE}
        self._previous: dict[int, int] = {_EDGE: _EDGE}
        self._kinds: dict[int, str] = {}
        self._messages: dict[int, Message] = {}
        self._images: dict[int, list[str]] = {}

    def copy(self) -> SurfaceNodes:
        """An independent copy."""
        twin = SurfaceNodes()
        twin._next = self._next.copy()
        twin._previous = self._previous.copy()
        twin._kinds = self._kinds.copy()
        twin._messages = self._messages.copy()
        twin._images = self._images.copy()
        return twin

    def __iter__(self) -> Iterator[int]:
        node = self._next[_EDGE]
        while node != _EDGE:
            yield node
            node = self._next[node]

    def __contains__(self, node: int) -> bool:
        return node in self._kinds

    def messages(self) -> list[Message]:
        """Visible messages in surface order."""
        messages = self._messages
        return [messages[node] for node in self if node in messages]

    def images(self) -> Counter[str]:
        """Images on the surface by media type."""
        return Counter(media_type for types in self._images.values() for media_type in types)

    def append(self, node: int, event: dict[str, Any]) -> None:
        """Add an event at the end."""
        self._link(node, self._previous[_EDGE], event)

    def replace(self, removed: list[int], node: int, event: dict[str, Any]) -> None:
        """Put an event in the place of the first of ``removed``, which go away; at the end when there are none."""
        before = self._previous[removed[0] if removed else _EDGE]
        doomed = set(removed)
        while before in doomed:
            before = self._previous[before]
        for gone in doomed:
            self._unlink(gone)
        self._link(node, before, event)

    def span(self, start: int, end: int) -> tuple[list[int], bool]:
        """Nodes from one to the other in surface order, both there, and whether ``start`` does come first.

        The search goes from both at once, so it costs what lies between them, not what lies behind.
        """
        forward, backward = [start], [end]
        while forward[-1] != end and backward[-1] != start:
            for walk in (forward, backward):
                following = self._next[walk[-1]] if walk[-1] != _EDGE else _EDGE
                walk.append(following)
        return (forward, True) if forward[-1] == end else (backward, False)

    def check_replacement(self, removed: list[int], kind: str, *, guards_system: bool) -> None:
        """Hold a replacement against the rules of its kind. Raises InvalidSurfaceError."""
        if kind == TOOL_RESULT and [self._kinds[node] for node in removed] != [TOOL_RESULT]:
            raise InvalidSurfaceError("a tool result replaces something else than one tool result")
        first = removed[0]
        guarded = guards_system and self._kinds[first] == SYSTEM_MESSAGE and self._previous[first] == _EDGE
        if guarded and (kind != SYSTEM_MESSAGE or len(removed) != 1):
            raise InvalidSurfaceError("something else than a system message replaces the first system message")

    def _link(self, node: int, before: int, event: dict[str, Any]) -> None:
        after = self._next[before]
        self._next[before] = node
        self._next[node] = after
        self._previous[node] = before
        self._previous[after] = node
        kind = self._kinds[node] = event["type"]
        if kind in _SPOKEN:
            if message := message_of_event(event):
                self._messages[node] = message
            if (kind == ASSISTANT_MESSAGE or is_person(source_of(event))) and (images := image_types(event)):
                self._images[node] = images

    def _unlink(self, node: int) -> None:
        before, after = self._previous.pop(node), self._next.pop(node)
        self._next[before] = after
        self._previous[after] = before
        del self._kinds[node]
        self._messages.pop(node, None)
        self._images.pop(node, None)
