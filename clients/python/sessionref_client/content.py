"""Blocks of a message's content, as plain values. What this version does not know travels on untouched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"


@dataclass(frozen=True, slots=True)
class _Block:
    wire: bytes = field(default=b"", kw_only=True, repr=False)
    """The block as it was received, kept only when it holds fields this version does not know, so that they travel on."""


@dataclass(frozen=True, slots=True)
class TextBlock(_Block):
    """Text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBlock(_Block):
    """An image: its bytes, or a URI the host understands. It travels untouched."""

    media_type: str
    source: bytes | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedMessage:
    """A protobuf message in its encoded form, as in ``google.protobuf.Any``."""

    type_url: str
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueBlock(_Block):
    """A block of the host's own kind: bytes, a JSON object (its numbers are doubles) or a protobuf message."""

    type: str
    value: bytes | Mapping[str, JsonValue] | PackedMessage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownBlock(_Block):
    """A block of a kind newer than this client. It travels untouched."""


ContentBlock: TypeAlias = TextBlock | ImageBlock | OpaqueBlock | UnknownBlock
