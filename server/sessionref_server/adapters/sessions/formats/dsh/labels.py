"""The latest title and the subagent's identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from sessionref_server.adapters.sessions.formats.dsh.json_fields import fields_of
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import DESCRIPTOR, TITLE

_DESCRIPTOR_VERSIONS = frozenset({2, 3})
_CONTINUABLE = "continuable"
_MODES = frozenset({"one-shot", _CONTINUABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentIdentity:
    """What a subagent was created as."""

    mode: str
    label: str | None
    seq: int | None


class Labels:
    """Last one wins, in file order."""

    __slots__ = ("subagent", "title", "title_is_fallback")

    def __init__(self) -> None:
        self.title: str | None = None
        self.title_is_fallback = False
        self.subagent: SubagentIdentity | None = None

    def copy(self) -> Labels:
        """An independent copy."""
        twin = Labels()
        twin.title, twin.title_is_fallback, twin.subagent = self.title, self.title_is_fallback, self.subagent
        return twin

    def note(self, kind: str, row: dict[str, Any]) -> None:
        """Take a row that is not on the surface."""
        if kind == TITLE:
            self._note_title(fields_of(row.get("data")))
        elif kind == DESCRIPTOR:
            self.subagent = _identity(fields_of(row.get("data")), row.get("seq"))

    def _note_title(self, data: dict[str, Any]) -> None:
        title = data.get("title")
        if type(title) is str:
            self.title = title
            self.title_is_fallback = fields_of(data.get("source")).get("kind") == "fallback"


def _identity(data: dict[str, Any], seq: object) -> SubagentIdentity | None:
    """A descriptor of any other version, or a malformed one, takes the identity away."""
    version, mode, label = data.get("version"), data.get("mode"), data.get("label")
    known = type(version) is int and version in _DESCRIPTOR_VERSIONS and type(mode) is str and mode in _MODES
    label_ok = type(label) is str or (label is None and mode != _CONTINUABLE)
    if not known or not label_ok:
        return None
    return SubagentIdentity(mode=cast("str", mode), label=cast("str | None", label), seq=seq if type(seq) is int else None)
