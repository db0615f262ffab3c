from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sessionref_server.adapters.sessions.log_reader import FoldReader
from sessionref_server.domain.session import ModelRoute, SessionStatus
from unit.dsh_log_rig import FORMAT, assistant, header, lines, log_file, read, row, spoken, user


@pytest.fixture
def canonical(tmp_path: Path) -> Path:
    path = tmp_path / "made" / "session.v4.jsonl"
    path.parent.mkdir()
    return path


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    return tmp_path / "made.jsonl"


def test_flat_log_uses_what_makes_sense_and_counts_the_rest(flat: Path) -> None:
    vendor = row("web/vendor-search", 3)
    flat.write_bytes(lines({"type": "queue"}, header(0), user(1, "a"), b"{oops\n", vendor, assistant(4, "b")).rstrip(b"\n"))
    head, surface = read(flat)
    facts = surface.reading
    assert (facts.status, facts.damaged_records, facts.unknown_records, facts.torn_tail) == (SessionStatus.PARTIAL, 1, 2, False)
    assert (head.status, head.cwd, surface.through_seq) == (SessionStatus.PARTIAL, "/work", 4)
    assert spoken(surface) == [["user", "a"], ["assistant", "b"]]


def test_whole_record_without_newline_counts_once_it_is_complete_and_only_once(flat: Path) -> None:
    flat.write_bytes(lines(header(0), user(1, "a"))[:-1])
    fold = FORMAT.surface_fold(log_file(flat))
    reader = FoldReader(str(flat), fold, is_head=False)
    before = spoken(fold.surface(reader.read()))
    with flat.open("ab") as file:
        file.write(b"\n" + lines(user(2, "b")))
    assert (before, spoken(fold.surface(reader.read()))) == ([["user", "a"]], [["user", "a"], ["user", "b"]])


def test_flat_replacement_over_a_lost_node_takes_what_is_left(flat: Path) -> None:
    checkpoint = user(5, "sum", {"kind": "plugin", "plugin": "compact"}, surfaceOp={"op": "replace", "start": 1, "end": 3})
    flat.write_bytes(lines(header(0), user(1, "a"), assistant(2, "b"), b"{oops\n", user(4, "d"), checkpoint))
    assert spoken(read(flat)[1]) == [["summary", "sum"], ["user", "d"]]


def test_file_without_header_is_no_session(flat: Path) -> None:
    flat.write_bytes(lines({"type": "turn_state", "state": "idle"}))
    head, surface = read(flat)
    assert (head.status, surface.reading.status) == (SessionStatus.NOT_A_SESSION, SessionStatus.NOT_A_SESSION)


def test_title_made_of_injected_text_is_not_used(flat: Path) -> None:
    injected = user(1, "<env-note>os=linux</env-note>", {"kind": "plugin", "plugin": "env"})
    title = row("session/title", 2, {"title": "<env-note>os=linux…", "source": {"kind": "fallback"}})
    flat.write_bytes(lines(header(0), injected, title, user(3, "fix the login test")))
    assert read(flat)[0].title == "fix the login test"


def test_head_tells_parent_label_route_and_the_time_of_the_last_message(flat: Path) -> None:
    descriptor = row("subagent/descriptor", 3, {"version": 3, "mode": "one-shot", "provider": "x", "label": ""})
    child = header(0, origin="subagent", parentSession="p1", delegationDepth=1)
    flat.write_bytes(lines(child, user(1, "a"), assistant(2, "b"), descriptor, row("session/title", 9, {"title": "t"})))
    head = read(flat)[0]
    assert (head.parent_native_id, head.is_subagent, head.subagent_label) == ("p1", True, "")
    assert (head.title, head.route, head.updated_at_ms) == ("t", ModelRoute(provider="p", model="m"), 1_790_000_000_002)


def test_images_are_omitted_and_named_by_type(flat: Path) -> None:
    shot = user(1, "look")
    shot["data"]["content"] += [{"type": "image", "attachment": {"mediaType": "image/png"}}, {"type": "image", "data": "aW1hZ2U"}]
    flat.write_bytes(lines(header(0), shot))
    surface = read(flat)[1]
    assert (spoken(surface), surface.reading.notes) == ([["user", "look"]], ("2 image blocks omitted (image/png)",))


def test_head_of_a_large_log_agrees_with_its_small_one(canonical: Path) -> None:
    noise = [row("tool/call", seq, {"arguments": "x" * 400}) for seq in range(3, 1003)]
    small = [header(), user(0, "first"), assistant(1, "b"), row("session/title", 2, {"title": "named"})]
    canonical.write_bytes(lines(*small))
    expected = read(canonical)[0]
    canonical.write_bytes(lines(*small, *noise))
    assert replace(read(canonical)[0], updated_at_ms=None) == replace(expected, updated_at_ms=None)


def test_last_activity_of_a_large_log_is_its_last_message_wherever_the_title_stands(canonical: Path) -> None:
    noise = [row("tool/call", seq, {"arguments": "x" * 400}) for seq in range(2, 1002)]
    ending = [assistant(1002, "c"), row("turn/end", 1003), row("session/title", 1004, {"title": "late"})]
    canonical.write_bytes(lines(header(), user(0, "a"), assistant(1, "b"), *noise, *ending))
    head = read(canonical)[0]
    assert (head.updated_at_ms, head.title) == (1_790_000_001_002, "late")


def test_last_activity_hidden_by_tool_output_is_the_end_of_its_turn(canonical: Path) -> None:
    noise = [row("tool/call", seq, {"arguments": "x" * 400}) for seq in range(2, 1002)]
    canonical.write_bytes(lines(header(), user(0, "a"), assistant(1, "b"), *noise, row("session/title", 1002, {"title": "t"})))
    assert read(canonical)[0].updated_at_ms == 1_790_000_001_001
