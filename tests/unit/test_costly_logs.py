"""Logs made to cost more than their size: what is counted is steps, so nothing here is timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.codex_records import Rollout
from sessionref_server.adapters.sessions.log_format import Surface
from unit.dsh_log_rig import header, lines, read, user

SOME = 300


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python a piece of work executes."""
    count = 0

    def trace(_frame: object, event: str, _argument: object) -> Callable[..., object]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def prompts(count: int) -> Rollout:
    rollout = Rollout().meta()
    for number in range(count):
        rollout.event("user_message", message=f"q{number}")
    return rollout


def compacted_many_times(count: int) -> Rollout:
    rollout = prompts(count)
    for number in range(count):
        rollout.add("compacted", {"message": f"s{number}"})
    return rollout


def rolled_back_many_times(count: int) -> Rollout:
    rollout = prompts(2 * count)
    for _ in range(count):
        rollout.event("thread_rolled_back", num_turns=1)
    return rollout


def rolled_back_without_effect(count: int) -> Rollout:
    rollout = Rollout().meta()
    for number in range(count):
        rollout.item("assistant", f"a{number}")
    for _ in range(count):
        rollout.event("thread_rolled_back", num_turns=1)
    return rollout


def compacted_and_rolled_back_in_turn(count: int) -> Rollout:
    rollout = prompts(count)
    for number in range(count):
        rollout.event("user_message", message=f"z{number}").add("compacted", {"message": "s"})
        rollout.event("thread_rolled_back", num_turns=1).event("thread_rolled_back", num_turns=1)
    return rollout


@pytest.mark.parametrize("make", [compacted_many_times, rolled_back_many_times, rolled_back_without_effect])
def test_codex_log_of_twice_the_length_takes_twice_the_steps(make: Callable[[int], Rollout]) -> None:
    once, twice = make(SOME), make(2 * SOME)
    assert lines_run(twice.surface) < 2.5 * lines_run(once.surface)


def test_every_prompt_outlives_any_number_of_compactions_that_wrote_no_history() -> None:
    rollout = compacted_many_times(SOME)
    assert rollout.spoken() == [*(f"u:q{number}" for number in range(SOME)), f"c:s{SOME - 1}"]


def test_rollbacks_past_compactions_come_to_an_end() -> None:
    spoken = compacted_and_rolled_back_in_turn(SOME).spoken()
    assert spoken == [f"u:q{number}" for number in range(len(spoken))]


def test_texts_of_one_length_are_told_apart_at_the_cost_of_reading_each_once() -> None:
    rollout = Rollout().meta()
    for number in range(SOME):
        rollout.item("assistant", f"{number:05d} same length")
    for number in range(SOME):
        rollout.event("agent_message", message=f"{number:05d}  other words")
    assert len(rollout.spoken()) == 2 * SOME


def test_text_told_again_with_other_white_space_is_one_text_also_after_it_was_replaced() -> None:
    rollout = Rollout().meta().user("q").event("agent_message", message="one two").item("assistant", "one  two")
    assert rollout.completed("AgentMessage", content=[{"type": "Text", "text": "one\ntwo"}]).spoken() == ["u:q", "a:one  two"]


def replacing_backwards(path: Path, count: int) -> Callable[[], Surface]:
    rows = [user(number, "t") for number in range(count)]
    backwards = {"op": "replace", "startSeq": count - 1, "endSeq": 0}
    rows += [user(count + number, "t", surfaceOp=backwards, sourceEventSeqs=[[0, count - 1]]) for number in range(count)]
    path.write_bytes(lines(header(), *rows))
    return lambda: read(path)[1]


def test_dsh_log_with_a_broken_surface_is_not_searched_again_at_each_row(tmp_path: Path) -> None:
    once = replacing_backwards(tmp_path / "session.v4.jsonl", SOME)
    steps = lines_run(once)
    twice = replacing_backwards(tmp_path / "session.v4.jsonl", 2 * SOME)
    assert lines_run(twice) < 2.5 * steps
