from __future__ import annotations

import pytest
from fakes.claude_records import Log, spoken, surface_of
from sessionref_server.adapters.sessions.formats.claude_code.surface import ClaudeSurfaceFold
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.domain.session import SessionStatus


def started() -> Log:
    return Log().user("u1", "first").assistant("a1", "one")


def test_torn_tail_is_left_out_and_told() -> None:
    log = started().user("u2", "second")
    surface = surface_of(log.lines[:2], LogEnd(tail=log.lines[2][:-9]))
    assert (spoken(surface), surface.reading.torn_tail) == ([("user", "first"), ("assistant", "one")], True)
    assert surface.reading.status is SessionStatus.PARTIAL


def test_whole_last_record_without_newline_counts_and_is_not_kept() -> None:
    log = started().user("u2", "second").assistant("a2", "two")
    fold = ClaudeSurfaceFold("x", is_subagent=False)
    for line in log.lines[:2]:
        fold.feed(line)
    seen = [spoken(fold.surface(LogEnd(tail=log.lines[2]))), spoken(fold.surface(LogEnd()))]
    for line in log.lines[2:]:
        fold.feed(line)
    whole = [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")]
    assert [*seen, spoken(fold.surface(LogEnd()))] == [whole[:3], whole[:2], whole]


def test_damaged_and_unknown_records_are_skipped_and_counted() -> None:
    lines = started().meta("kind-of-next-week", value=1).user("u2", "second", parentUuid="a1").lines
    bad = [
        b'{"type":"user","mess',
        b"\0\0\0",
        b"42",
        b'"text"',
        b"[1]",
        b"",
        b"  ",
        b'{"type":"user","uuid":"x","message":"error"}',
    ]
    reading = surface_of([*lines[:2], *bad, *lines[2:]], LogEnd(skipped_lines=2)).reading
    assert (reading.status, reading.damaged_records, reading.unknown_records) == (SessionStatus.PARTIAL, 8, 1)


def test_deeply_nested_record_is_skipped_and_counted() -> None:
    nested = b'{"type":"user","uuid":"n","message":{"content":' + b"[" * 5000 + b"]" * 5000 + b"}}"
    reading = surface_of([*started().lines, nested]).reading
    assert (reading.status, reading.damaged_records) == (SessionStatus.PARTIAL, 1)


@pytest.mark.parametrize(
    ("lines", "end", "status"),
    [
        ([], LogEnd(), SessionStatus.EMPTY),
        ([b""], LogEnd(), SessionStatus.EMPTY),
        (Log().meta("mode", mode="normal").meta("file-history-snapshot", snapshot={}).lines, LogEnd(), SessionStatus.EMPTY),
        (Log().user("u1", "<command-name>/exit</command-name>").lines, LogEnd(), SessionStatus.EMPTY),
        ([], LogEnd(tail=b'{"type":"user","mess'), SessionStatus.EMPTY),
        ([b'{"type":"user","mess'] * 3, LogEnd(), SessionStatus.DAMAGED),
        (Log().meta("mode", mode="x").lines, LogEnd(skipped_lines=1), SessionStatus.DAMAGED),
        ([], LogEnd(tail=b"\0" * 8192), SessionStatus.DAMAGED),
        (Log().tool_use("t1").tool_result("r1", toolUseResult="x" * (1 << 20)).lines, LogEnd(), SessionStatus.DAMAGED),
        ([b'{"type":"session_meta","payload":{}}', b'{"type":"response_item"}'], LogEnd(), SessionStatus.NOT_A_SESSION),
        ([b"{", b'  "loglines": [', b"  ]"], LogEnd(tail=b"}"), SessionStatus.NOT_A_SESSION),
        ([b'{"loglines":[]}'], LogEnd(), SessionStatus.NOT_A_SESSION),
        ([b"# notes", b"not a log"], LogEnd(), SessionStatus.NOT_A_SESSION),
        ([], LogEnd(tail=b"plain text"), SessionStatus.NOT_A_SESSION),
        ([b'{"type":"user","content":"of another agent","id":"1"}'], LogEnd(), SessionStatus.NOT_A_SESSION),
    ],
)
def test_log_without_a_message_says_why(lines: list[bytes], end: LogEnd, status: SessionStatus) -> None:
    surface = surface_of(lines, end)
    assert (surface.reading.status, surface.messages) == (status, [])
    assert surface.reading.notes != ()


def test_coordinate_is_the_number_of_the_last_record() -> None:
    lines = started().lines
    assert [surface_of(lines[:count]).through_seq for count in (0, 1, 2)] == [None, 0, 1]
