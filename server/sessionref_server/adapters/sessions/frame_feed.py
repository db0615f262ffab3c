"""The output of zstd frames on its way to a feeder: small frames are pushed together, and what a torn one gave is told apart."""

from __future__ import annotations

from sessionref_server.adapters.sessions.line_feed import LineFeeder

_TOGETHER_BYTES = 128 * 1024
"""Frames of a few hundred bytes are common, and a push has a price of its own."""
_COUNTED_FRAME_ENDS = 2


class FrameFeed:
    """Takes pieces and frame ends in order; lives as long as the feeder."""

    def __init__(self, feeder: LineFeeder) -> None:
        self._feeder = feeder
        self._whole: list[bytes] = []
        self._whole_bytes = 0
        self._current: list[bytes] = []
        self._current_bytes = 0
        self._fed_before_current: int | None = None
        self._ended_inside_line = False
        self.frame_ends: list[int] = []
        """Lines fed when each of the first two frames ended."""
        self.split = False
        """Whether a frame ended inside a line, and another followed."""
        self.recovered_lines = 0
        """Lines that came from a torn frame; exact only for a feeder that feeds every line."""

    def piece(self, output: bytes) -> None:
        """Take output of the current frame."""
        if not output:
            return
        if not self._current_bytes:
            self.split = self.split or self._ended_inside_line
        self._ended_inside_line = not output.endswith(b"\n")
        self._current.append(output)
        self._current_bytes += len(output)
        if self._current_bytes > _TOGETHER_BYTES:
            self._push_whole()
            self._push_current()

    def frame_ended(self) -> None:
        """The current frame is complete."""
        self._whole += self._current
        self._whole_bytes += self._current_bytes
        self._forget_current()
        counted = len(self.frame_ends) < _COUNTED_FRAME_ENDS
        if counted or self._whole_bytes > _TOGETHER_BYTES:
            self._push_whole()
        if counted:
            self.frame_ends.append(self._feeder.fed)

    def finish(self, *, torn: bool) -> None:
        """Push what is held; nothing more comes for now. A frame that is not over was torn, or damaged."""
        self._push_whole()
        self._push_current()
        before = self._fed_before_current
        self.recovered_lines = self._feeder.fed - before if torn and before is not None else 0
        self._forget_current()

    def _push_whole(self) -> None:
        if self._whole:
            self._feeder.push(b"".join(self._whole))
            self._whole.clear()
        self._whole_bytes = 0

    def _push_current(self) -> None:
        if self._fed_before_current is None:
            self._fed_before_current = self._feeder.fed
        for output in self._current:
            self._feeder.push(output)
        self._current.clear()

    def _forget_current(self) -> None:
        self._current.clear()
        self._current_bytes = 0
        self._fed_before_current = None
