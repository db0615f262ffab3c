from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from fakes.codex_records import Rollout, log_file, message
from sessionref_server.adapters.sessions.formats.codex.head import CodexHeadFold
from sessionref_server.adapters.sessions.formats.codex.surface import CodexSurfaceFold
from sessionref_server.adapters.sessions.json_line import parse_json_line
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.domain.session import SessionStatus

LOGS = Path(__file__).parent.parent / "logs" / "codex"
CASES = 500
SILENT = {SessionStatus.EMPTY, SessionStatus.DAMAGED, SessionStatus.NOT_A_SESSION, SessionStatus.PARTIAL}


def made_log() -> list[bytes]:
    rollout = Rollout().meta(history_base={"thread_id": "base"}).add("turn_context", {"cwd": "/w", "model": "m"})
    rollout.item("user", "<environment_context>\n<cwd>/w</cwd>").exchange("t-one", "t-two").exchange("t-three", "t-four")
    rollout.add("response_item", {"type": "function_call_output", "call_id": "c", "output": "t-tool"}).event(
        "token_count", info=None
    )
    rollout.add(
        "compacted",
        {
            "message": "t-sum",
            "replacement_history": [message("user", "t-kept"), message("user", "t-sum"), {"type": "compaction"}],
        },
    )
    rollout.exchange("t-five", "t-six").event("thread_rolled_back", num_turns=1).completed("Plan", text="t-plan")
    return (
        rollout.completed("AgentMessage", content=[{"type": "Text", "text": "t-seven"}])
        .add("compacted", {"message": "t-late"})
        .lines
    )


def sources() -> list[list[bytes]]:
    return [made_log(), *(path.read_bytes().splitlines() for path in sorted(LOGS.rglob("*.jsonl")))]


def spoil(lines: list[bytes], chance: random.Random) -> list[bytes]:
    lines = list(lines)
    for _ in range(chance.randint(0, 5)):
        action, at = chance.choice(["flip", "shuffle", "repeat", "drop", "splice", "retype"]), chance.randrange(len(lines))
        if action == "shuffle":
            chance.shuffle(lines)
        elif action == "repeat":
            lines.insert(chance.randrange(len(lines) + 1), lines[at])
        elif action == "drop" and len(lines) > 1:
            del lines[at]
        elif action == "splice":
            lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)] + chance.choice(lines)
        elif action == "retype":
            values = [b"[]", b"{}", b"null", b"7", b'"x"', b"true"]
            lines[at] = lines[at].replace(
                chance.choice([b'"message"', b'"user"', b'"event_msg"', b"1"]), chance.choice(values), 1
            )
        elif lines[at]:
            spot = chance.randrange(len(lines[at]))
            lines[at] = lines[at][:spot] + bytes([chance.randrange(256)]) + lines[at][spot + 1 :]
    return lines


@pytest.mark.parametrize("block", range(10))
def test_spoilt_log_is_read_to_its_end_and_shows_no_more_than_it_has(block: int) -> None:
    originals = sources()
    for case in range(block * CASES // 10, (block + 1) * CASES // 10):
        chance = random.Random(case)
        *lines, tail = spoil(chance.choice(originals), chance)
        file = log_file(size=chance.choice([10, 10**7]))
        surface_fold, head_fold = CodexSurfaceFold(file), CodexHeadFold(file)
        for line in lines:
            surface_fold.feed(line)
            head_fold.feed(line)
            if chance.random() < 0.1:
                surface_fold.surface(LogEnd(tail=tail))
                head_fold.head(LogEnd(tail=tail))
        surface = surface_fold.surface(LogEnd(tail=tail))
        head = head_fold.head(LogEnd(tail=tail))
        assert (surface, head) == (surface_fold.surface(LogEnd(tail=tail)), head_fold.head(LogEnd(tail=tail))), case
        told = b"\n".join((*lines, tail))
        shown = Counter(said.text for said in surface.messages if said.text.startswith("t-"))
        assert all(told.count(text.encode()) >= count for text, count in shown.items()), case
        assert surface.messages or surface.reading.status in SILENT, case


@pytest.mark.parametrize("lines", sources())
def test_line_known_from_its_beginning_reads_as_a_parsed_one(lines: list[bytes]) -> None:
    skimmed, parsed = CodexSurfaceFold(log_file()), CodexSurfaceFold(log_file())
    for line in lines:
        skimmed.feed(line)
        # With white space after its separators no line begins as Codex writes it.
        fields = parse_json_line(line)
        parsed.feed(line if fields is None else json.dumps(fields).encode())
    assert skimmed.surface(LogEnd()) == parsed.surface(LogEnd())
