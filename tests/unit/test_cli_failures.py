"""What a person reads when a command fails."""

from __future__ import annotations

import argparse

import pytest
from sessionref_client import (
    BudgetExceededError,
    Failure,
    InternalError,
    OverloadedError,
    ReadFailedError,
    SessionReferenceError,
    TooManyReferencesError,
    TransportError,
)
from sessionref_server.commands.failure import UsageError, failure_line
from sessionref_server.domain.errors import InvalidConfigError

ESC = "\x1b"


def _arguments(command: str = "search") -> argparse.Namespace:
    return argparse.Namespace(command=command, address="unix:/run/x.sock")


def _read_failure(code: str) -> ReadFailedError:
    return ReadFailedError(Failure(code=code, reason="SESSION_REFERENCE_READ_FAILED", message="session s"))


@pytest.mark.parametrize(
    ("error", "command", "said"),
    [
        (
            TransportError(Failure(code="UNAVAILABLE", message="connection refused")),
            "search",
            "sessionref: no server answers at unix:/run/x.sock (UNAVAILABLE); start one with `sessionref serve`",
        ),
        (
            TooManyReferencesError(Failure(code="INVALID_ARGUMENT", reason="SESSION_REFERENCE_TOO_MANY", message="4 of 3")),
            "prepare",
            "sessionref: 4 of 3 (SESSION_REFERENCE_TOO_MANY); refer to fewer sessions",
        ),
        (
            _read_failure("NOT_FOUND"),
            "prepare",
            "sessionref: session s (SESSION_REFERENCE_READ_FAILED); `sessionref search` lists the sessions there are",
        ),
        (
            _read_failure("NOT_FOUND"),
            "read",
            (
                "sessionref: session s (SESSION_REFERENCE_READ_FAILED); a locator works for its own --owner only, "
                "until it expires; `sessionref prepare` makes a new one"
            ),
        ),
        (
            _read_failure("FAILED_PRECONDITION"),
            "prepare",
            "sessionref: session s (SESSION_REFERENCE_READ_FAILED); update sessionref: a newer agent wrote this log",
        ),
        (
            OverloadedError(
                Failure(code="RESOURCE_EXHAUSTED", reason="OVERLOADED", message="busy", retry_after_seconds=0.25),
            ),
            "prepare",
            "sessionref: busy (OVERLOADED); try again in 0.2 s",
        ),
        (
            InternalError(Failure(code="INTERNAL", reason="INTERNAL", message="a fault", request_id="r1")),
            "prepare",
            "sessionref: a fault (INTERNAL); the server's log explains request r1",
        ),
        (
            BudgetExceededError(
                Failure(code="FAILED_PRECONDITION", reason="SESSION_REFERENCE_BUDGET_EXCEEDED", message=f"x{ESC}[2J\n")
            ),
            "prepare",
            (
                "sessionref: x\\x1b[2J\\x0a (SESSION_REFERENCE_BUDGET_EXCEEDED); "
                "give the server a larger prepare.max_reference_bytes, or refer to another session"
            ),
        ),
        (
            SessionReferenceError(Failure(code="UNKNOWN", reason="A_LATER_REASON", message="new")),
            "search",
            "sessionref: new (A_LATER_REASON); see `sessionref search --help`",
        ),
        (
            InvalidConfigError("log.level (flag) must be text", key="log.level"),
            "serve",
            (
                "sessionref: log.level (flag) must be text (SESSION_REFERENCE_INVALID_CONFIG); "
                "`sessionref check-config` explains the keys"
            ),
        ),
        (UsageError("no"), "serve", "sessionref: no; see `sessionref serve --help`"),
    ],
)
def test_a_failure_is_one_line_with_the_reason_and_what_to_do_next(
    error: SessionReferenceError | InvalidConfigError | UsageError, command: str, said: str
) -> None:
    assert failure_line(error, _arguments(command)) == said
