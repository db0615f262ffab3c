"""``sessionref search``: the sessions a person can refer to, best first."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from sessionref_client import Domain, SearchBatch, SessionCandidate, SyncClient

from sessionref_server.commands.connection import open_client, target_of
from sessionref_server.commands.output import (
    cell,
    console,
    from_the_end,
    how_long_ago,
    plain_table,
    print_table,
    short_folder,
    status_notes,
    write_json,
)
from sessionref_server.commands.plain_text import visible

_SUBAGENTS = {None: None, "include": True, "exclude": False}
_HERE = "*"
_GAP = 2
_LEAST_TITLE = 28
_LEAST_FOLDER = 16


def search(arguments: argparse.Namespace) -> int:
    """Run the command."""
    with open_client(arguments) as client:
        batch = _last_batch(client, arguments)
    if batch.error is not None:
        raise batch.error
    if arguments.json:
        write_json(
            {
                "query": arguments.query,
                "candidates": batch.sessions,
                "partial": batch.partial,
                "truncated": batch.truncated,
                "sources": batch.source_statuses,
            }
        )
        return 0
    _show(batch, arguments.query)
    return 0


def _last_batch(client: SyncClient, arguments: argparse.Namespace) -> SearchBatch:
    last = _NOTHING
    with client.search(
        arguments.query,
        target=target_of(arguments),
        limit=arguments.limit,
        sources=arguments.source,
        subagents=_SUBAGENTS[arguments.subagents],
        domains=(Domain.SESSIONS,),
    ) as batches:
        for batch in batches:
            last = batch
    return last


_NOTHING = SearchBatch(
    domain=Domain.SESSIONS, sessions=(), files=(), partial=True, truncated=False, source_statuses=(), error=None
)
"""What a search without any batch has found."""


def _show(batch: SearchBatch, query: str) -> None:
    output = console()
    if batch.sessions:
        _list(output, batch.sessions)
    else:
        output.print(Text(f"no session matches {visible(query)!r}" if query else "no session was found"))
    if batch.sessions and output.is_terminal:
        hint = "next: sessionref prepare --target NEW --ref ID"
        output.print(Text(f"{_HERE} same folder as here   {hint}", style="dim"))
    sys.stdout.flush()
    notes = console(error=True)
    for note in status_notes(batch.source_statuses):
        notes.print(Text(note, style="yellow"))


def _list(output: Console, candidates: tuple[SessionCandidate, ...]) -> None:
    now_ms = time.time_ns() // 1_000_000
    rows = [_Row.of(candidate, now_ms) for candidate in candidates]
    widths = _widths(rows, output.width)
    if widths is None:
        for row in rows:
            _print_stacked(output, row)
        return
    table = plain_table("", *_HEADERS)
    for column, width in zip(table.columns, (len(_HERE), *widths), strict=True):
        column.width, column.no_wrap, column.overflow = width, True, "ellipsis"
    for row in rows:
        folder = cell(from_the_end(row.folder, widths[_FOLDER]))
        table.add_row(row.mark, row.title, cell(row.source), cell(row.started), folder, cell(row.session_id, "cyan"))
    print_table(output, table)


_HEADERS = ("title", "source", "started", "folder", "id")
_TITLE, _FOLDER = _HEADERS.index("title"), _HEADERS.index("folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A candidate as it is shown. The texts are clean."""

    mark: Text
    title: Text
    source: str
    started: str
    folder: str
    session_id: str

    @classmethod
    def of(cls, candidate: SessionCandidate, now_ms: int) -> _Row:
        return cls(
            mark=Text(_HERE if candidate.same_workspace else " ", style="green"),
            title=cell(candidate.display_title, "bold" if candidate.same_workspace else ""),
            source=visible(candidate.source),
            started=how_long_ago(candidate.created_at_ms, now_ms),
            folder=visible(short_folder(candidate.cwd)),
            session_id=visible(candidate.session_id),
        )

    def widths(self) -> tuple[int, ...]:
        """Columns that each cell needs, in the order of the headers."""
        texts = (self.source, self.started, self.folder, self.session_id)
        return (self.title.cell_len, *(cell_len(text) for text in texts))


def _widths(rows: list[_Row], available: int) -> list[int] | None:
    """Width of each column; ``None`` when a table would be too narrow to read. Only titles and folders are ever cut."""
    headers = tuple(len(header) for header in _HEADERS)
    widths = [max(column) for column in zip(headers, *(row.widths() for row in rows), strict=True)]
    gaps = len(_HERE) + _GAP * len(widths)
    room = available - gaps - sum(width for index, width in enumerate(widths) if index not in {_TITLE, _FOLDER})
    if room < _LEAST_TITLE + _LEAST_FOLDER:
        return None
    widths[_FOLDER] = min(widths[_FOLDER], max(_LEAST_FOLDER, room - widths[_TITLE]))
    widths[_TITLE] = min(widths[_TITLE], room - widths[_FOLDER])
    return widths


def _print_stacked(output: Console, row: _Row) -> None:
    """Three lines, for a narrow terminal. The id is never cut: it is what the next command needs."""
    output.print(Text.assemble(row.mark, " ", row.title), no_wrap=True, overflow="ellipsis")
    output.print(Text(f"  {row.source}  {row.started}  {row.folder}"), no_wrap=True, overflow="ellipsis")
    output.print(Text("  " + row.session_id, style="cyan"), no_wrap=True, overflow="ignore", crop=False)
