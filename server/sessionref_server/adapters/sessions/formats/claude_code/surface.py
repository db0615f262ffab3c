"""The surface of a Claude Code session: the live branch from the newest compaction on, projected to visible messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import orjson

from sessionref_server.adapters.sessions.formats.claude_code.records import (
    Entry,
    Node,
    read_assistant,
    read_linked,
    read_queued_command,
    read_user,
    withdrawn_uuids,
)
from sessionref_server.adapters.sessions.formats.claude_code.tally import Tally, judge, open_record
from sessionref_server.adapters.sessions.formats.claude_code.tree import MESSAGE, SIDECHAIN, RecordTree
from sessionref_server.adapters.sessions.formats.claude_code.workspace import Workspace
from sessionref_server.adapters.sessions.json_line import parse_json_line
from sessionref_server.adapters.sessions.log_format import LogEnd, Surface
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.session import ReadingFacts

_MAX_PARTS = 64
"""Records one message is followed over, back from a part beside the branch."""
_FORK_NOTE = "the context this agent was forked with is in another session"


class ClaudeSurfaceFold:
    """Keeps, of each record, its place in the tree and its visible text; never tool output, reasoning or attachments."""

    def __init__(self, native_id: str, *, is_subagent: bool) -> None:
        self._native_id = native_id
        self._state = _State(own_sidechains=is_subagent)
        self._add = self._state.add

    def feed(self, line: bytes) -> None:
        """Take one complete line."""
        # Parsed here, not by the function of the same purpose: a call for each line of a long log shows.
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = cast("Any", parse_json_line(line))
        if record.__class__ is dict:
            self._add(record, len(line))
        else:
            self._state.tally.count_unreadable(line)

    def surface(self, end: LogEnd) -> Surface:
        """The surface as of now."""
        state = self._state
        record, torn = open_record(end)
        if record is not None:
            state = state.copy()
            state.add(record, len(end.tail))
        own = state.own_sidechains
        branch = state.tree.live_branch(with_sidechains=own)
        entries = state.live_entries(branch.records, with_sidechains=own)
        messages = list(_messages(entries))
        verdict = judge(state.tally, end, torn_tail=torn, visible=bool(messages), broken_links=branch.broken_links)
        read = state.tally.records + end.skipped_lines
        return Surface(
            native_id=self._native_id,
            messages=messages,
            cwd=state.workspace.cwd,
            through_seq=read - 1 if read else None,
            reading=ReadingFacts(
                status=verdict.status,
                damaged_records=state.tally.damaged + end.skipped_lines,
                unknown_records=state.tally.unknown,
                torn_tail=verdict.torn_tail,
                notes=_notes(entries, verdict.note, is_fork=state.is_fork),
            ),
        )


class _State:
    """Everything a surface needs of the records so far."""

    __slots__ = (
        "_entries",
        "_has_cwd",
        "_is_subagent",
        "_withdrawn",
        "has_main",
        "is_fork",
        "tally",
        "tree",
        "workspace",
    )

    def __init__(self, *, own_sidechains: bool) -> None:
        self._is_subagent = own_sidechains
        self.tree = RecordTree()
        self.tally = Tally()
        self.workspace = Workspace()
        self.has_main = False
        self.is_fork = False
        self._has_cwd = False
        self._entries: dict[int, Entry] = {}
        self._withdrawn: set[str] = set()

    def copy(self) -> _State:
        """An independent state, for a record that is read but may not be kept."""
        twin = _State(own_sidechains=self._is_subagent)
        twin.tree, twin.tally, twin.workspace = self.tree.copy(), self.tally.copy(), self.workspace.copy()
        twin.has_main, twin.is_fork = self.has_main, self.is_fork
        twin._entries = self._entries.copy()
        twin._withdrawn = self._withdrawn.copy()
        return twin

    @property
    def own_sidechains(self) -> bool:
        """Whether sidechain records are the conversation itself: in a subagent's log, and in a log of nothing else."""
        return self._is_subagent or not self.has_main

    def add(self, record: dict[str, Any], size_bytes: int) -> None:
        """Take one record."""
        tally = self.tally
        tally.records += 1
        tally.size_bytes += size_bytes
        if not self._has_cwd:
            self.workspace.note(record)
            self._has_cwd = self.workspace.settled
        kind = record.get("type")
        if kind == "user":
            node = read_user(record)
        elif kind == "assistant":
            node = read_assistant(record)
        else:
            self._add_other(record, kind)
            return
        if node is None:
            tally.count_misshapen(record)
            node = read_linked(record)
        if "supersedesUuids" in record:
            self._withdrawn.update(withdrawn_uuids(record))
        self._place(record, node)

    def live_entries(self, records: Sequence[int], *, with_sidechains: bool) -> list[Entry]:
        """Visible entries of the live branch in order, with the parts of a split message that lie beside the branch."""
        hidden = 0 if with_sidechains else SIDECHAIN
        entries, flags = self._entries, self.tree.flags
        withdrawn = {self.tree.number(uuid) for uuid in self._withdrawn}
        parts = self._parts_beside(records)
        if parts:
            records = [shown for number in records for shown in (number, *parts.get(number, ()))]
        return [entries[n] for n in records if n in entries and n not in withdrawn and not flags[n] & hidden]

    def _parts_beside(self, records: Sequence[int]) -> dict[int, list[int]]:
        """Visible parts of live messages off the branch, by the part on it they follow.

        Each block of a message is written as a record of its own; when the result of an earlier block carries the branch on, the
        later blocks are left beside it.
        """
        branch = set(records)
        parts: dict[int, list[int]] = {}
        for number, entry in self._entries.items():
            if entry.from_assistant and number not in branch:
                anchor = self._live_part_before(number, branch)
                if anchor is not None and self._same_message(anchor, entry):
                    parts.setdefault(anchor, []).append(number)
        return parts

    def _live_part_before(self, number: int, branch: set[int]) -> int | None:
        for _ in range(_MAX_PARTS):
            before = self.tree.reply_before(number)
            if before is None or before in branch:
                return before
            number = before
        return None

    def _same_message(self, anchor: int, entry: Entry) -> bool:
        other = self._entries.get(anchor)
        return other is None or (other.message_id is not None and other.message_id == entry.message_id)

    def _add_other(self, record: dict[str, Any], kind: object) -> None:
        self.tally.count_other(kind)
        self._withdrawn.update(withdrawn_uuids(record))
        if kind == "relocated":
            self.workspace.relocate(record)
        elif kind == "fork-context-ref":
            self.is_fork = True
        node = read_queued_command(record) if kind == "attachment" else None
        if node is not None or "uuid" in record:
            self._place(record, node or read_linked(record))

    def _place(self, record: dict[str, Any], node: Node) -> None:
        flags, entry = node
        if not self.has_main and flags & (MESSAGE | SIDECHAIN) == MESSAGE:
            self.has_main = True
            self._forget_sidechains()
        number = self.tree.add(record, flags)
        if entry is not None and (not flags & SIDECHAIN or self.own_sidechains):
            self._entries[number] = entry

    def _forget_sidechains(self) -> None:
        if not self._is_subagent:
            self._entries.clear()


def _messages(entries: Iterable[Entry]) -> Iterator[Message]:
    """Join neighbouring records of one API message, each text once."""
    open_id: str | None = None
    texts: dict[str, None] = {}
    for entry in entries:
        if not entry.text:
            continue
        if texts and (entry.message_id is None or entry.message_id != open_id):
            yield Message(Role.ASSISTANT, "\n".join(texts))
            texts = {}
        if entry.message_id is None:
            yield Message(Role.ASSISTANT if entry.from_assistant else Role.USER, entry.text, entry.checkpoint)
        else:
            open_id = entry.message_id
            texts[entry.text] = None
    if texts:
        yield Message(Role.ASSISTANT, "\n".join(texts))


def _notes(entries: Iterable[Entry], fault: str, *, is_fork: bool) -> tuple[str, ...]:
    notes = [fault] if fault else []
    if is_fork:
        notes.append(_FORK_NOTE)
    omitted = Counter(name for entry in entries for name in entry.omitted)
    images = {name: count for name, count in omitted.items() if name.startswith("image")}
    documents = {name: count for name, count in omitted.items() if name not in images}
    notes.extend(_omission(kind, counts) for kind, counts in (("image", images), ("document", documents)) if counts)
    return tuple(notes)


def _omission(kind: str, counts: dict[str, int]) -> str:
    total = sum(counts.values())
    types = ", ".join(sorted(name for name in counts if "/" in name))
    return f"{total} {kind}{'s' if total > 1 else ''} omitted" + (f" ({types})" if types else "")
