"""How answers look: tables and notes for a person, one JSON document for a program."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Final, cast

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sessionref_client import SavedSnapshot, SnapshotUnavailable, SourceStatus, TextBlock

from sessionref_server.commands.plain_text import visible, visible_json

_UNLIMITED_WIDTH: Final = 10_000
"""Of a pipe or a file: nothing is cut or wrapped there."""

_WIRE_FIELD: Final = "wire"
"""What a block keeps for the wire only; the command line sends nothing but text."""

_UNITS: Final = (("week", "weeks", 7 * 86_400), ("day", "days", 86_400), ("h", "h", 3_600), ("min", "min", 60))


def console(*, error: bool = False) -> Console:
    """A console on standard output or error. Colours only on a terminal and without NO_COLOR; texts are never markup."""
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _UNLIMITED_WIDTH
    return Console(stderr=error, markup=False, emoji=False, highlight=False, soft_wrap=False, width=width)


def plain_table(*headers: str) -> Table:
    """A table without lines."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header)
    return table


def print_table(output: Console, table: Table) -> None:
    """Print it; without the blanks that fill the last column where nobody sees a column."""
    if output.is_terminal:
        output.print(table)
        return
    with output.capture() as capture:
        output.print(table)
    for line in capture.get().splitlines():
        output.out(line.rstrip(), highlight=False)


def cell(text: str, style: str = "") -> Text:
    """Somebody's text in a table."""
    return Text(visible(text), style=style)


def write_text(text: str) -> None:
    """A long text of others: control characters as visible escapes on a terminal, as it is in a pipe or file."""
    if text and not text.endswith("\n"):
        text += "\n"
    write_bytes(text.encode("utf-8", "backslashreplace"))


def write_bytes(data: bytes) -> None:
    """The same for UTF-8 bytes that end at a character."""
    if sys.stdout.isatty():
        sys.stdout.write(visible(data.decode("utf-8", "replace"), keep_lines=True))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_json(value: object) -> None:
    """One JSON document, in UTF-8 whatever the terminal's encoding."""
    document = json.dumps(json_form(value), ensure_ascii=False, indent=2)
    write_bytes(visible_json(document).encode() + b"\n")


def json_form(value: object) -> object:
    """A value of the client as JSON: field names are those of the contract, a choice says which one it is."""
    if isinstance(value, SnapshotUnavailable):
        return {"status": "unavailable", "reason": str(value)}
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): json_form(each) for key, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, Sequence):
        return [json_form(each) for each in cast("Sequence[object]", value)]
    return _fields(value)


def _fields(value: object) -> dict[str, object]:
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} has no JSON form")
    plain = {each.name: json_form(getattr(value, each.name)) for each in fields(value) if each.name != _WIRE_FIELD}
    if isinstance(value, SavedSnapshot):
        return {"status": "saved", **plain}
    if isinstance(value, TextBlock):
        return {"type": "text", **plain}
    return plain


def how_long_ago(then_ms: int, now_ms: int) -> str:
    """A time as a person says it; a dash for an unknown one (0)."""
    if then_ms <= 0:
        return "-"
    seconds = (now_ms - then_ms) // 1000
    if seconds < 0:
        return "in the future"
    for one, many, size in _UNITS:
        count = seconds // size
        if count:
            return f"{count} {one if count == 1 else many} ago"
    return "just now"


def counted(count: int, noun: str) -> str:
    """``1 session``, ``2 sessions``, ``1,000 sessions``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def short_folder(folder: str | None) -> str:
    """A folder with the home folder as ``~``; a dash when none is recorded."""
    if folder is None:
        return "-"
    home = os.environ.get("HOME", "").rstrip("/")
    if home and (folder == home or folder.startswith(home + "/")):
        return "~" + folder.removeprefix(home)
    return folder


def from_the_end(text: str, columns: int) -> str:
    """The end of a path that does not fit: the last folders tell more than the first."""
    if cell_len(text) <= columns:
        return text
    start = max(0, len(text) - columns)
    while start < len(text) and cell_len(text[start:]) >= columns:
        start += 1
    return "…" + text[start:]


def status_notes(statuses: Iterable[SourceStatus]) -> list[str]:
    """What is missing from a listing, one sentence per source that is not whole."""
    reasons = ((each.source, _missing(each)) for each in statuses)
    return [visible(f"{source}: {'; '.join(missing)}") for source, missing in reasons if missing]


def _missing(status: SourceStatus) -> list[str]:
    if status.failure:
        return [status.failure]
    still = [] if status.ready else ["still being read, more may come"]
    unread = unreadable_sentence(status.unreadable_sessions, status.damaged_sessions, status.too_new_sessions)
    return [*still, unread] if unread else still


def unreadable_sentence(unreadable: int, damaged: int, too_new: int) -> str:
    """How many logs could not be read and why; empty for none. ``unreadable`` includes the other two."""
    if not unreadable:
        return ""
    reasons = {"damaged": damaged, "of a newer version": too_new, "no session": unreadable - damaged - too_new}
    why = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count > 0)
    return f"{counted(unreadable, 'log')} could not be read ({why})"
