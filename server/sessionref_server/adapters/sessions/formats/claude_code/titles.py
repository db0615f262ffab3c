"""The title of a session: what a person named it, else what the agent did, else a summary, else the first prompt."""

from __future__ import annotations

from typing import Any

from sessionref_server.adapters.sessions.formats.claude_code.tree import RecordTree

_MAX_CHARACTERS = 2000
_MAX_SUMMARIES = 1000
_NAMED_BY = {"custom-title": "customTitle", "agent-name": "agentName", "ai-title": "aiTitle"}
"""Title records and their fields, strongest first; of each kind the last record counts, and a blank one takes the name back."""


class Titles:
    """Every title a log offers."""

    __slots__ = ("_command", "_named", "_prompt", "_sidechain_prompt", "_summaries")

    def __init__(self) -> None:
        self._named: dict[str, str] = {}
        self._summaries: dict[str, str] = {}
        self._prompt: str | None = None
        self._sidechain_prompt: str | None = None
        self._command: str | None = None

    @property
    def settled(self) -> bool:
        """Whether later ordinary records cannot change the title; a summary needs them to find its leaf, unless outranked."""
        if self._summaries and not any(self._named.values()):
            return False
        return self._prompt is not None

    def copy(self) -> Titles:
        """An independent copy."""
        twin = Titles()
        twin._named = self._named.copy()
        twin._summaries = self._summaries.copy()
        twin._prompt, twin._sidechain_prompt, twin._command = self._prompt, self._sidechain_prompt, self._command
        return twin

    def note(self, record: dict[str, Any], kind: object) -> None:
        """Take a record that may be a title."""
        if kind == "summary":
            leaf, summary = record.get("leafUuid"), record.get("summary")
            if type(leaf) is str and type(summary) is str and len(self._summaries) < _MAX_SUMMARIES:
                self._summaries[leaf] = _cut(summary)
        elif type(kind) is str and kind in _NAMED_BY:
            name = record.get(_NAMED_BY[kind])
            if type(name) is str:
                self._named[kind] = _cut(name)

    def note_prompt(self, text: str, *, in_sidechain: bool) -> None:
        """Take a text that a person typed; in a sidechain it is the task the parent agent set."""
        if in_sidechain:
            self._sidechain_prompt = self._sidechain_prompt or _cut(text)
        else:
            self._prompt = self._prompt or _cut(text)

    def note_command(self, command: str) -> None:
        """Take a slash command, the title of a session in which nothing else was typed."""
        self._command = self._command or _cut(command)

    def best(self, tree: RecordTree, *, with_sidechains: bool) -> str | None:
        """The strongest title; ``None`` when there is none."""
        for kind in _NAMED_BY:
            if self._named.get(kind):
                return self._named[kind]
        summary = self._live_summary(tree, with_sidechains=with_sidechains) if self._summaries else None
        return summary or self._prompt or (self._sidechain_prompt if with_sidechains else None) or self._command

    def _live_summary(self, tree: RecordTree, *, with_sidechains: bool) -> str | None:
        """The summary with the newest leaf on the live branch; logs also hold those of other sessions and of dead branches."""
        leaves = {tree.number(leaf): summary for leaf, summary in self._summaries.items() if summary}
        branch = tree.live_branch(with_sidechains=with_sidechains, whole_history=True)
        return next((leaves[number] for number in reversed(branch.records) if number in leaves), None)


def _cut(text: str) -> str:
    return text.strip()[:_MAX_CHARACTERS]
