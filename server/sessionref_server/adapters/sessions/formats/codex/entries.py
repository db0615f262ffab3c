"""What a history is made of, and what a compaction writes in the place of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple, cast

from sessionref_server.adapters.sessions.formats.codex.records import KEPT, MODEL, Payload, said_in_item, word
from sessionref_server.adapters.sessions.formats.codex.texts import is_summary, text_blocks

ENCRYPTED_NOTE = "compacted history (encrypted)"
NO_SUMMARY_NOTE = "compacted history (no summary recorded)"

_OPAQUE_ITEMS = frozenset({"compaction", "context_compaction", "compaction_summary"})


class Kind(Enum):
    """What an entry is."""

    USER = auto()
    ASSISTANT = auto()
    SUMMARY = auto()
    NOTE = auto()
    """Something the model sees and we cannot show; the text is a note of ours."""


# Looking a member up in its class costs more than all else that is done with it, and is done for every message.
USER, ASSISTANT, SUMMARY, NOTE = Kind.USER, Kind.ASSISTANT, Kind.SUMMARY, Kind.NOTE


class Entry(NamedTuple):
    """One thing in the history."""

    kind: Kind
    text: str
    channels: int = KEPT
    """Which channels told it."""
    turn: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Prompts:
    """User texts that compactions kept, as links to what earlier ones kept: a log may hold thousands of compactions."""

    earlier: Prompts | None
    texts: tuple[str, ...]

    def __iter__(self) -> Iterator[str]:
        """All texts, oldest first."""
        link: Prompts | None = self
        links: list[Prompts] = []
        while link is not None:
            links.append(link)
            link = link.earlier
        return (text for link in reversed(links) for text in link.texts)


@dataclass(slots=True)
class Generation:
    """History between two compactions: what the compaction left, then what was said since."""

    prompts: Prompts | None = None
    """What the compaction kept when it wrote no history of its own."""
    entries: list[Entry] = field(default_factory=list[Entry])
    typed: list[int] = field(default_factory=list[int])
    """Where the person spoke since the compaction."""
    turn: int = 0
    """Turn in which the compaction happened; 0 when turns are not marked."""
    complete: bool = False
    """The base was written down in full, so that nothing before it matters."""

    def drop_from(self, positions: list[int]) -> None:
        """Drop everything from the last of some positions on; nothing when there are none."""
        if positions:
            del self.entries[positions[-1] :]

    def copy(self) -> Generation:
        """An independent generation."""
        return Generation(self.prompts, self.entries.copy(), self.typed.copy(), self.turn, self.complete)


def summary_entry(message: str) -> Entry:
    """The checkpoint of a compaction that wrote no history."""
    return Entry(SUMMARY, message) if message.strip() else Entry(NOTE, NO_SUMMARY_NOTE)


def replacement_entries(message: str, replacement: object) -> list[Entry] | None:
    """What a replacement history shows: user and assistant texts kept word for word, the summary, opaque items.

    ``None`` when there is no such history: the first releases with compaction wrote the summary only.
    """
    if not isinstance(replacement, list) or not replacement:
        return None
    items = [cast("Payload", item) for item in cast("list[Any]", replacement) if isinstance(item, dict)]
    summary_at = max((i for i, item in enumerate(items) if _user_text(item) == message), default=-1) if message.strip() else -1
    entries = [_replacement_entry(item, is_message=index == summary_at) for index, item in enumerate(items)]
    return [entry for entry in entries if entry is not None] or [summary_entry(message)]


def _replacement_entry(item: Payload, *, is_message: bool) -> Entry | None:
    if word(item.get("type")) in _OPAQUE_ITEMS:
        return Entry(NOTE, ENCRYPTED_NOTE)
    text = _user_text(item)
    if is_message or is_summary(text):
        return Entry(SUMMARY, text)
    said = said_in_item(item)
    if said is None:
        return None
    role, _, kept = said
    return Entry(ASSISTANT if role is MODEL else USER, kept)


def _user_text(item: Payload) -> str:
    return "\n".join(text_blocks(item.get("content"))) if item.get("role") == "user" else ""
