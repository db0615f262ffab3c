"""One item of a surface: the conversation as the source's model sees it now."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """Who a projected message speaks as."""

    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    """Visible text of one surface item.

    Only direct user text, assistant text and compaction checkpoints ever become a Message; a checkpoint
    speaks as the user. ``text`` is valid Unicode (no surrogates) and not empty.
    """

    role: Role
    text: str
    checkpoint: bool = False
