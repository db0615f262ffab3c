"""What an argument must be. Standard library only: the help is built with it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1


def text(raw: str) -> str:
    """Text that can travel: the bytes typed were UTF-8."""
    if any("\ud800" <= character <= "\udfff" for character in raw):
        raise argparse.ArgumentTypeError("is not valid UTF-8")
    return raw


def whole_number(minimum: int, maximum: int) -> Callable[[str], int]:
    """A whole number within bounds."""

    def parse(raw: str) -> int:
        number = int(raw) if raw.isascii() and raw.isdigit() and len(raw) <= len(str(maximum)) else -1
        if not minimum <= number <= maximum:
            raise argparse.ArgumentTypeError(f"must be a whole number from {minimum} to {maximum}")
        return number

    return parse


def seconds(raw: str) -> float:
    """A time to wait, at most an hour."""
    try:
        duration = float(raw)
    except ValueError:
        duration = 0.0
    if not 0 < duration <= 3600:  # noqa: PLR2004 - an hour; also refuses NaN
        raise argparse.ArgumentTypeError("must be a number of seconds, more than 0 and at most 3600")
    return duration


def assignment(raw: str) -> tuple[str, str]:
    """``NAME=VALUE``. The value may be empty and may hold more of the same sign."""
    name, separator, value = text(raw).partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"{raw!r} lacks its =VALUE")
    return name, value


def reference(raw: str) -> tuple[str, str | None]:
    """``ID`` or ``ID=LABEL``: without a label ``None``, which stands for the id."""
    session_id, separator, label = text(raw).partition("=")
    return session_id, label if separator else None
