"""The head of a Claude Code session: title, directory, times, model, parent and state."""

from __future__ import annotations

import re
from typing import Any

from sessionref_server.adapters.sessions.formats.claude_code.injected import slash_command
from sessionref_server.adapters.sessions.formats.claude_code.records import (
    Node,
    read_assistant,
    read_linked,
    read_queued_command,
    read_user,
    reply_model,
    whole_text,
)
from sessionref_server.adapters.sessions.formats.claude_code.tally import Tally, Verdict, judge, open_record
from sessionref_server.adapters.sessions.formats.claude_code.titles import Titles
from sessionref_server.adapters.sessions.formats.claude_code.tree import MESSAGE, SIDECHAIN, RecordTree
from sessionref_server.adapters.sessions.formats.claude_code.workspace import Workspace
from sessionref_server.adapters.sessions.json_line import epoch_ms, parse_json_line
from sessionref_server.adapters.sessions.log_format import LogEnd, NativeHead
from sessionref_server.domain.session import ModelRoute

_PROVIDER = "anthropic"
_MARKER = re.compile(
    rb'"type":"custom-title"|"type": "custom-title"|"type":"ai-title"|"type": "ai-title"|"type":"agent-name"|"type": "agent-name"'
    rb'|"type":"summary"|"type": "summary"|"type":"relocated"|"type": "relocated"'
)
_READ_WHOLE_BYTES = 1 << 16
"""Always read before anything is skipped, so that the state of a short log is judged on all of it."""
_MAX_TITLE_CHARACTERS = 2000


class ClaudeHeadFold:
    """Reads the beginning of a log, its title records wherever they are, and its end."""

    marker = _MARKER

    def __init__(self, native_id: str, parent_native_id: str | None, *, is_subagent: bool) -> None:
        self._native_id = native_id
        self._state = _State(native_id, parent_native_id, is_subagent=is_subagent)

    @property
    def settled(self) -> bool:
        """Whether first prompt, directory and creation time are known, and no summary waits for its leaf."""
        return self._state.settled

    def feed(self, line: bytes) -> None:
        """Take one complete line."""
        record = parse_json_line(line)
        if record is None:
            self._state.tally.count_unreadable(line)
        else:
            self._state.add(record, len(line))

    def head(self, end: LogEnd) -> NativeHead:
        """The head as of now."""
        state = self._state
        record, torn = open_record(end)
        if record is not None:
            state = state.copy()
            state.add(record, len(end.tail))
        verdict = state.verdict(end, torn_tail=torn)
        return NativeHead(
            native_id=self._native_id,
            title=state.title(),
            cwd=state.workspace.cwd,
            created_at_ms=state.created_at_ms,
            updated_at_ms=state.updated_at_ms,
            parent_native_id=state.parent if state.is_subagent else None,
            is_subagent=state.is_subagent,
            route=ModelRoute(provider=_PROVIDER, model=state.model) if state.model else None,
            status=verdict.status,
            status_detail=verdict.detail,
        )


class _State:
    """Everything a head needs of the records so far."""

    def __init__(self, native_id: str, parent_native_id: str | None, *, is_subagent: bool) -> None:
        self._native_id = native_id
        self._from_folder = is_subagent
        self.parent = parent_native_id
        self.tree = RecordTree()
        self.tally = Tally()
        self.workspace = Workspace()
        self.titles = Titles()
        self.created_at_ms: int | None = None
        self.updated_at_ms: int | None = None
        self.model: str | None = None
        self._has_main = False
        self._has_sidechain = False
        self._visible = False
        self._visible_in_sidechain = False
        self._was_settled = False

    @property
    def is_subagent(self) -> bool:
        """Told by the place of the file, else by a log of nothing but sidechain messages."""
        return self._from_folder or (self._has_sidechain and not self._has_main)

    @property
    def settled(self) -> bool:
        """See the fold; stays true once it is."""
        if not self._was_settled:
            known = self.workspace.cwd is not None and self.created_at_ms is not None and self.model is not None
            enough = self.tally.size_bytes >= _READ_WHOLE_BYTES
            self._was_settled = enough and known and self._shows_message() and self.titles.settled
        return self._was_settled

    def copy(self) -> _State:
        """An independent state, for a record that is read but may not be kept."""
        twin = _State.__new__(_State)
        twin.__dict__.update(self.__dict__)
        twin.tree, twin.tally = self.tree.copy(), self.tally.copy()
        twin.workspace, twin.titles = self.workspace.copy(), self.titles.copy()
        return twin

    def add(self, record: dict[str, Any], size_bytes: int) -> None:
        """Take one record."""
        self.tally.records += 1
        self.tally.size_bytes += size_bytes
        self.workspace.note(record)
        self._note_time(record)
        kind = record.get("type")
        if kind == "user":
            self._add_message(record, read_user(record))
        elif kind == "assistant":
            self._add_message(record, read_assistant(record))
            self._note_model(record)
        else:
            self._add_other(record, kind)

    def title(self) -> str | None:
        """The best title so far."""
        return self.titles.best(self.tree, with_sidechains=self.is_subagent)

    def verdict(self, end: LogEnd, *, torn_tail: bool) -> Verdict:
        """State of the log, judged on what was read."""
        broken = 0
        if not self._was_settled:
            # Between skipped lines every link looks broken.
            broken = self.tree.live_branch(with_sidechains=self.is_subagent).broken_links
        return judge(self.tally, end, torn_tail=torn_tail, visible=self._shows_message(), broken_links=broken)

    def _shows_message(self) -> bool:
        return self._visible or (self._visible_in_sidechain and self.is_subagent)

    def _add_message(self, record: dict[str, Any], node: Node | None) -> None:
        if node is None:
            self.tally.count_misshapen(record)
            node = read_linked(record)
        else:
            self._note_moment(record)
        self._place(record, node)
        flags, entry = node
        if record["type"] == "user" and entry is None and flags & MESSAGE:
            self._note_command(record)

    def _add_other(self, record: dict[str, Any], kind: object) -> None:
        self.tally.count_other(kind)
        self.titles.note(record, kind)
        if kind == "relocated":
            self.workspace.relocate(record)
        elif kind == "fork-context-ref":
            self._note_parent(record.get("parentSessionId"))
        node = read_queued_command(record) if kind == "attachment" else None
        if node is not None or "uuid" in record:
            self._place(record, node or read_linked(record))

    def _place(self, record: dict[str, Any], node: Node) -> None:
        flags, entry = node
        self.tree.add(record, flags)
        side = bool(flags & SIDECHAIN)
        if flags & MESSAGE:
            self._has_sidechain = self._has_sidechain or side
            self._has_main = self._has_main or not side
        if side:
            self._note_parent(record.get("sessionId"))
        if entry is not None and entry.text:
            self._visible = self._visible or not side
            self._visible_in_sidechain = True
            if not entry.from_assistant and not entry.checkpoint:
                self.titles.note_prompt(entry.text[:_MAX_TITLE_CHARACTERS], in_sidechain=side)

    def _note_command(self, record: dict[str, Any]) -> None:
        command = slash_command(whole_text(record))
        if command is not None:
            self.titles.note_command(command)

    def _note_time(self, record: dict[str, Any]) -> None:
        if self.created_at_ms is None:
            self.created_at_ms = epoch_ms(record.get("timestamp"))

    def _note_moment(self, record: dict[str, Any]) -> None:
        moment = epoch_ms(record.get("timestamp"))
        if moment is not None and moment > (self.updated_at_ms or 0):
            self.updated_at_ms = moment

    def _note_model(self, record: dict[str, Any]) -> None:
        model = reply_model(record)
        side = record.get("isSidechain") is True
        if model is not None and (self._from_folder or not side or not self._has_main):
            self.model = model[:_MAX_TITLE_CHARACTERS]

    def _note_parent(self, parent: object) -> None:
        if self.parent is None and type(parent) is str and parent and parent != self._native_id:
            self.parent = parent
