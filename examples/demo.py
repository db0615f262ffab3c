"""A tour in a few seconds: a real server over sample sessions of three agents, a typed-out search, and a prepared context.

Run it with ``make demo``, or ``python examples/demo.py``. Everything is in a temporary folder but the server's cache, which is
kept in ``.demo``: it holds the compiled rules that find secrets, and compiling them takes longer than all the rest.
"""
# ruff: noqa: INP001 - a script, in no package

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text
from sessionref_client import (
    ContextMessage,
    Prepared,
    SavedSnapshot,
    SessionCandidate,
    SessionReferenceError,
    SyncClient,
    Target,
    connect,
)

PROJECT = Path(__file__).resolve().parents[1]
SESSIONS = PROJECT / "examples" / "sessions"
WORKSPACE = "/home/dev/shop"
TARGET = Target(session_id="demo", cwd=WORKSPACE)
BUDGET_BYTES = 1_000
KEY_SECONDS = 0.05
SNAPSHOT_LINES = 16

CONSOLE = Console(markup=False, emoji=False, highlight=False)


class DemoError(Exception):
    """The demo cannot go on; the text says why."""


def main() -> int:
    """Run the demo; the exit code."""
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="sessionref-") as folder:
            heading("1. The server finds the agents on this machine (here: sample sessions of three)")
            with running_server(Path(folder)) as address, connect(address) as client:
                tour(client)
    except (DemoError, SessionReferenceError) as error:
        CONSOLE.print(Text(f"demo: {error}", style="red"))
        return 1
    say(f"\nDone in {time.monotonic() - started:.1f} s. Your own sessions: `sessionref serve`, then `sessionref search`.", "bold")
    return 0


def tour(client: SyncClient) -> None:
    """Search twice, refer to what was found, read back what was cut."""
    heading(f"2. A person types @ in {WORKSPACE}; each key is a search over all agents")
    cut = typed_out(client, "timeout")
    whole = typed_out(client, "retry")
    if cut.source == whole.source:
        raise DemoError("both sessions are of the same agent")

    heading("3. The message refers to two sessions of different agents")
    message = f"Do the same for the export job: {whole.mention} {cut.mention}"
    say("typed:    " + message)
    prepared = client.prepare(message, target=TARGET, parse_mentions=True)
    context = prepared.additional_context
    if context is None:
        raise DemoError("the server prepared no context")
    show_facts(prepared, context)

    heading("4. What the model gets before the message: bounded, untrusted, nothing in it can spell a tag")
    say(context.text)

    heading("5. The session that was cut is kept in full, for this target only")
    show_snapshot(client, context)


@contextmanager
def running_server(folder: Path) -> Generator[str, None, None]:
    """A real server in a process of its own, on a private socket. What it says on standard error is shown until it is ready."""
    address = f"unix:{folder / 'sessionref.sock'}"
    configuration = folder / "sessionref.toml"
    configuration.write_text(configuration_text(folder, address), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SESSIONREF_")}
    command = (sys.executable, "-m", "sessionref_server.cli", "serve", "--config", str(configuration))
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, encoding="utf-8") as server:  # noqa: S603 - our own program
        try:
            show_start(server)
            yield address
        finally:
            server.terminate()


def configuration_text(folder: Path, address: str) -> str:
    """The sample sessions as the only sources, a small budget so that something is cut, and all storage in the folder."""
    # A JSON string is a TOML string too.
    roots = "".join(
        f"[sources.{agent}]\nroots = [{json.dumps(str(SESSIONS / agent))}]\n" for agent in ("dsh", "claude-code", "codex")
    )
    return (
        f"listen.addresses = [{json.dumps(address)}]\n"
        f"prepare.max_reference_bytes = {BUDGET_BYTES}\n"
        f"spill.folder = {json.dumps(str(folder / 'transcripts'))}\n"
        f"cache.folder = {json.dumps(str(cache_folder(folder)))}\n"
        'log.level = "warning"\n'
        f"{roots}"
    )


def cache_folder(folder: Path) -> Path:
    """The cache that is kept; one in the temporary folder when the project's folder cannot be written."""
    kept = PROJECT / ".demo" / "cache"
    if not os.access(PROJECT, os.W_OK):
        return folder / "cache"
    if not kept.exists():
        say("  (the first start takes some seconds more: it compiles the rules that find secrets)", "dim")
    return kept


def show_start(server: subprocess.Popen[str]) -> None:
    """Show the server's words up to its last one about the start; go on reading, so that it can go on speaking."""
    if server.stderr is None:
        raise DemoError("the server has no standard error")
    for line in server.stderr:
        say("  " + line.rstrip("\n"))
        if line.startswith("try it:"):
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return
    raise DemoError("the server did not start")


def typed_out(client: SyncClient, word: str) -> SessionCandidate:
    """Search with each key; the best candidate of the whole word."""
    best: SessionCandidate | None = None
    for length in range(len(word) + 1):
        typed = word[:length]
        found = client.search_sessions(typed, target=TARGET)
        best = found[0] if found else None
        titles = " · ".join(candidate.display_title for candidate in found[:2])
        CONSOLE.print(Text(f"  @{typed:{len(word) + 1}}{len(found):2}  {titles}"), no_wrap=True, overflow="ellipsis")
        if CONSOLE.is_terminal:
            time.sleep(KEY_SECONDS)
    if best is None:
        raise DemoError(f"no session matches {word!r}")
    say(f"  -> {best.display_title}  ({best.source})", "green")
    return best


def show_facts(prepared: Prepared, context: ContextMessage) -> None:
    """The readable message, and what was captured of each session."""
    for block in prepared.content:
        say("readable: " + getattr(block, "text", ""))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in ("session", "messages", "left out", "cut"):
        table.add_column(header)
    for reference in context.source.references:
        table.add_row(
            Text(reference.label),
            f"{reference.retained_messages} of {reference.original_messages}",
            f"{reference.omitted_bytes:,} bytes",
            "yes" if reference.truncated else "no",
        )
    CONSOLE.print(table)


def show_snapshot(client: SyncClient, context: ContextMessage) -> None:
    """The first lines of what was saved."""
    saved = [each.full_snapshot for each in context.omissions if isinstance(each.full_snapshot, SavedSnapshot)]
    if not saved:
        raise DemoError("nothing was saved")
    snapshot = saved[0]
    say(f"sessionref read {snapshot.locator} --owner {TARGET.session_id}   ({snapshot.size_bytes:,} bytes)", "bold")
    lines = client.read_snapshot_text(snapshot.locator, TARGET.session_id).split("\n")
    for line in lines[:SNAPSHOT_LINES]:
        say("  " + line)
    say(f"  … {max(0, len(lines) - SNAPSHOT_LINES)} more lines", "dim")


def heading(text: str) -> None:
    """Begin a part."""
    say("\n" + text, "bold cyan")


def say(text: str, style: str = "") -> None:
    """Print text as it is; the server has cleaned titles, and context texts hold no control characters."""
    CONSOLE.print(Text(text, style=style), soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
