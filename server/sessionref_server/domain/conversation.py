"""A projected conversation, packed so that thousands of messages move between processes and caches as a few buffers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import orjson

from sessionref_server.domain.message import Message, Role

_ASSISTANT = 1
_CHECKPOINT = 2
_CHECKPOINT_FLAGS = (_CHECKPOINT, _CHECKPOINT | _ASSISTANT)

_EMPTY_USER_BYTES = len('{"role":"user","text":""}')
_EMPTY_ASSISTANT_BYTES = len('{"role":"assistant","text":""}')
_EXTRA_BYTES_PER_LESS_THAN = len("\\u003c") - len("<")


def message_json_bytes(role: Role, text: str) -> int:
    """Size in bytes of one message as a tag-safe JSON object ``{"role":…,"text":…}``."""
    overhead = _EMPTY_ASSISTANT_BYTES if role is Role.ASSISTANT else _EMPTY_USER_BYTES
    return overhead - len('""') + tag_safe_json_bytes(text)


def tag_safe_json_bytes(text: str) -> int:
    """Size in bytes of ``text`` as a tag-safe JSON string, quotes included."""
    encoded = orjson.dumps(text)
    return len(encoded) + _EXTRA_BYTES_PER_LESS_THAN * encoded.count(b"<")


class Conversation(Sequence[Message]):
    """Messages in surface order, with the sizes retention needs known in advance.

    Texts lie one after the other in a single UTF-8 buffer; per message there are its end offset, its size as tag-safe JSON and
    its flags. Retention therefore reads numbers only, and a 10 MB conversation pickles as one copy.
    """

    __slots__ = ("_ends", "_flags", "_json_bytes", "_texts")

    def __init__(self, texts: bytes, ends: array[int], json_bytes: array[int], flags: bytes) -> None:
        self._texts = texts
        self._ends = ends
        self._json_bytes = json_bytes
        self._flags = flags

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Conversation:
        """Pack messages."""
        texts = bytearray()
        ends: array[int] = array("q")
        json_bytes: array[int] = array("q")
        flags = bytearray()
        for message in messages:
            texts += message.text.encode()
            ends.append(len(texts))
            json_bytes.append(message_json_bytes(message.role, message.text))
            flags.append((message.role is Role.ASSISTANT) * _ASSISTANT | message.checkpoint * _CHECKPOINT)
        return cls(bytes(texts), ends, json_bytes, bytes(flags))

    def __reduce__(self) -> tuple[type[Conversation], tuple[bytes, array[int], array[int], bytes]]:
        return Conversation, (self._texts, self._ends, self._json_bytes, self._flags)

    def __len__(self) -> int:
        return len(self._ends)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conversation) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self._texts, self._flags))

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return Message(self.role(index), self.text_utf8(index).decode(), self.is_checkpoint(index))

    def __iter__(self) -> Iterator[Message]:
        return (self[index] for index in range(len(self)))

    def text_utf8(self, index: int) -> bytes:
        """Text of one message as UTF-8."""
        return self._texts[self._start(index) : self._ends[index]]

    def text_bytes(self, index: int) -> int:
        """Size of one message's text in UTF-8 bytes."""
        return self._ends[index] - self._start(index)

    def json_bytes(self, index: int) -> int:
        """Size of one message as a tag-safe JSON object ``{"role":…,"text":…}``."""
        return self._json_bytes[index]

    def role(self, index: int) -> Role:
        """Who one message speaks as."""
        return Role.ASSISTANT if self._flags[index] & _ASSISTANT else Role.USER

    def is_checkpoint(self, index: int) -> bool:
        """Whether the message is a compaction checkpoint."""
        return bool(self._flags[index] & _CHECKPOINT)

    @property
    def total_text_bytes(self) -> int:
        """Size of all texts in UTF-8 bytes."""
        return len(self._texts)

    @property
    def texts_utf8(self) -> bytes:
        """All texts in one buffer, for detectors that scan bytes."""
        return self._texts

    def packed_texts(self, count: int) -> tuple[memoryview, memoryview]:
        """The first ``count`` texts in one buffer, and where each ends: equal for equal texts, whatever follows them."""
        texts_end = self._ends[count - 1] if count else 0
        return memoryview(self._texts)[:texts_end], memoryview(self._ends)[:count]

    def begins_with(self, other: Conversation) -> bool:
        """Whether the first messages are those of another conversation. Takes the time of comparing bytes."""
        return (
            self._texts.startswith(other._texts)
            and self._flags.startswith(other._flags)
            and self._ends[: len(other)] == other._ends
        )

    def since(self, first: int) -> Conversation:
        """The messages from index ``first`` on."""
        start = self._start(first) if first < len(self) else len(self._texts)
        ends = array("q", (end - start for end in self._ends[first:]))
        return Conversation(self._texts[start:], ends, self._json_bytes[first:], self._flags[first:])

    @property
    def compacted(self) -> bool:
        """Whether any message is a checkpoint."""
        return any(flags in self._flags for flags in _CHECKPOINT_FLAGS)

    def checkpoint_indices(self) -> list[int]:
        """Indices of all checkpoints, ascending. Takes time for those that exist, not for the messages between them."""
        return sorted(index for flags in _CHECKPOINT_FLAGS for index in self._indices_of(flags))

    def _indices_of(self, flags: int) -> Iterator[int]:
        index = self._flags.find(flags)
        while index >= 0:
            yield index
            index = self._flags.find(flags, index + 1)

    def _start(self, index: int) -> int:
        return self._ends[index - 1] if index else 0
