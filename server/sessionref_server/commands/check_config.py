"""``sessionref check-config``: every key, its value, where the value came from, and what it means."""

from __future__ import annotations

import argparse

from rich.padding import Padding
from rich.text import Text

from sessionref_server.commands.configuration import Loaded, read_configuration
from sessionref_server.commands.output import cell, console, plain_table, print_table
from sessionref_server.commands.plain_text import visible
from sessionref_server.config import all_settings

_TABLE_COLUMNS = 160
_MODELS_MEANING = "Context window of this model in tokens, over the catalogue's own."


def check_config(arguments: argparse.Namespace) -> int:
    """Run the command. A bad value is raised as InvalidConfigError, which ends with exit code 2."""
    loaded = read_configuration(arguments)
    output = console()
    output.print(Text(f"file: {visible(str(loaded.file))}" if loaded.file else "file: none"))
    if output.width < _TABLE_COLUMNS:
        for key, value, origin, meaning in _rows(loaded):
            output.print(cell(f"{key} = {value}", "bold") + Text(f"  ({visible(origin)})", style="cyan"))
            output.print(Padding(cell(meaning, "dim"), (0, 0, 0, 4)))
    else:
        table = plain_table("key", "value", "from", "meaning")
        for key, value, origin, meaning in _rows(loaded):
            table.add_row(cell(key, "bold"), cell(value), cell(origin, "cyan"), cell(meaning))
        print_table(output, table)
    output.print(Text("The configuration is good.", style="green"))
    return 0


def _rows(loaded: Loaded) -> list[tuple[str, str, str, str]]:
    meanings = {setting.key: setting.meaning for setting in all_settings()}
    return [(each.key, _shown(each.value), each.origin, meanings.get(each.key, _MODELS_MEANING)) for each in loaded.assignments]


def _shown(value: object) -> str:
    """The value as it is written in the file; ``unset`` for none."""
    match value:
        case None:
            return "unset"
        case bool():
            return "true" if value else "false"
        case tuple():
            return ", ".join(str(part) for part in value) or "none"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return str(value)
