"""What a feeder of lines asks of the fold it feeds; the rest is asked of it by ``log_format``."""

from __future__ import annotations

import re
from typing import Protocol, runtime_checkable


class LineFold(Protocol):
    """What both kinds of fold have."""

    def feed(self, line: bytes) -> None:
        """Take one complete line."""
        ...


class MarkedFold(LineFold, Protocol):
    """A head fold, as far as feeding goes."""

    @property
    def settled(self) -> bool:
        """Whether only marked lines matter from now on."""
        ...

    @property
    def marker(self) -> re.Pattern[bytes]:
        """An alternation of fixed literals."""
        ...


@runtime_checkable
class SkipAware(Protocol):
    """A fold that wants to know where a line was dropped, e.g. because its rows are numbered."""

    def line_skipped(self) -> None:
        """A line over the size cap, or of NUL bytes, stood here."""
        ...


@runtime_checkable
class BlockFold(Protocol):
    """A fold that gains from taking many lines at once."""

    def feed_block(self, block: bytes) -> int | None:
        """Take complete lines with LF between them and return how many there were; ``None`` when nothing was taken and they must
        come one by one. Blank lines and NUL bytes are no concern: such a block may be turned down.
        """
        ...
