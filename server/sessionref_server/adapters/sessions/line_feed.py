"""Chunks of a log cut into lines and fed to a fold, in bounded memory whatever the log holds.

Lines end at LF and nowhere else; one CR before it is dropped. Blank lines are skipped. A line over the cap is dropped while
it is read. A run of NUL bytes (what a file system leaves after a power cut) counts as one damaged line; whole records around
it are kept. A log of hardly anything but line ends is given up, since each of millions of lines would cost as much as a record.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sessionref_server.adapters.sessions.line_folds import BlockFold, LineFold, MarkedFold, SkipAware
from sessionref_server.adapters.sessions.marker_search import marker_finder

TAIL_BYTES = 64 * 1024
"""The last bytes of a log that a head fold is always fed."""

FLOOD_FROM_LINES = 100_000
FLOOD_LINE_BYTES = 16
"""A log of more lines than that, which on average are shorter than this, holds no records: the shortest one is longer."""

_STUB_BYTES = 64
_NUL_RUN = re.compile(rb"\0+")
_EMPTY_LINES = re.compile(rb"[\r\n]*")


class LineFloodError(Exception):
    """The log is millions of tiny lines; the message is one sentence of ours."""


def _take_none(_: bytes) -> None:
    return None


def _ignore_skip() -> None:
    return None


class LineFeeder:
    """Feeds every line. ``fed`` and ``skipped`` count over the feeder's whole life."""

    def __init__(self, fold: LineFold, line_limit_bytes: int) -> None:
        self._feed: Callable[[bytes], None] = fold.feed
        self._tell_skip: Callable[[], None] = fold.line_skipped if isinstance(fold, SkipAware) else _ignore_skip
        self._feed_block: Callable[[bytes], int | None] = fold.feed_block if isinstance(fold, BlockFold) else _take_none
        self._line_limit_bytes = line_limit_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._overlong = False
        self._stub = b""
        self._pushed_bytes = 0
        self.fed = 0
        self.skipped = 0

    @property
    def lines(self) -> int:
        """Lines so far that were not blank."""
        return self.fed + self.skipped

    def push(self, chunk: bytes) -> None:
        """Take the next bytes of the log. Raises LineFloodError when they are no records; nothing more may be pushed then."""
        self._pushed_bytes += len(chunk)
        self._push(chunk)
        self._refuse_flood()

    def _refuse_flood(self) -> None:
        if self.lines > FLOOD_FROM_LINES and self._pushed_bytes < FLOOD_LINE_BYTES * self.lines:
            self._forget()
            raise LineFloodError("the log holds far too many lines for its size")

    def _forget(self) -> None:
        self._parts.clear()
        self._held_bytes = 0

    def _push(self, chunk: bytes) -> None:
        if self._held_bytes:
            end = chunk.find(b"\n")
            if end < 0:
                self._hold(chunk)
                return
            self._hold(chunk[:end])
            self._release()
            chunk = chunk[end + 1 :]
        cut = chunk.rfind(b"\n")
        self._hold(chunk[cut + 1 :])
        if cut > 0:
            self._feed_lines(chunk[:cut])

    def _feed_lines(self, block: bytes) -> None:
        if block.isspace():
            return
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if b"\0" in block or len(block) > self._line_limit_bytes:
            for line in block.split(b"\n"):
                self._feed_carefully(line)
            return
        if (taken := self._feed_block(block)) is not None:
            self.fed += taken
            return
        feed = self._feed
        for line in filter(None, block.split(b"\n")):
            if not line.isspace():
                feed(line)
                self.fed += 1

    def finish(self) -> bytes:
        """The bytes after the last newline: ``b""`` when blank, a stub when over the cap. They stay held for the next push."""
        return self.tail()

    def tail(self) -> bytes:
        """The unfinished line, NUL padding dropped unless there is nothing else."""
        if self._overlong:
            return self._stub
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return trimmed_tail(self._parts[0]) if self._parts else b""

    def _hold(self, piece: bytes) -> None:
        # Blanks at the beginning of a line mean nothing, so megabytes of them are not kept.
        if not piece or (not self._held_bytes and piece.isspace()):
            return
        self._held_bytes += len(piece)
        if self._overlong:
            return
        if self._held_bytes > self._line_limit_bytes:
            self._stub = (self._parts[0] if self._parts else piece)[:_STUB_BYTES]
            self._parts.clear()
            self._overlong = True
            return
        self._parts.append(piece)

    def _release(self) -> None:
        line, overlong = b"".join(self._parts), self._overlong
        self._parts.clear()
        self._held_bytes = 0
        self._overlong = False
        if overlong:
            self._skip()
        else:
            self._feed_carefully(line)

    def _skip(self) -> None:
        self.skipped += 1
        self._tell_skip()

    def _feed_carefully(self, line: bytes) -> None:
        if len(line) > self._line_limit_bytes:
            self._skip()
            return
        line = line.removesuffix(b"\r")
        if b"\0" in line:
            self._feed_around_nul(line)
        elif line and not line.isspace():
            self._feed(line)
            self.fed += 1

    def _feed_around_nul(self, line: bytes) -> None:
        records = [part for part in _NUL_RUN.split(line) if part.lstrip()[:1] == b"{" and part.rstrip()[-1:] == b"}"]
        self.skipped += 1
        if not records:
            self._tell_skip()
        for record in records:
            self._feed(record)
            self.fed += 1


class HeadFeeder(LineFeeder):
    """Feeds every line until the fold is settled, then only lines with its marker, and at the end the last 64 KiB again in full.

    The middle is searched in whole chunks and never cut into lines, so it passes at memory speed.
    """

    def __init__(self, fold: MarkedFold, line_limit_bytes: int) -> None:
        super().__init__(fold, line_limit_bytes)
        self._fold = fold
        self._finder = marker_finder(fold.marker)
        self._buffer = bytearray()

    def _push(self, chunk: bytes) -> None:
        if self._overlong:
            end = chunk.find(b"\n")
            if end < 0:
                return
            self._overlong = False
            self._skip()
            chunk = chunk[end + 1 :]
        buffer = self._buffer
        if (not buffer or buffer.endswith(b"\n")) and chunk.isspace():
            return
        buffer += chunk
        if not self._fold.settled:
            self._feed_until_settled()
        if self._fold.settled:
            self._scan(buffer.rfind(b"\n", 0, max(0, len(buffer) - TAIL_BYTES)) + 1)
        if len(buffer) > self._line_limit_bytes and b"\n" not in buffer:
            self._stub = bytes(buffer[:_STUB_BYTES])
            self._overlong = True
            buffer.clear()

    def finish(self) -> bytes:
        """Feed what was held back and return the unfinished line, which stays held for the next push."""
        complete, start = self._buffer.rfind(b"\n") + 1, 0
        while start < complete:
            end = self._buffer.find(b"\n", start)
            self._feed_carefully(self._copy(start, end))
            start = end + 1
        del self._buffer[:complete]
        return self.tail()

    def tail(self) -> bytes:
        """The unfinished line."""
        if self._overlong:
            return self._stub
        return trimmed_tail(self._copy(self._buffer.rfind(b"\n") + 1, len(self._buffer)))

    def _forget(self) -> None:
        self._buffer.clear()

    def _copy(self, start: int, end: int) -> bytes:
        """One copy, where a slice of the buffer made into bytes would be two."""
        with memoryview(self._buffer) as view:
            return bytes(view[start:end])

    def _feed_until_settled(self) -> None:
        buffer, start = self._buffer, 0
        while not self._fold.settled:
            blank = _EMPTY_LINES.match(buffer, start)
            start = blank.end() if blank else start
            end = buffer.find(b"\n", start)
            if end < 0:
                break
            self._feed_carefully(self._copy(start, end))
            self._refuse_flood()
            start = end + 1
        del buffer[:start]

    def _scan(self, stop: int) -> None:
        """Feed the marked lines before ``stop``, which is just after a newline, and forget them all."""
        buffer, position = self._buffer, 0
        if buffer.find(b"\0", 0, stop) >= 0:
            self._scan_line_by_line(stop)
            position = stop
        self._finder.start(buffer, stop)
        while (hit := self._finder.find(position)) >= 0:
            start = max(position, buffer.rfind(b"\n", position, hit) + 1)
            end = buffer.find(b"\n", hit, stop)
            self._feed_carefully(self._copy(start, end))
            position = end + 1
        del buffer[:stop]

    def _scan_line_by_line(self, stop: int) -> None:
        for line in bytes(self._buffer[:stop]).split(b"\n"):
            if b"\0" in line or self._fold.marker.search(line):
                self._feed_carefully(line)


def trimmed_tail(tail: bytes) -> bytes:
    """A tail without blanks and NUL padding around it; a stub of the padding when there is nothing else but NULs."""
    stripped = tail.strip(b"\0 \t\r\n")
    return stripped or tail.strip()[:_STUB_BYTES]
