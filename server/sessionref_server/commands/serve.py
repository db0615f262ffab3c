"""``sessionref serve``: run the server, and say on standard error what it found and how to try it.

What it takes to say something well is imported when there is something to say: a start has no time for it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from sessionref_client import default_address

from sessionref_server.bootstrap import ServerStarted
from sessionref_server.bootstrap import serve as run_server
from sessionref_server.commands.configuration import read_configuration
from sessionref_server.commands.plain_text import visible
from sessionref_server.config import Config

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

_PLAIN_PROGRESS_SECONDS = 60.0


def serve(arguments: argparse.Namespace) -> int:
    """Run the command until SIGTERM or SIGINT."""
    config = read_configuration(arguments).config
    return _event_loop_runner()(_serve(config))


def _event_loop_runner() -> Callable[[Coroutine[None, None, int]], int]:
    """The faster event loop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


async def _serve(config: Config) -> int:
    announcer = Announcer(spoken=config.log_format == "text")
    progress = asyncio.create_task(announcer.show_progress())
    try:
        return await run_server(config, announce=announcer.announce)
    finally:
        progress.cancel()
        announcer.end_progress()
        with suppress(asyncio.CancelledError):
            await progress


class Announcer:
    """Tells a person on standard error how the start goes. Silent when the log is JSON: its lines are for programs."""

    def __init__(self, *, spoken: bool) -> None:
        self._spoken = spoken
        self._live: Live | None = None
        self._scanned = asyncio.Event()

    @cached_property
    def _console(self) -> Console:
        from sessionref_server.commands.output import console

        return console(error=True)

    async def show_progress(self) -> None:
        """A spinner on a terminal, a plain line per minute elsewhere, until the first scan is complete."""
        if not self._spoken:
            return
        if sys.stderr.isatty() and self._console.is_terminal:
            from rich.live import Live
            from rich.spinner import Spinner
            from rich.text import Text

            spinner = Spinner("dots", Text("reading the sessions on this machine; searches are answered meanwhile"))
            self._live = Live(spinner, console=self._console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._live.start()
            return
        minutes = 0
        while not self._scanned.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._scanned.wait(), _PLAIN_PROGRESS_SECONDS)
                return
            minutes += 1
            so_far = "1 minute" if minutes == 1 else f"{minutes:,} minutes"
            self._console.print(f"still reading the sessions on this machine, {so_far} so far")

    def announce(self, started: ServerStarted) -> None:
        """Say what was found."""
        self.end_progress()
        if not self._spoken:
            return
        from rich.text import Text

        from sessionref_server.commands.output import print_table
        from sessionref_server.commands.sources import source_table

        print_table(self._console, source_table(started.sources))
        for address in started.addresses:
            self._console.print(Text(f"listening on {visible(address)}"))
        self._console.print(Text(f"try it: {try_it(started.addresses)}", style="bold"))

    def end_progress(self) -> None:
        """Take the progress away; harmless when there is none."""
        self._scanned.set()
        if self._live is not None:
            self._live.stop()
            self._live = None


def try_it(addresses: Sequence[str]) -> str:
    """A first command for another terminal."""
    elsewhere = addresses and default_address() not in addresses
    return "sessionref search" + (f" --address {visible(addresses[0])}" if elsewhere else "")
