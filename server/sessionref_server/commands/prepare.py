"""``sessionref prepare``: what a model gets to see of the sessions a message refers to."""

from __future__ import annotations

import argparse
import shlex
import sys

from rich.text import Text
from sessionref_client import (
    CapturedReference,
    ContextMessage,
    ModelRoute,
    Prepared,
    ReadingFacts,
    SavedSnapshot,
    SessionReference,
    TextBlock,
)

from sessionref_server.commands.connection import open_client, target_of
from sessionref_server.commands.failure import UsageError
from sessionref_server.commands.output import cell, console, counted, plain_table, print_table, write_json, write_text
from sessionref_server.commands.plain_text import visible


def prepare(arguments: argparse.Namespace) -> int:
    """Run the command."""
    text = _message(arguments)
    with open_client(arguments) as client:
        prepared = client.prepare(
            () if text is None else text,
            target=target_of(arguments, _route(arguments)),
            references=[SessionReference(session_id=session_id, label=label) for session_id, label in arguments.references],
            parse_mentions=True,
        )
    if arguments.json:
        write_json(prepared)
        return 0
    context = prepared.additional_context
    if context is None:
        console(error=True).print(Text("nothing is referred to: there is no context; name a session with --ref or a mention"))
    elif arguments.context_only:
        write_text(context.text)
    else:
        _show(prepared, context, arguments.target)
    return 0


def _message(arguments: argparse.Namespace) -> str | None:
    if arguments.text != "-":
        if arguments.text is None and not arguments.references:
            raise UsageError("give a TEXT with mentions, or --ref ID")
        return arguments.text
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise UsageError("standard input is not UTF-8 text") from error


def _route(arguments: argparse.Namespace) -> ModelRoute | None:
    if arguments.provider is None and arguments.model is None and arguments.context_window is None:
        return None
    return ModelRoute(provider=arguments.provider, model=arguments.model, context_window_tokens=arguments.context_window)


def _show(prepared: Prepared, context: ContextMessage, target_id: str) -> None:
    output = console()
    table = plain_table("session", "messages kept", "left out", "id")
    for reference in context.source.references:
        table.add_row(
            cell(reference.label),
            Text(f"{reference.retained_messages} of {reference.original_messages}"),
            Text(_left_out(reference), style="yellow" if reference.truncated else ""),
            cell(reference.session_id, "cyan"),
        )
    print_table(output, table)
    for reference in context.source.references:
        for note in _reading_notes(reference):
            output.print(Text(visible(f"{reference.label}: {note}"), style="yellow"))
    for line in _saved_lines(context, target_id):
        output.print(line, no_wrap=True, overflow="ignore", crop=False)
    output.print(Text("\ncontext for the model, before the message (untrusted):", style="bold"))
    write_text(context.text)
    texts = [block.text for block in prepared.content if isinstance(block, TextBlock) and block.text]
    if texts:
        output.print(Text("\nmessage:", style="bold"))
        write_text("\n".join(texts))


def _left_out(reference: CapturedReference) -> str:
    if not reference.truncated:
        return "compacted earlier, nothing left out" if reference.compacted else "nothing"
    return f"{counted(reference.omitted_messages, 'message')}, {counted(reference.omitted_bytes, 'byte')}"


def _reading_notes(reference: CapturedReference) -> list[str]:
    return [*_counts(reference.reading), *reference.reading.notes]


def _counts(reading: ReadingFacts) -> list[str]:
    facts = (
        (reading.damaged_records, f"{counted(reading.damaged_records, 'damaged record')} skipped"),
        (reading.unknown_records, f"{counted(reading.unknown_records, 'record')} of an unknown kind skipped"),
        (reading.redactions, f"{counted(reading.redactions, 'key-shaped string')} replaced"),
        (reading.torn_tail, "the log ends inside a record; it may still be written"),
    )
    return [sentence for fact, sentence in facts if fact]


def _saved_lines(context: ContextMessage, target_id: str) -> list[Text]:
    """How to read what was cut, one command each, ready to paste."""
    labels = {reference.session_id: reference.label for reference in context.source.references}
    lines: list[Text] = []
    for omission in context.omissions:
        label = labels.get(omission.session_id, omission.session_id)
        saved = omission.full_snapshot
        if isinstance(saved, SavedSnapshot):
            command = f"sessionref read {shlex.quote(saved.locator)} --owner {shlex.quote(target_id)}"
            lines.append(cell(f"full text of {label} ({counted(saved.size_bytes, 'byte')}): {command}"))
        else:
            lines.append(cell(f"full text of {label} was not saved: {saved}", "yellow"))
    return lines
