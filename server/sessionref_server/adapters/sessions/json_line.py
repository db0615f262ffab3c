"""One line of a log as a JSON object, and a time of any spelling as milliseconds. Both take hostile input and never raise."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from typing import Any, cast

import orjson

_SURROGATE = re.compile("[\ud800-\udfff]")
_OBJECT_START = re.compile(rb'(?:\xef\xbb\xbf)?[ \t\r\n]*\{[ \t\r\n]*["}]')
_LENIENCE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]|\xef\xbb\xbf|NaN|Infinity|[eE]\+?[0-9]{2}")
"""What the lenient parser can read and the fast one cannot: surrogates, a byte order mark, numbers that are none or too large."""
_MAX_TIME_CHARACTERS = 64
_MAX_EPOCH_MS = 253_402_300_799_999
"""Last millisecond of the year 9999, which is also the last one ISO 8601 dates can say."""

_SECONDS_BELOW = 100_000_000_000
_MILLISECONDS_BELOW = 100_000_000_000_000
_MICROSECONDS_BELOW = 100_000_000_000_000_000


def parse_json_line(line: bytes) -> dict[str, Any] | None:
    """Parse one complete line.

    What the fast parser refuses goes to the standard library where that can help: lone surrogates become U+FFFD, ``NaN``,
    ``Infinity`` and numbers too large for a double become ``None``. Returns ``None`` for bad JSON, bad UTF-8, nesting past the
    parsers' limits (about 1,000), and for anything but an object. What is plainly no object costs no parsing at all: a hostile
    log may hold millions of such lines.
    """
    if line[:2] != b'{"' and _OBJECT_START.match(line) is None:
        return None
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        value = None
    else:
        return cast("dict[str, Any]", value) if type(value) is dict else None
    return _parse_slowly(line) if _LENIENCE.search(line) else None


def _parse_slowly(line: bytes) -> dict[str, Any] | None:
    """Parse with the lenient parser, then write valid JSON and parse that, so that one code path cleans every string."""
    try:
        # ValueError covers bad JSON, bad UTF-8 and integers of thousands of digits.
        text = line.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
        value = json.loads(text, parse_constant=_nothing, parse_float=_finite)
        text = _SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False))
        value = orjson.loads(text)
    except (ValueError, RecursionError, MemoryError):
        return None
    return cast("dict[str, Any]", value) if type(value) is dict else None


def _nothing(_: str) -> None:
    return None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def epoch_ms(value: object) -> int | None:
    """Milliseconds since 1970 of a time in any usual spelling.

    A number counts seconds, milli-, micro- or nanoseconds, told apart by magnitude; a string is the same in decimal, or
    an ISO 8601 date or time (UTC when it names no zone). ``None`` for anything else, and before 1970 or after the year 9999.
    """
    if isinstance(value, str):
        return _text_epoch_ms(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _number_epoch_ms(value)


def _number_epoch_ms(number: float) -> int | None:
    # A comparison with NaN is false, so NaN falls out here as well.
    if not 0 <= number <= _MAX_EPOCH_MS * 1_000_000:
        return None
    if number < _SECONDS_BELOW:
        milliseconds = int(number * 1000)
    elif number < _MILLISECONDS_BELOW:
        milliseconds = int(number)
    elif number < _MICROSECONDS_BELOW:
        milliseconds = int(number) // 1000
    else:
        milliseconds = int(number) // 1_000_000
    return milliseconds if milliseconds <= _MAX_EPOCH_MS else None


def _text_epoch_ms(text: str) -> int | None:
    if len(text) > _MAX_TIME_CHARACTERS:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return _decimal_epoch_ms(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    milliseconds = math.floor(moment.timestamp() * 1000 + 0.5)
    return milliseconds if 0 <= milliseconds <= _MAX_EPOCH_MS else None


def _decimal_epoch_ms(text: str) -> int | None:
    try:
        return _number_epoch_ms(float(text))
    except ValueError:
        return None
