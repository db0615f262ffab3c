"""The conversation a rollout leaves after compactions and rollbacks.

Codex tells most texts more than once: as the item the model saw (``response_item``), as an event for the terminal, in paginated
logs as a completed item. The transcript keeps each text once, at the place where it was first told, and remembers which channels
vouched for it; a user text that only ``response_item`` tells is the person's only in a log, or a part of one, without events.
"""

from __future__ import annotations

from sessionref_server.adapters.sessions.formats.codex.entries import (
    ASSISTANT,
    NOTE,
    SUMMARY,
    USER,
    Entry,
    Generation,
    Kind,
    Prompts,
    replacement_entries,
    summary_entry,
)
from sessionref_server.adapters.sessions.formats.codex.records import EVENT, ITEM, KEPT, MODEL, PERSON, Said
from sessionref_server.domain.message import Message

_OPEN_LIMIT = 64
"""How many texts wait for a second witness at most; in practice it is one or two."""

_PART_LIMIT = 8
"""The same for texts that are only a part of each other, which costs a search through them."""

_CLOSE_LENGTHS = 64
_MAX_UNDONE_COMPACTIONS = 1000
"""How often a rollback may lead past a compaction: then what a compaction costs is not paid again and again."""


class _Run:
    """The newest entries while one side speaks: where a second telling of a text is looked for."""

    __slots__ = ("_words", "items", "kind", "others", "told", "vouched")

    def __init__(self, kind: Kind | None = None) -> None:
        self.kind = kind
        self.items: list[int] = []
        """Positions of entries that only ``response_item`` told."""
        self.others: list[int] = []
        """Positions of entries that ``response_item`` has not told."""
        self.told: list[int] = []
        """Positions of the newest entries that it and another channel told; a third one may follow."""
        self.vouched = False
        """Whether any channel but ``response_item`` spoke in this run."""
        self._words: dict[int, int] = {}

    def words(self, index: int, text: str) -> int:
        """A hash of the words of the entry at a position. Each entry waits beside many others and is cut into words once."""
        found = self._words.get(index)
        if found is None:
            found = self._words[index] = _hash_of_words(text)
        return found

    def forget_words(self, index: int) -> None:
        """The entry there has another text now."""
        self._words.pop(index, None)

    def tell(self, index: int) -> None:
        """An entry has two witnesses."""
        self.told.append(index)
        if len(self.told) > _PART_LIMIT:
            del self.told[0]

    def copy(self) -> _Run:
        other = _Run(self.kind)
        other.items, other.others, other.told = self.items.copy(), self.others.copy(), self.told.copy()
        other.vouched = self.vouched
        return other


class Transcript:
    """Folds messages, compactions and rollbacks. Entries are immutable, so a copy is cheap."""

    __slots__ = ("_entries", "_events", "_generations", "_run", "_turn", "_undone_compactions", "spoken")

    def __init__(self) -> None:
        self._generations = [Generation()]
        self._entries = self._generations[-1].entries
        self._run = _Run()
        self._turn = 0
        self._events = False
        self._undone_compactions = 0
        self.spoken = False
        """Whether any message was ever said, rolled back or not."""

    def copy(self) -> Transcript:
        """An independent transcript."""
        other = Transcript()
        other._generations = [generation.copy() for generation in self._generations]
        other._entries = other._generations[-1].entries
        other._run = self._run.copy()
        other._turn, other._events, other.spoken = self._turn, self._events, self.spoken
        other._undone_compactions = self._undone_compactions
        return other

    @property
    def needs_earlier_history(self) -> bool:
        """Whether what came before the first line would still be part of the surface."""
        return not self._generations[-1].complete

    def shown(self) -> tuple[list[Message], list[str]]:
        """The visible messages in order, and notes, each once, of what the model sees and we cannot show."""
        messages = [Message(PERSON, text) for text in self._generations[-1].prompts or ()]
        notes: dict[str, None] = {}
        for entry in self._entries:
            kind, text, channels, _ = entry
            if kind is ASSISTANT:
                messages.append(Message(MODEL, text))
            elif kind is NOTE:
                notes[text] = None
            elif self._is_shown(kind, channels):
                messages.append(Message(PERSON, text, kind is SUMMARY))
        return messages, list(notes)

    def start_turn(self) -> None:
        """A turn begins."""
        self._turn += 1

    def retell(self) -> None:
        """An event tells the newest text again, which an item just told."""
        kind, text, channels, turn = self._entries[-1]
        self._entries[-1] = Entry(kind, text, channels | EVENT, turn)
        if kind is USER:
            self._events = True
        run = self._run
        run.vouched = True
        run.tell(run.items.pop())

    def say(self, said: Said) -> bool:
        """Add a text, unless it is the second telling of one that is there; whether it was added."""
        role, channel, text = said
        kind = ASSISTANT if role is MODEL else USER
        run = self._run
        if run.kind is not kind:
            run = self._begin_run(kind)
        if channel != ITEM:
            run.vouched = True
            self._events = self._events or kind is USER
        # The oldest entry without this witness comes first: channels tell texts in the same order.
        if channel == ITEM:
            paired = bool(run.others) and self._pair(said, run.others)
            waiting = run.items
        else:
            paired = self._pair(said, run.items) or self._pair(said, run.told + run.others)
            waiting = run.others
        if paired:
            return False
        self.spoken = True
        waiting.append(len(self._entries))
        if len(waiting) > _OPEN_LIMIT:
            del waiting[0]
        if kind is USER:
            self._generations[-1].typed.append(len(self._entries))
        self._entries.append(Entry(kind, text, channel, self._turn))
        return True

    def compact(self, message: str, replacement: object) -> None:
        """Put a compaction's result in the place of everything before it."""
        last = self._generations[-1]
        entries = replacement_entries(message, replacement)
        if entries is None:
            kept = (text for kind, text, channels, _ in last.entries if kind is USER and self._is_shown(kind, channels))
            prompts = Prompts(last.prompts, tuple(kept))
            self._generations.append(Generation(prompts, [summary_entry(message)], turn=self._turn, complete=last.complete))
        else:
            self._generations.append(Generation(None, entries, turn=self._turn, complete=True))
        self._history_changed()

    def roll_back(self, turns: int) -> None:
        """Drop the newest user turns, and with them a compaction that happened inside one of them."""
        while turns > 0:
            generation = self._generations[-1]
            taken = self._take_typed(generation, turns)
            if generation.typed or not self._may_undo_compaction():
                generation.drop_from(taken)
                break
            turns -= len(taken)
            if turns == 0 and not 0 < generation.turn == generation.entries[taken[-1]].turn:
                generation.drop_from(taken)
                break
            self._generations.pop()
            self._undone_compactions += 1
        self._history_changed()

    def _may_undo_compaction(self) -> bool:
        return len(self._generations) > 1 and self._undone_compactions < _MAX_UNDONE_COMPACTIONS

    def _take_typed(self, generation: Generation, turns: int) -> list[int]:
        """Take the positions of up to ``turns`` newest prompts, newest first; what is left over ends with a prompt as well.

        What no event vouched for by now is the person's no more, so it is looked at once.
        """
        typed, entries, taken = generation.typed, generation.entries, list[int]()
        while typed and (len(taken) < turns or not self._is_shown(USER, entries[typed[-1]].channels)):
            position = typed.pop()
            if self._is_shown(USER, entries[position].channels):
                taken.append(position)
        return taken

    def _history_changed(self) -> None:
        self._entries = self._generations[-1].entries
        self._run = _Run()

    def _is_shown(self, kind: Kind, channels: int) -> bool:
        return kind is not USER or channels != ITEM or not self._events

    def _begin_run(self, kind: Kind) -> _Run:
        if kind is ASSISTANT and self._run.items:
            self._keep_answered()
        self._run = _Run(kind)
        return self._run

    def _keep_answered(self) -> None:
        """Decide on user items that no event vouches for, now that the model answers.

        Before the first event they are of a time without events. Later, in a log whose turns are not marked, the one answered
        stands as well: such logs (of old versions, or cut down by tools) have events for some prompts only. Where turns are
        marked events are reliable, and what they do not tell was not typed.
        """
        if self._run.vouched or (self._events and self._turn):
            return
        for index in self._run.items[-1:] if self._events else self._run.items:
            self._entries[index] = self._entries[index]._replace(channels=ITEM | KEPT)

    def _pair(self, said: Said, candidates: list[int]) -> bool:
        """Find the first telling of a text among the newest entries, and let this channel vouch for it too."""
        role, channel, text = said
        entries = self._entries
        same = self._find_same(channel, text, candidates)
        if same is not None:
            self._vouch(same, channel, text)
            return True
        if role is MODEL:
            for index in candidates[-_PART_LIMIT:]:
                entry = entries[index]
                if not entry.channels & channel and _same_part(entry, channel, text):
                    self._vouch(index, channel, text)
                    return True
        return False

    def _find_same(self, channel: int, text: str, candidates: list[int]) -> int | None:
        """The first entry without this witness that tells the same words.

        Codex joins text blocks with nothing in events, and with a line break elsewhere.
        """
        words: int | None = None
        for index in candidates:
            entry = self._entries[index]
            if entry.channels & channel:
                continue
            if entry.text == text:
                return index
            if abs(len(entry.text) - len(text)) < _CLOSE_LENGTHS:
                words = _hash_of_words(text) if words is None else words
                if self._run.words(index, entry.text) == words:
                    return index
        return None

    def _vouch(self, index: int, channel: int, text: str) -> None:
        run = self._run
        kind, told, channels, turn = self._entries[index]
        channels |= channel
        self._entries[index] = Entry(kind, text if channel == ITEM else told, channels, turn)
        run.forget_words(index)
        if channels & ITEM and index not in run.told:
            waiting = run.others if channel == ITEM else run.items
            waiting.remove(index)
            run.tell(index)


def _hash_of_words(text: str) -> int:
    return hash(" ".join(text.split()))


def _same_part(entry: Entry, channel: int, text: str) -> bool:
    """Events leave out what the terminal hides of an assistant item: citations, and the plan, which is told on its own."""
    if channel == ITEM:
        return entry.text.strip() in text
    return entry.channels & ITEM != 0 and text.strip() in entry.text
