from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sessionref_server.adapters.sessions.log_reader import FoldReader, ReadLimits
from sessionref_server.domain.session import SessionStatus
from unit.dsh_log_rig import FORMAT, assistant, header, lines, log_file, read, row, spoken, user


@pytest.fixture
def canonical(tmp_path: Path) -> Path:
    path = tmp_path / "made" / "session.v4.jsonl"
    path.parent.mkdir()
    return path


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    return tmp_path / "made.jsonl"


def test_damage_before_the_end_of_a_turn_refuses_a_canonical_log(canonical: Path) -> None:
    canonical.write_bytes(lines(header(), user(0, "a"), b"{oops\n", row("turn/end", 2)))
    head, surface = read(canonical)
    assert (head.status, surface.reading.status, spoken(surface)) == (SessionStatus.DAMAGED, SessionStatus.DAMAGED, [])


def test_damage_no_turn_ended_after_leaves_the_good_beginning(canonical: Path) -> None:
    canonical.write_bytes(lines(header(), user(0, "a"), assistant(1, "b"), b"{oops\n", user(3, "c")))
    _, surface = read(canonical)
    assert (surface.reading.status, surface.reading.damaged_records, surface.through_seq) == (SessionStatus.PARTIAL, 2, 1)
    assert spoken(surface) == [["user", "a"], ["assistant", "b"]]


def test_canonical_log_of_another_tool_that_numbers_from_one_is_read_leniently(canonical: Path) -> None:
    canonical.write_bytes(lines(header(), user(1, "a"), assistant(2, "b")))
    head, surface = read(canonical)
    assert (head.status, surface.reading.status, surface.through_seq) == (SessionStatus.OK, SessionStatus.OK, 2)
    assert spoken(surface) == [["user", "a"], ["assistant", "b"]]


def test_row_over_the_size_cap_leaves_a_gap_and_not_a_damaged_log(canonical: Path) -> None:
    result = row("tool/result", 1, {"message": {"content": "x" * 3000}}, surfaceOp="append")
    canonical.write_bytes(lines(header(), user(0, "a"), result, assistant(2, "b"), row("turn/end", 3)))
    _, surface = read(canonical, ReadLimits(line_bytes=2000))
    assert (surface.reading.status, surface.reading.damaged_records, surface.through_seq) == (SessionStatus.PARTIAL, 1, 3)
    assert spoken(surface) == [["user", "a"], ["assistant", "b"]]


def test_interrupted_tool_calls_count_in_the_captured_number(canonical: Path) -> None:
    canonical.write_bytes(
        lines(
            header(),
            row("turn/start", 0, {"turn": 1}),
            row("step/start", 1, {"turn": 1, "step": 1}),
            user(2, "a"),
            assistant(3, "b", "c1", "c2"),
            row("tool/result", 4, {"message": {"source": {"kind": "tool", "callId": "c1"}, "content": []}}, surfaceOp="append"),
        )
    )
    assert read(canonical)[1].through_seq == 4 + len(["result of c2", "step/end", "turn/end"])


def test_log_without_any_row_yet_is_empty_and_not_damaged(canonical: Path) -> None:
    for content in (b"", b'{"type":"session","vers', lines(header())):
        canonical.write_bytes(content)
        head, surface = read(canonical)
        assert (head.status, surface.reading.status) == (SessionStatus.EMPTY, SessionStatus.EMPTY)


def test_rows_over_many_blocks_are_read_as_one_by_one(canonical: Path) -> None:
    rows: list[dict[str, Any]] = [header()]
    for turn in range(1500):
        seq = len(rows) - 1
        rows += [
            row("turn/start", seq),
            row("step/start", seq + 1),
            user(seq + 2, f"q{turn}"),
            assistant(seq + 3, f"a{turn}", "c"),
        ]
        if turn % 400 == 399:
            checkpoint = {"kind": "compact-checkpoint", "compactionId": "k"}
            span = {"op": "replace", "startSeq": seq + 2, "endSeq": seq + 3}
            rows.append(user(seq + 4, f"s{turn}", checkpoint, surfaceOp=span, sourceEventSeqs=[seq + 2, seq + 3]))
        seq = len(rows) - 1
        rows += [row("step/end", seq), row("turn/end", seq + 1)]
    rows.append(row("session/title", len(rows) - 1, {"title": "last"}))
    canonical.write_bytes(lines(*rows))
    head, surface = read(canonical)
    expected: list[list[str]] = []
    for turn in range(1500):
        expected += [["summary", f"s{turn}"]] if turn % 400 == 399 else [["user", f"q{turn}"], ["assistant", f"a{turn}"]]
    assert spoken(surface) == expected
    assert (head.title, surface.through_seq, surface.reading.status) == ("last", len(rows) - 2, SessionStatus.OK)


def test_growth_gives_the_same_surface_as_a_fresh_read(canonical: Path) -> None:
    rows = [header(), *(user(seq, f"m{seq}") for seq in range(200))]
    content = lines(*rows)
    canonical.write_bytes(content[:7000])
    fold = FORMAT.surface_fold(log_file(canonical))
    reader = FoldReader(str(canonical), fold, is_head=False)
    for size in (9000, 20_000, len(content)):
        fold.surface(reader.read())
        with canonical.open("ab") as file:
            file.write(content[canonical.stat().st_size : size])
    assert fold.surface(reader.read()) == read(canonical)[1]
