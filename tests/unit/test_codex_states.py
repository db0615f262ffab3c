from __future__ import annotations

import pytest
from fakes.codex_records import MADE_ID, Rollout, log_file, message, spoken
from sessionref_server.adapters.sessions.formats.codex.surface import CodexSurfaceFold
from sessionref_server.adapters.sessions.log_format import LogEnd


def test_unknown_kinds_are_counted_and_change_nothing() -> None:
    rollout = (
        Rollout().meta().exchange("A", "a").add("new_kind", {}).event("new_event").add("response_item", {"type": "new_item"})
    )
    reading = rollout.line({"type": "stranger"}).surface().reading
    assert (reading.status, reading.unknown_records, reading.damaged_records) == ("ok", 4, 0)


@pytest.mark.parametrize(
    "line",
    [
        b'{"timestamp":"x","type":"event_msg","payload":{"type":"user_mess',
        b"[1]",
        b"\xff\xfe",
        b'{"type":"event_msg","payload":[]}',
        b'{"type":"compacted"}',
        b"[" * 100_000,
    ],
)
def test_bad_line_is_counted_and_makes_the_reading_partial(line: bytes) -> None:
    rollout = Rollout().meta().exchange("A", "a")
    rollout.lines.insert(2, line)
    reading = rollout.surface().reading
    assert (reading.status, reading.damaged_records, rollout.spoken()) == ("partial", 1, ["u:A", "a:a"])


@pytest.mark.parametrize(
    "field",
    [
        {"role": []},
        {"role": {}, "type": {}},
        {"type": []},
        {"content": 3, "role": "user"},
        {"content": [1, {"text": 2}], "role": "user"},
    ],
)
def test_wrong_shapes_say_nothing(field: dict[str, object]) -> None:
    assert Rollout().meta().exchange("A", "a").add("response_item", field).line(field).spoken() == ["u:A", "a:a"]


@pytest.mark.parametrize("torn", [60, 130, 3000])
def test_record_after_a_torn_one_on_the_same_line_is_saved(torn: int) -> None:
    rollout = Rollout().meta().add("response_item", {"type": "function_call_output", "call_id": "c", "output": "x" * 5000})
    rollout.lines[-1] = rollout.lines[-1][:torn] + Rollout().event("user_message", message="q").lines[0]
    reading = rollout.surface().reading
    assert (rollout.spoken(), reading.damaged_records, reading.status) == (["u:q"], 1, "partial")


def test_torn_tail_is_dropped_and_told() -> None:
    surface = Rollout().meta().exchange("A", "a").surface(LogEnd(tail=b'{"timestamp":"2026'))
    assert (spoken(surface), surface.reading.status, surface.reading.torn_tail) == (["u:A", "a:a"], "partial", True)


def test_whole_last_line_without_newline_is_read_and_not_kept() -> None:
    rollout = Rollout().meta().exchange("A", "a")
    late = Rollout().event("user_message", message="B").lines[0]
    fold = CodexSurfaceFold(log_file())
    for line in rollout.lines:
        fold.feed(line)
    with_tail, without = fold.surface(LogEnd(tail=late)), fold.surface(LogEnd())
    fold.feed(late)
    assert (spoken(with_tail), spoken(without), spoken(fold.surface(LogEnd()))) == (
        ["u:A", "a:a", "u:B"],
        ["u:A", "a:a"],
        ["u:A", "a:a", "u:B"],
    )
    assert (with_tail.reading.status, with_tail.reading.torn_tail) == ("ok", False)


def test_fold_fed_in_steps_gives_what_one_fed_at_once_gives() -> None:
    rollout = (
        Rollout()
        .meta()
        .exchange("A", "a")
        .turn()
        .user("B")
        .add("compacted", {"message": "", "replacement_history": [message("user", "B")]})
        .assistant("b")
    )
    rollout.event("thread_rolled_back", num_turns=1).exchange("C", "c")
    fold = CodexSurfaceFold(log_file())
    for index, line in enumerate(rollout.lines):
        fold.feed(line)
        partial = Rollout()
        partial.lines = rollout.lines[: index + 1]
        assert fold.surface(LogEnd()) == partial.surface()


@pytest.mark.parametrize(
    ("end", "detail"),
    [(LogEnd(torn_frame=True), "the compressed log is cut off"), (LogEnd(damage="checksum"), "checksum")],
)
def test_damaged_container_is_damaged_even_with_a_readable_prefix(end: LogEnd, detail: str) -> None:
    reading = Rollout().meta().exchange("A", "a").surface(end).reading
    assert (reading.status, reading.notes) == ("damaged", (detail,))


def test_skipped_lines_are_damage() -> None:
    reading = Rollout().meta().exchange("A", "a").surface(LogEnd(skipped_lines=2)).reading
    assert (reading.status, reading.damaged_records) == ("partial", 2)


@pytest.mark.parametrize(
    ("lines", "name", "size", "status"),
    [
        ([], "rollout-2026-09-01T10-00-00-x.jsonl", 0, "empty"),
        ([b'{"type":"event","event":{}}'], "claudian.jsonl", 10, "not_a_session"),
        ([b'{"session_id":"x","ts":1,"text":"t"}'], "history.jsonl", 10, "not_a_session"),
        ([b'{"id":"x","thread_name":"n","updated_at":"t"}'], "session_index.jsonl", 10, "not_a_session"),
        ([b"garbage"], "rollout-2026-09-01T10-00-00-x.jsonl", 10, "damaged"),
        ([b"garbage"], "notes.jsonl", 10, "not_a_session"),
        (Rollout().meta().lines, "a.jsonl", 10, "empty"),
        (Rollout().meta().lines, "a.jsonl", 2_000_000, "damaged"),
        ([*Rollout().meta().lines, b"garbage"], "a.jsonl", 10, "damaged"),
    ],
)
def test_log_without_messages_has_a_status_that_says_why(lines: list[bytes], name: str, size: int, status: str) -> None:
    rollout = Rollout()
    rollout.lines = lines
    file = log_file(name, size)
    assert (rollout.surface(file=file).reading.status, rollout.head(file=file).status) == (status, status)


def test_captured_through_is_the_ordinal_or_the_number_of_the_last_record() -> None:
    plain = Rollout().meta().exchange("A", "a")
    paginated = Rollout().add("session_meta", {"id": MADE_ID}, ordinal=9).add("event_msg", {"type": "token_count"}, ordinal=12)
    assert (plain.surface().through_seq, paginated.surface().through_seq, Rollout().surface().through_seq) == (5, 12, None)
