"""A log read by the rules its writer keeps: dense sequence numbers, known events, a surface that holds together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from sessionref_server.adapters.sessions.formats.dsh.header import Header, HeaderReading, read_header, whole_number
from sessionref_server.adapters.sessions.formats.dsh.labels import Labels
from sessionref_server.adapters.sessions.formats.dsh.projection import SHOWS_NOTHING, shown_by_assistant, shown_by_user
from sessionref_server.adapters.sessions.formats.dsh.rows import SourceSeqs, event_form_ok, packed_length, parse_sources
from sessionref_server.adapters.sessions.formats.dsh.strict_reading import StrictReading
from sessionref_server.adapters.sessions.formats.dsh.strict_surface import StrictSurface
from sessionref_server.adapters.sessions.formats.dsh.surface import InvalidSurfaceError
from sessionref_server.adapters.sessions.formats.dsh.turns import OpenTurn
from sessionref_server.adapters.sessions.formats.dsh.usual_rows import UsualRows, parsed_together
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import (
    ASSISTANT_MESSAGE,
    PACKED_MEMBERS,
    STEERING_MESSAGE,
    TOOL_RESULT,
    TURN_END,
    USER_MESSAGE,
    LogFault,
)
from sessionref_server.adapters.sessions.json_line import parse_json_line
from sessionref_server.adapters.sessions.log_format import LogEnd

FRAME_ENDS_INSIDE_ROW = "a compressed frame ends inside a row"

_LAST_PACKING_VERSION = 1
_LAST_STRICT_UNKNOWN_VERSION = 2


def _ignore(_: bytes) -> None:
    return None


class StrictFold:
    """Takes rows in file order; ``reading`` may be asked for at any time."""

    def __init__(self, *, file_version: int, compressed: bool, tell_refused: Callable[[bytes], None] = _ignore) -> None:
        """``tell_refused`` is called with each row from the first refused one on."""
        self._tell_refused = tell_refused
        self._file_version = file_version
        self._compressed = compressed
        self._header: HeaderReading | None = None
        self._version = file_version
        self._next_seq = 0
        self._gap = False
        self._problem = ""
        self._dropped = 0
        self._committed = False
        self._unsupported = ""
        self._invalid = ""
        self._unknown = 0
        self._turn = OpenTurn()
        self._surface = StrictSurface(file_version)
        self._rows = 0
        self.header_line = b""
        self._packed_rows: list[tuple[int, int]] = []
        self.labels = Labels()
        self._usual = UsualRows(file_version, self._surface.nodes, self._turn, self.labels)

    @property
    def header(self) -> Header | None:
        """What the header tells, once it was fed."""
        return self._header.header if self._header else None

    @property
    def _settled(self) -> bool:
        """Whether no further row can change anything."""
        return self._committed or (self._header is not None and self._header.fault is LogFault.UNSUPPORTED)

    @property
    def accepted(self) -> int:
        """Events accepted so far."""
        return self._next_seq

    @property
    def committed(self) -> bool:
        """Whether a turn ended after the refused row, which makes the refusal final."""
        return self._committed

    def line_skipped(self) -> None:
        """A row was too long to read, or of NUL bytes: its numbers are missing, and what it put on the surface."""
        self._gap = True
        self._surface.tolerant = True

    def feed(self, line: bytes) -> None:
        """Take one row."""
        if self._header is None:
            self.header_line = line
            self._header = read_header(line, self._file_version)
            self._problem = self._header.detail
            return
        self._rows += 1
        if self._settled:
            self._dropped += 1
            return
        row = parse_json_line(line)
        if self._problem:
            self._look_for_commit(row)
        elif row is not None:
            self._take_slowly(row)
        else:
            self._refuse("a row is no JSON object", None)
        if self._problem:
            self._tell_refused(line)

    def feed_block(self, block: bytes) -> int | None:
        """Take all lines of a block at once and return how many there were; ``None`` when they must come one by one."""
        if self._header is None:
            return self._feed_first_block(block)
        if self._problem or self._gap:
            return None
        rows = parsed_together(block)
        if rows is None:
            return None
        types = self._usual.types_of(rows, self._next_seq)
        if types is None:
            self._take_each(rows, block)
        else:
            self._next_seq += len(rows)
            self._rows += len(rows)
            self._usual.act(types, rows)
        return len(rows)

    def _feed_first_block(self, block: bytes) -> int | None:
        first, _, others = block.partition(b"\n")
        if not first.startswith(b"{"):
            return None
        self.feed(first)
        taken = self.feed_block(others) if others else 0
        if taken is not None:
            return 1 + taken
        lines = [line for line in others.split(b"\n") if line and not line.isspace()]
        for line in lines:
            self.feed(line)
        return 1 + len(lines)

    def _take_each(self, rows: list[dict[str, Any]], block: bytes) -> None:
        lines = block.split(b"\n")
        for index, row in enumerate(rows):
            if not self._problem and type(row) is dict and self._usual.is_plain(row, self._next_seq):
                self._next_seq += 1
                self._rows += 1
                self._usual.note(row["type"], row)
            else:
                self.feed(lines[index])

    def _take_slowly(self, row: dict[str, Any]) -> None:
        kind = row.get("type")
        packed = type(kind) is str and kind in PACKED_MEMBERS and self._version <= _LAST_PACKING_VERSION
        length = packed_length(row) if packed else int(event_form_ok(row))
        if not length:
            self._refuse("a row is malformed", row)
            return
        seq = whole_number(row["seq0" if packed else "seq"])
        if seq is None or not (seq == self._next_seq or (self._gap and seq > self._next_seq)):
            self._refuse("a row has an unexpected number", row)
            return
        sources = parse_sources(row["sourceEventSeqs"], seq) if "sourceEventSeqs" in row else None
        if sources is None and "sourceEventSeqs" in row:
            self._refuse("a row names its sources in a malformed way", row)
            return
        self._gap = False
        self._next_seq = seq + length
        if packed:
            self._packed_rows.append((self._rows, length - 1))
        else:
            self._accept(cast("str", kind), {**row, "seq": seq}, sources)

    def _accept(self, kind: str, row: dict[str, Any], sources: SourceSeqs | None) -> None:
        touches_surface = "surfaceOp" in row or sources is not None
        if self._usual.is_on_surface(kind):
            self._place(kind, row, sources)
        elif self._usual.is_known(kind):
            if touches_surface:
                self._invalid = self._invalid or "a row that is not on the surface changes it"
            self._usual.note(kind, row)
        elif "ignorable" in row:
            self._unknown += 1
            if touches_surface and self._version <= _LAST_STRICT_UNKNOWN_VERSION:
                self._invalid = self._invalid or "a row that is not on the surface changes it"
        else:
            self._unknown += 1
            self._unsupported = self._unsupported or f"{self._version}, with events of a kind that must be understood"

    def _place(self, kind: str, row: dict[str, Any], sources: SourceSeqs | None) -> None:
        if self._invalid:
            return  # nothing of the surface will be shown
        shown = SHOWS_NOTHING
        if kind == ASSISTANT_MESSAGE:
            shown = shown_by_assistant(row)
        elif kind in {USER_MESSAGE, STEERING_MESSAGE}:
            shown = shown_by_user(row)
        try:
            self._surface.place(row, shown, sources)
        except InvalidSurfaceError as error:
            self._invalid = self._invalid or str(error)
            return
        self._turn.advertise(shown[1])
        if kind == TOOL_RESULT:
            self._turn.resolve(row)

    def _refuse(self, problem: str, row: dict[str, Any] | None) -> None:
        self._problem = problem
        self._look_for_commit(row)

    def _look_for_commit(self, row: object) -> None:
        self._dropped += 1
        if isinstance(row, dict) and cast("dict[str, Any]", row).get("type") == TURN_END:
            self._committed = True

    def reading(self, end: LogEnd) -> StrictReading:
        """The log as of now."""
        fault, detail = self._fault(end)
        closers = self._turn.owed_events
        through = self._next_seq + closers - 1
        return StrictReading(
            fault=fault,
            detail=detail,
            header=self.header,
            begun=self._header is not None or bool(end.damage or end.skipped_lines),
            events=self._next_seq,
            closers=closers,
            through_seq=through if through >= 0 else None,
            nodes=self._surface.nodes,
            owed_result_seqs=tuple(range(self._next_seq, self._next_seq + self._turn.owed_results)),
            labels=self.labels,
            torn_tail=bool(end.tail) or end.torn_frame,
            recovered_events=self._recovered_events(end),
            damaged_records=self._dropped + end.skipped_lines,
            unknown_records=self._unknown,
        )

    def _fault(self, end: LogEnd) -> tuple[LogFault | None, str]:
        header = self._header
        container = end.damage or (
            FRAME_ENDS_INSIDE_ROW if self._compressed and (end.split_frame or (end.tail and not end.torn_frame)) else ""
        )
        checks: list[tuple[LogFault | None, str]] = [
            (header.fault if header else None, header.detail if header else ""),
            (LogFault.CORRUPT, container),
            (LogFault.CORRUPT, "" if header else "the log has no header"),
            (LogFault.CORRUPT, f"{self._problem}, and a turn ended after it" if self._committed else ""),
            (LogFault.UNSUPPORTED, self._unsupported),
            (LogFault.INVALID_SURFACE, self._invalid),
        ]
        return next(((fault, detail) for fault, detail in checks if detail), (None, ""))

    def _recovered_events(self, end: LogEnd) -> int:
        """Events in the rows that came from a torn frame; the header may be among those rows."""
        rows = min(end.recovered_lines, self._rows)
        accepted_rows = max(0, rows - self._dropped)
        first = self._rows - rows
        return accepted_rows + sum(extra for row, extra in self._packed_rows if row > first)
