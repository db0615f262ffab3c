"""The surface fold: strict for the agent's own file names, lenient for others and for logs no turn of which ever ended."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

from sessionref_server.adapters.sessions.formats.dsh.header import Header
from sessionref_server.adapters.sessions.formats.dsh.loose import LooseFold
from sessionref_server.adapters.sessions.formats.dsh.names import native_id_of, parse_log_name
from sessionref_server.adapters.sessions.formats.dsh.projection import images_note
from sessionref_server.adapters.sessions.formats.dsh.strict import StrictFold
from sessionref_server.adapters.sessions.formats.dsh.strict_reading import StrictReading
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import LogFault
from sessionref_server.adapters.sessions.log_format import LogEnd, Surface
from sessionref_server.domain.message import Message
from sessionref_server.domain.session import ReadingFacts, SessionStatus

_LENIENT_NOTE = "read leniently: its rows are not numbered as the format requires"

_VERSION_NOTE = "format version "
NO_MESSAGE = "the session has no visible message"


class CanonicalSurfaceFold:
    """A log under a canonical name."""

    def __init__(self, path: str, *, file_version: int, compressed: bool) -> None:
        self._path = path
        self._strict = StrictFold(file_version=file_version, compressed=compressed, tell_refused=self._row_refused)
        self._lenient: LooseFold | None = None
        # Bound here, since a further call for each row is felt.
        self.feed = self._strict.feed
        self.feed_block = self._strict.feed_block
        self.line_skipped = self._strict.line_skipped

    @property
    def header(self) -> Header | None:
        """What the header tells, once it was fed."""
        return self._strict.header

    def _row_refused(self, line: bytes) -> None:
        """Nothing was accepted before: as long as no turn ends, the rows may be another tool's."""
        if self._strict.accepted or self._strict.committed:
            return
        if self._lenient is None:
            self._lenient = LooseFold()
            self._lenient.feed(self._strict.header_line)
        self._lenient.feed(line)

    def surface(self, end: LogEnd) -> Surface:
        """The surface as of now."""
        lenient = self._lenient
        if lenient is not None and not self._strict.committed and lenient.header and not lenient.too_new and not end.damage:
            return loose_surface(lenient, end, self._path, (_LENIENT_NOTE,))
        return strict_surface(self._strict.reading(end), self._path)


class LooseSurfaceFold:
    """A log under any other name."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fold = LooseFold()
        self.feed = self._fold.feed

    def surface(self, end: LogEnd) -> Surface:
        """The surface as of now."""
        return loose_surface(self._fold, end, self._path, ())


def surface_fold_of(path: str) -> CanonicalSurfaceFold | LooseSurfaceFold:
    """A fresh fold for a log, by its name."""
    name = parse_log_name(PurePath(path).name)
    if name is None:
        return LooseSurfaceFold(path)
    return CanonicalSurfaceFold(path, file_version=name.version, compressed=name.compressed)


def strict_surface(reading: StrictReading, path: str) -> Surface:
    """A strict reading in the words of every source."""
    header, fault = reading.header, reading.fault
    if fault is not None:
        status = _status_of_fault(fault, reading)
        facts = ReadingFacts(
            status=status,
            damaged_records=reading.damaged_records,
            unknown_records=reading.unknown_records,
            torn_tail=reading.torn_tail,
            notes=(f"{_VERSION_NOTE}{reading.detail}" if status is SessionStatus.TOO_NEW else reading.detail,),
        )
        return _surface(header, path, [], None, facts)
    messages = reading.nodes.messages()
    damaged = reading.damaged_records
    facts = ReadingFacts(
        status=status_of(messages, damaged=damaged, torn=reading.torn_tail),
        damaged_records=damaged,
        unknown_records=reading.unknown_records,
        torn_tail=reading.torn_tail,
        notes=_notes(reading.nodes.images(), () if messages else (NO_MESSAGE,)),
    )
    return _surface(header, path, messages, reading.through_seq, facts)


def loose_surface(fold: LooseFold, end: LogEnd, path: str, notes: tuple[str, ...]) -> Surface:
    """A lenient reading in the words of every source."""
    whole_tail = not end.torn_frame and fold.takes(end.tail)
    if whole_tail:
        fold = fold.copy()
        fold.feed(end.tail)
    torn = end.torn_frame or (bool(end.tail) and not whole_tail)
    damaged = fold.damaged + end.skipped_lines
    messages = fold.nodes.messages()
    status, reason = _loose_status(fold, end, messages, damaged=damaged, torn=torn)
    facts = ReadingFacts(
        status=status,
        damaged_records=damaged,
        unknown_records=fold.unknown,
        torn_tail=torn,
        notes=(reason,) if reason else _notes(fold.nodes.images(), notes),
    )
    return _surface(fold.header, path, [] if reason else messages, fold.through_seq, facts)


def status_of(messages: list[Message], *, damaged: int, torn: bool) -> SessionStatus:
    """State of a log that can be read: nothing visible is empty only when nothing was lost."""
    if not messages:
        return SessionStatus.DAMAGED if damaged else SessionStatus.EMPTY
    return SessionStatus.PARTIAL if damaged or torn else SessionStatus.OK


def status_detail(facts: ReadingFacts) -> str:
    """Why a log cannot be used, for a head: the version of one that is too new, else a sentence."""
    if facts.status in {SessionStatus.OK, SessionStatus.PARTIAL} or not facts.notes:
        return ""
    return facts.notes[0].removeprefix(_VERSION_NOTE)


def _loose_status(
    fold: LooseFold, end: LogEnd, messages: list[Message], *, damaged: int, torn: bool
) -> tuple[SessionStatus, str]:
    if fold.header is None:
        nothing = not fold.rows and not end.damage and not end.skipped_lines
        return (SessionStatus.EMPTY, "the log is empty") if nothing else (SessionStatus.NOT_A_SESSION, "the log has no header")
    if fold.too_new:
        return SessionStatus.TOO_NEW, f"{_VERSION_NOTE}{fold.header.version}"
    if end.damage:
        return SessionStatus.DAMAGED, end.damage
    return status_of(messages, damaged=damaged, torn=torn), "" if messages else NO_MESSAGE


def _status_of_fault(fault: LogFault, reading: StrictReading) -> SessionStatus:
    if fault is LogFault.UNSUPPORTED:
        return SessionStatus.TOO_NEW
    # Without even a header row nothing was written yet: a session that is just being made.
    return SessionStatus.DAMAGED if reading.begun else SessionStatus.EMPTY


def _notes(images: Counter[str], notes: tuple[str, ...]) -> tuple[str, ...]:
    return (*notes, images_note(images)) if images else notes


def _surface(header: Header | None, path: str, messages: list[Message], through_seq: int | None, facts: ReadingFacts) -> Surface:
    return Surface(
        native_id=(header.native_id if header else None) or native_id_of(path),
        messages=messages,
        cwd=header.cwd if header else None,
        format_version=header.version if header else 0,
        through_seq=through_seq,
        reading=facts,
    )
