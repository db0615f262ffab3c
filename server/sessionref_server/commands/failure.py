"""What a person reads when a command fails: ``sessionref: <what> (<REASON>); <what to do next>``."""

from __future__ import annotations

import argparse

from sessionref_client import ReadFailedError, ReadFailureKind, SessionReferenceError, TransportError, default_address

from sessionref_server.commands.plain_text import visible
from sessionref_server.domain.errors import InvalidConfigError


class UsageError(Exception):
    """Arguments that cannot be used, found out after parsing. The text says what is wrong."""


_ADVICE = {
    "SESSION_REFERENCE_INVALID_REFERENCE": "take ids and mentions as `sessionref search` gives them",
    "SESSION_REFERENCE_SELF_REFERENCE": "leave out the reference to the target itself, or name another --target",
    "SESSION_REFERENCE_TOO_MANY": "refer to fewer sessions",
    "SESSION_REFERENCE_BUDGET_EXCEEDED": "give the server a larger prepare.max_reference_bytes, or refer to another session",
    "SESSION_REFERENCE_CANCELLED": "try again, with a longer --timeout if it took too long",
    "MODEL_METADATA_FAILED": "give the size with --context-window",
    "PERMISSION_DENIED": "ask whoever runs the server for access",
    "UNAUTHENTICATED": "ask whoever runs the server for access",
    "NOT_SERVED": "update the server",
    "SHUTTING_DOWN": "try again when the server is back",
}

_READ_ADVICE = {
    ReadFailureKind.UNKNOWN: "`sessionref search` lists the sessions there are",
    ReadFailureKind.DAMAGED: "refer to another session; this log cannot be read truthfully",
    ReadFailureKind.UNSUPPORTED: "update sessionref: a newer agent wrote this log",
    ReadFailureKind.UNAVAILABLE: "try again; `sessionref sources` shows the state of each source",
}


def failure_line(error: UsageError | InvalidConfigError | SessionReferenceError, arguments: argparse.Namespace) -> str:
    """One line, without control characters whatever the server said."""
    if isinstance(error, UsageError):
        return f"sessionref: {visible(str(error))}; see `sessionref {arguments.command} --help`"
    if isinstance(error, InvalidConfigError):
        return f"sessionref: {visible(str(error))} ({error.reason}); `sessionref check-config` explains the keys"
    if isinstance(error, TransportError) and error.code == "UNAVAILABLE":
        address = visible(arguments.address or default_address())
        return f"sessionref: no server answers at {address} (UNAVAILABLE); start one with `sessionref serve`"
    return f"sessionref: {visible(error.message)} ({visible(error.reason or error.code)}); {_advice(error, arguments.command)}"


def _advice(error: SessionReferenceError, command: str) -> str:
    if isinstance(error, ReadFailedError):
        if command == "read" and error.kind is ReadFailureKind.UNKNOWN:
            return "a locator works for its own --owner only, until it expires; `sessionref prepare` makes a new one"
        return _READ_ADVICE[error.kind]
    if error.reason == "OVERLOADED":
        return f"try again in {error.retry_after_seconds or 1:.1f} s"
    if error.reason == "INTERNAL":
        return f"the server's log explains request {visible(error.request_id or 'unknown')}"
    return _ADVICE.get(error.reason, f"see `sessionref {command} --help`")
