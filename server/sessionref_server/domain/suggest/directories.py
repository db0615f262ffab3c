"""The distinct working directories of all sessions. They are few: a query is held against each once, not once a session."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from sessionref_server.domain.suggest.haystack import ENTRY_END, build_haystack, entries_with, folded
from sessionref_server.domain.workspace import workspace_key

NO_DIRECTORY: Final = 0
"""Number of the absent directory."""

_SEGMENT_DIRECTORIES: Final = 1_024
_MANY_MATCHES: Final = 128


class Directories:
    """Gives each recorded directory a small number while any session uses it."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = [""]
        self._uses: list[int] = [1]
        self._free: list[int] = []
        self._by_workspace: dict[str, set[int]] = {}
        self._segments: list[bytes | None] = [None]
        """Haystacks of consecutive numbers; ``None`` until asked for after a change."""

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def acquire(self, cwd: str | None) -> int:
        """Number of a directory for one more session."""
        if cwd is None:
            return NO_DIRECTORY
        number = self._numbers.get(cwd)
        if number is None:
            number = self._add(cwd)
        self._uses[number] += 1
        return number

    def release(self, cwd: str | None) -> None:
        """Take back one ``acquire``. A directory that no session uses is forgotten."""
        if cwd is None:
            return
        number = self._numbers[cwd]
        self._uses[number] -= 1
        if self._uses[number] == 0:
            self._forget(cwd, number)

    def number(self, cwd: str | None) -> int:
        """Number of a directory in use."""
        return NO_DIRECTORY if cwd is None else self._numbers[cwd]

    def numbers_of(self, cwds: Collection[str]) -> frozenset[int]:
        """Numbers of those directories that are in use."""
        return frozenset(self._numbers[cwd] for cwd in cwds if cwd in self._numbers)

    def same_as(self, cwd: str) -> frozenset[int]:
        """Numbers of the directories whose text names the same workspace as ``cwd``."""
        return frozenset(self._by_workspace.get(workspace_key(cwd), ()))

    def matching(self, needle: bytes) -> set[int]:
        """Numbers of the directories that hold a needle, which is folded and not empty."""
        numbers: set[int] = set()
        for segment in range(len(self._segments)):
            numbers |= _matching_entries(self._segment(segment), needle, segment * _SEGMENT_DIRECTORIES)
        return numbers

    def _add(self, cwd: str) -> int:
        if self._free:
            number = self._free.pop()
            self._names[number] = cwd
        else:
            number = len(self._names)
            self._names.append(cwd)
            self._uses.append(0)
        self._numbers[cwd] = number
        self._by_workspace.setdefault(workspace_key(cwd), set()).add(number)
        self._mark_changed(number)
        return number

    def _forget(self, cwd: str, number: int) -> None:
        del self._numbers[cwd]
        self._names[number] = ""
        self._free.append(number)
        self._mark_changed(number)
        key = workspace_key(cwd)
        self._by_workspace[key].discard(number)
        if not self._by_workspace[key]:
            del self._by_workspace[key]

    def _mark_changed(self, number: int) -> None:
        segment = number // _SEGMENT_DIRECTORIES
        if segment == len(self._segments):
            self._segments.append(None)
        self._segments[segment] = None

    def _segment(self, segment: int) -> bytes:
        haystack = self._segments[segment]
        if haystack is None:
            start = segment * _SEGMENT_DIRECTORIES
            haystack = build_haystack(map(folded, self._names[start : start + _SEGMENT_DIRECTORIES]))
            self._segments[segment] = haystack
        return haystack


def _matching_entries(haystack: bytes, needle: bytes, first: int) -> set[int]:
    """Numbers of the entries that hold the needle, counted from ``first``."""
    if haystack.count(needle) < _MANY_MATCHES:
        return {first + entry for entry in entries_with(haystack, needle)}
    # Where most entries hold it, as the home folder's name, looking at each is quicker than stepping from hit to hit.
    return {number for number, name in enumerate(haystack.split(ENTRY_END), first) if needle in name}
