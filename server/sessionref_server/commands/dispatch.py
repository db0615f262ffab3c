"""From parsed arguments to a command, and from a failure to one line and an exit code."""

from __future__ import annotations

import argparse
import io
import os
import sys

from sessionref_client import SessionReferenceError

from sessionref_server.commands.failure import UsageError, failure_line
from sessionref_server.commands.plain_text import visible
from sessionref_server.domain.errors import InvalidConfigError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
"""What shells report for Ctrl-C."""


def run(arguments: argparse.Namespace) -> int:
    """Run the command that was asked for; the exit code. Failures end as one line on standard error."""
    _accept_any_text()
    try:
        code = _command(arguments)
        sys.stdout.flush()
    except (UsageError, InvalidConfigError, SessionReferenceError) as error:
        return _fail(failure_line(error, arguments), EXIT_FAILED if isinstance(error, SessionReferenceError) else EXIT_USAGE)
    except BrokenPipeError:
        # The reader went away (`| head`). What is still buffered has nowhere to go, and must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except OSError as error:
        return _fail(f"sessionref: {visible(str(error))}", EXIT_FAILED)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def _command(arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "serve":
            from sessionref_server.commands.serve import serve as command
        case "search":
            from sessionref_server.commands.search import search as command
        case "prepare":
            from sessionref_server.commands.prepare import prepare as command
        case "read":
            from sessionref_server.commands.read import read as command
        case "sources":
            from sessionref_server.commands.sources import sources as command
        case _:
            from sessionref_server.commands.check_config import check_config as command
    return command(arguments)


def _fail(line: str, code: int) -> int:
    sys.stdout.flush()
    sys.stderr.write(line + "\n")
    return code


def _accept_any_text() -> None:
    """A terminal that cannot show a character shows its escape; it is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
