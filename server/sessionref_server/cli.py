"""The command line: what can be typed, and what each command's help teaches. The commands themselves are in ``commands/``.

Nothing but the standard library is imported before the arguments are understood, so that ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from typing import NoReturn

from sessionref_server import __version__
from sessionref_server.commands.argument_types import MAX_INT32, MAX_INT64, assignment, reference, seconds, text, whole_number
from sessionref_server.commands.plain_text import visible

_HELP_COLUMNS = 80

_OVERVIEW = """\
The service behind @: finds earlier sessions of any coding agent on this machine, and prepares a bounded, untrusted context from
the ones a message refers to."""

_START = """\
start here:
  sessionref serve                     find the agents on this machine and answer on a private socket
  sessionref search "payment"          in a second terminal: sessions about payments, those of this folder first
  sessionref prepare --target NEW --ref ID "Go on where this stopped"

`sessionref COMMAND --help` explains each command with examples."""

_SERVE = """\
Run the server. It finds the agents on this machine by itself, says what it found, and answers until SIGTERM or Ctrl-C; calls that
are running may then finish. Logs are only ever read."""

_SERVE_EXAMPLES = """\
examples:
  sessionref serve
  sessionref serve --listen 127.0.0.1:7313 --set log.level=debug
  sessionref serve --sources-root claude-code=/backup/claude/projects --set prepare.max_reference_bytes=32768

exit codes: 0 stopped as asked, 1 failed, 2 bad arguments or configuration
next: `sessionref search` in a second terminal; `sessionref check-config` explains every key."""

_SEARCH = """\
List sessions, best first: those of the same folder, then those without a folder, then the others, newest first each. QUERY is
found in id, folder and title, in any case; transcripts are not searched. A session marked with * has the same folder."""

_SEARCH_EXAMPLES = """\
examples:
  sessionref search
  sessionref search "gateway timeout" --limit 5
  sessionref search --source codex --subagents include --json

next: give an id from the list to `sessionref prepare --ref ID`."""

_PREPARE = """\
Show what the model of session --target gets to see of the sessions a message refers to. References come from --ref and from
mentions in TEXT (`@[title](dsh-session:...)`, as `sessionref search --json` gives them). At most three."""

_PREPARE_EXAMPLES = """\
examples:
  sessionref prepare --target new --ref claude-code:7c1e4a52-93b0-4d6e-8f27-1a2b3c4d5e6f
  sessionref prepare --target new --ref ID="Guest discounts" "Do the same for gift cards" --context-window 200000
  sessionref prepare --target new --context-only - < message.txt

next: `sessionref read LOCATOR --owner ID` prints the full text of a session that was cut."""

_READ = """\
Print the full transcript that was saved when a referenced session was cut. LOCATOR comes from `sessionref prepare`; it works for
the session it was prepared for (--owner), until it expires."""

_READ_EXAMPLES = """\
examples:
  sessionref read LOCATOR --owner new
  sessionref read LOCATOR --owner new --offset 65536 --limit 4096"""

_SOURCES = """\
Show the sources of sessions and their state: how many sessions each offers, and how many logs could not be read."""

_SOURCES_EXAMPLES = """\
examples:
  sessionref sources
  sessionref sources --json
  sessionref sources --local           look at this machine directly, without a server

next: `sessionref search --source NAME` lists the sessions of one source."""

_CHECK_CONFIG = """\
Check the configuration without starting a server, and print each key, its value, where the value came from and what it means.
Flags win over SESSIONREF_* variables, and these over the file."""

_CHECK_CONFIG_EXAMPLES = """\
examples:
  sessionref check-config
  sessionref check-config --config sessionref.toml --set prepare.max_references=2

exit codes: 0 the configuration is good, 2 it is not (the message names the key)
next: `sessionref serve` with the same arguments."""


class _Parser(argparse.ArgumentParser):
    """Says a usage error in one line that names the way to the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {visible(message)}; see `{self.prog} --help`\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the result is the exit code: 0 done, 1 failed, 2 usage or configuration."""
    arguments = build_parser().parse_args(argv)
    from sessionref_server.commands.dispatch import run

    return run(arguments)


def build_parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    parser = _Parser(
        prog="sessionref",
        description=textwrap.fill(_OVERVIEW, _HELP_COLUMNS),
        epilog=_START,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sessionref {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands", parser_class=_Parser)

    def add(name: str, summary: str, description: str, examples: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=textwrap.fill(description, _HELP_COLUMNS),
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    _serve_arguments(add("serve", "run the server", _SERVE, _SERVE_EXAMPLES))
    _search_arguments(add("search", "find sessions to refer to", _SEARCH, _SEARCH_EXAMPLES))
    _prepare_arguments(add("prepare", "show the context for a message that refers to sessions", _PREPARE, _PREPARE_EXAMPLES))
    _read_arguments(add("read", "print a saved full transcript", _READ, _READ_EXAMPLES))
    _sources_arguments(add("sources", "show the agents found and their state", _SOURCES, _SOURCES_EXAMPLES))
    _configuration(add("check-config", "check and explain the configuration", _CHECK_CONFIG, _CHECK_CONFIG_EXAMPLES))
    return parser


def _serve_arguments(parser: argparse.ArgumentParser) -> None:
    _configuration(parser)
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        action="append",
        default=[],
        type=text,
        help="unix:/path or host:port on a loopback address; may be repeated (default: a private Unix socket)",
    )


def _search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="?", default="", type=text, help="what to look for (default: everything)")
    parser.add_argument("--target", metavar="ID", default="", type=text, help="the session being typed into; it is left out")
    _folder(parser)
    parser.add_argument("--limit", metavar="N", type=whole_number(1, MAX_INT32), help="how many at most (default: the server's)")
    parser.add_argument(
        "--source", metavar="NAME", action="append", default=[], type=text, help="only this source; may be repeated"
    )
    parser.add_argument(
        "--subagents", choices=("include", "exclude"), help="whether to list sessions of subagents (default: as each source does)"
    )
    _connection(parser)
    _json(parser)


def _prepare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", type=text, help="the message, or - to read it from standard input")
    parser.add_argument("--target", metavar="ID", required=True, type=text, help="the session that receives the context")
    _folder(parser)
    parser.add_argument(
        "--ref",
        metavar="ID[=LABEL]",
        dest="references",
        action="append",
        default=[],
        type=reference,
        help="a session to refer to, and what to call it; may be repeated",
    )
    parser.add_argument("--provider", metavar="NAME", type=text, help="provider of the model the target talks to")
    parser.add_argument("--model", metavar="NAME", type=text, help="the model the target talks to; decides the byte budget")
    parser.add_argument(
        "--context-window",
        metavar="TOKENS",
        type=whole_number(1, MAX_INT64),
        help="context window of the model, when you know it",
    )
    _connection(parser)
    form = parser.add_mutually_exclusive_group()
    _json(form)
    form.add_argument("--context-only", action="store_true", help="print the context text and nothing else")


def _read_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("locator", metavar="LOCATOR", type=text, help="name of the saved transcript")
    parser.add_argument("--owner", metavar="ID", required=True, type=text, help="the target session it was prepared for")
    parser.add_argument("--offset", metavar="BYTES", type=whole_number(0, MAX_INT64), help="where to start (default: 0)")
    parser.add_argument("--limit", metavar="BYTES", type=whole_number(1, MAX_INT64), help="how much (default: to the end)")
    _connection(parser)
    _json(parser)


def _sources_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--local", action="store_true", help="scan this machine as the configuration says; needs no server")
    _configuration(parser)
    _connection(parser)
    _json(parser)


def _configuration(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("configuration")
    group.add_argument(
        "--config",
        metavar="FILE",
        help="TOML file (default: $SESSIONREF_CONFIG, else sessionref/config.toml in your configuration folder if it is there)",
    )
    group.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="assignments",
        action="append",
        default=[],
        type=assignment,
        help="set one key; may be repeated",
    )
    group.add_argument(
        "--sources-root",
        metavar="NAME=PATH",
        action="append",
        default=[],
        type=assignment,
        help="read a source from this folder instead of the usual places; may be repeated",
    )


def _connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("connection")
    group.add_argument(
        "--address",
        type=text,
        help="server to ask: unix:/path or host:port (default: $SESSIONREF_ADDRESS, else the private Unix socket)",
    )
    group.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=30.0, help="how long to wait for an answer (default: 30)"
    )


def _folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cwd", metavar="DIR", type=text, help="folder of the target session (default: the current one)")


def _json(parser: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    parser.add_argument("--json", action="store_true", help="print one JSON document")


if __name__ == "__main__":
    sys.exit(main())
