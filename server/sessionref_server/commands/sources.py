"""``sessionref sources``: the agents found, and how well their sessions can be read."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from sessionref_client import SourceStatus

from sessionref_server.commands.configuration import read_configuration
from sessionref_server.commands.connection import open_client
from sessionref_server.commands.output import (
    cell,
    console,
    counted,
    plain_table,
    print_table,
    short_folder,
    unreadable_sentence,
    write_json,
)
from sessionref_server.domain.ports import SourceCheck


def sources(arguments: argparse.Namespace) -> int:
    """Run the command."""
    return _local(arguments) if arguments.local else _of_server(arguments)


def _of_server(arguments: argparse.Namespace) -> int:
    with open_client(arguments) as client:
        info = client.service_info()
    if arguments.json:
        write_json(info)
        return 0
    output = console()
    print_table(output, source_table([_check_of(status) for status in info.sources]))
    output.print(Text(f"server {info.version}", style="dim"))
    return 0


def _local(arguments: argparse.Namespace) -> int:
    from sessionref_server.bootstrap import check_sources

    checks = asyncio.run(check_sources(read_configuration(arguments).config))
    if arguments.json:
        write_json({"sources": [_status_of(check) | {"places": list(check.places)} for check in checks]})
        return 0
    print_table(console(), source_table(checks))
    return 0


def source_table(checks: Sequence[SourceCheck]) -> Table:
    """One row per source: how many sessions it offers, what is wrong, and, where known, its folders."""
    table = plain_table("source", "sessions", "state", *(["folders"] if any(check.places for check in checks) else []))
    for check in checks:
        state, style = _state(check)
        row = [cell(check.name), Text(f"{check.listed:,}", justify="right"), cell(state, style)]
        table.add_row(*row, *([cell(", ".join(short_folder(place) for place in check.places))] if check.places else []))
    return table


def _state(check: SourceCheck) -> tuple[str, str]:
    if check.failure:
        return check.failure, "red"
    parts = [] if check.ready else ["still being read"]
    if check.unreadable:
        parts.append(unreadable_sentence(check.unreadable, check.damaged, check.too_new))
    if check.empty:
        parts.append(f"{counted(check.empty, 'empty session')} left out")
    if not parts:
        return ("ready", "green") if check.listed else ("ready, nothing found", "dim")
    return "; ".join(parts), "yellow" if check.unreadable or not check.ready else ""


def _check_of(status: SourceStatus) -> SourceCheck:
    return SourceCheck(
        name=status.source,
        ready=status.ready,
        listed=status.listed_sessions,
        unreadable=status.unreadable_sessions,
        damaged=status.damaged_sessions,
        too_new=status.too_new_sessions,
        empty=status.empty_sessions,
        failure=status.failure,
    )


def _status_of(check: SourceCheck) -> dict[str, object]:
    return {
        "source": check.name,
        "ready": check.ready,
        "listed_sessions": check.listed,
        "unreadable_sessions": check.unreadable,
        "damaged_sessions": check.damaged,
        "too_new_sessions": check.too_new,
        "empty_sessions": check.empty,
        "failure": check.failure,
    }
