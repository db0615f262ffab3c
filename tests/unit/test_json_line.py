from __future__ import annotations

from typing import Any

import pytest
from sessionref_server.adapters.sessions.json_line import epoch_ms, parse_json_line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"a":1}', {"a": 1}),
        (b' {"a":1}\r', {"a": 1}),
        (b'{ "a" : 1 } ', {"a": 1}),
        (b"{}", {}),
        (b'\xef\xbb\xbf {\n"a":1}', {"a": 1}),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{"a":"x \\ud83d y"}', {"a": "x \ufffd y"}),
        (b'{"\\udc00":["\\ud83d\\ude80"]}', {"\ufffd": ["\U0001f680"]}),
        (b'{"a":"\xed\xa0\x80"}', {"a": "\ufffd"}),
        (b'{"a":NaN,"b":-Infinity,"c":1e999}', {"a": None, "b": None, "c": None}),
    ],
)
def test_object_is_parsed_and_cleaned(line: bytes, expected: dict[str, Any]) -> None:
    assert parse_json_line(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[1]", id="array"),
        pytest.param(b'"{}"', id="string"),
        pytest.param(b'NaN{"a":1}', id="object after something else"),
        pytest.param(b"{'a':1}", id="other quotes"),
        pytest.param(b"{NaN}", id="no key"),
        pytest.param(b'{"a":', id="half"),
        pytest.param(b'{"a":"\xff"}', id="bad UTF-8"),
        pytest.param(b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}", id="deep"),
        pytest.param(b'{"a":"\\ud800","b":' + b"[" * 20_000 + b"]" * 20_000 + b"}", id="deep with a surrogate"),
        pytest.param(b'{"a":NaN,"b":' + b"1" * 5000 + b"}", id="thousands of digits"),
    ],
)
def test_anything_else_is_none(line: bytes) -> None:
    assert parse_json_line(line) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (1_723_456_789, 1_723_456_789_000),
        (1_723_456_789.25, 1_723_456_789_250),
        (1_723_456_789_123, 1_723_456_789_123),
        (1_723_456_789_123_456, 1_723_456_789_123),
        (1_723_456_789_123_456_789, 1_723_456_789_123),
        ("1723456789123", 1_723_456_789_123),
        ("2026-08-01T10:00:00.5Z", 1_785_578_400_500),
        ("2026-08-01T12:00:00+02:00", 1_785_578_400_000),
        ("2026-08-01T10:00:00", 1_785_578_400_000),
        ("2026-08-01", 1_785_542_400_000),
        (-1, None),
        (True, None),
        (None, None),
        ("soon", None),
        ("1" * 65, None),
        (10**400, None),
        (float("nan"), None),
        (float("inf"), None),
        ("0001-01-01", None),
    ],
)
def test_time_is_milliseconds_whatever_its_spelling(value: object, expected: int | None) -> None:
    assert epoch_ms(value) == expected
