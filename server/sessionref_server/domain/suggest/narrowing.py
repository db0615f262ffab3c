"""Remembers complete answers while people type: what a longer query finds is among what the shorter one found."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_KEPT_ANSWERS: Final = 256
_LONGEST_ANSWER: Final = 256
"""Looking at each session of a longer answer is not quicker than looking at all texts at once."""


class Narrowing(Generic[T]):
    """The last complete answer of each searcher, as long as no session changes."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, tuple[bytes, Sequence[T]]] = OrderedDict()

    def among(self, searcher: Hashable, needle: bytes) -> Sequence[T] | None:
        """Everything that holds a part of ``needle``, so that all that hold it are among them; ``None`` when that is not known.

        Args:
            searcher: all that decides an answer but the text.
            needle: the text, folded.
        """
        kept = self._answers.get(searcher)
        return kept[1] if kept is not None and kept[0] in needle else None

    def keep(self, searcher: Hashable, needle: bytes, complete_answer: Sequence[T]) -> None:
        """Keep all that hold ``needle`` in the place of the searcher's last answer."""
        if len(complete_answer) > _LONGEST_ANSWER:
            return
        self._answers[searcher] = (needle, complete_answer)
        self._answers.move_to_end(searcher)
        if len(self._answers) > _KEPT_ANSWERS:
            self._answers.popitem(last=False)

    def clear(self) -> None:
        """A session came, went or changed."""
        self._answers.clear()
