from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from fakes.claude_records import Log
from sessionref_server.adapters.sessions.formats.claude_code.head import ClaudeHeadFold
from sessionref_server.adapters.sessions.formats.claude_code.surface import ClaudeSurfaceFold
from sessionref_server.adapters.sessions.json_line import parse_json_line
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.domain.session import SessionStatus

LOGS = Path(__file__).parent.parent / "logs" / "claude"
CASES = 500
SILENT = {SessionStatus.EMPTY, SessionStatus.DAMAGED, SessionStatus.NOT_A_SESSION}


def made_log() -> bytes:
    log = Log().user("u1", "t-first").assistant("a1", "t-one", "m1").tool_use("x1", "m1").assistant("a2", "t-two", "m1")
    log.tool_result("r1", parentUuid="x1").assistant("a3", "t-three").user("s1", "t-task", isSidechain=True, parentUuid=None)
    log.user("u2", "t-dead", parentUuid="a3").user("u3", "t-live", parentUuid="a3").assistant("a4", "t-four")
    segment = {"headUuid": "u3", "anchorUuid": "c", "tailUuid": "a4"}
    log.add(
        "system",
        "b",
        subtype="compact_boundary",
        parentUuid=None,
        logicalParentUuid="a4",
        compactMetadata={"preservedSegment": segment},
    )
    log.user("c", "t-summary", isCompactSummary=True).add(
        "attachment", "q", attachment={"type": "queued_command", "prompt": "t-queued"}
    )
    log.assistant("a5", "t-five", supersedesUuids=["a4"]).meta("summary", summary="t-title", leafUuid="a3").user("u4", "t-last")
    return b"\n".join(log.lines) + b"\n"


def sources() -> list[bytes]:
    small = (path.read_bytes() for path in sorted(LOGS.glob("*.jsonl")) if path.stat().st_size < 10_000)
    return [data for data in (made_log(), *small) if data]


def spoil(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    for _ in range(chance.randint(0, 4)):
        action = chance.choice(["flip", "shuffle", "repeat", "drop", "splice", "relink"])
        at = chance.randrange(len(lines))
        if action == "shuffle":
            chance.shuffle(lines)
        elif action == "repeat":
            lines.insert(chance.randrange(len(lines) + 1), lines[at])
        elif action == "drop" and len(lines) > 1:
            del lines[at]
        elif action == "splice":
            lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)] + chance.choice(lines)
        elif action == "relink":
            ids = [b'"u1"', b'"a1"', b'"a2"', b'"a3"', b'"u3"', b'"c"', b'"b"', b"null"]
            lines[at] = lines[at].replace(chance.choice(ids), chance.choice(ids))
        elif lines[at]:
            spot = chance.randrange(len(lines[at]))
            lines[at] = lines[at][:spot] + bytes([chance.randrange(256)]) + lines[at][spot + 1 :]
    data = b"\n".join(lines)
    return data[: chance.randrange(len(data) + 1)] if chance.random() < 0.2 else data


def texts_in(value: object) -> Counter[str]:
    """Every string of a record, however deep."""
    if isinstance(value, str):
        return Counter([value])
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum((texts_in(item) for item in items), Counter[str]())


@pytest.mark.parametrize("block", range(10))
def test_spoilt_log_is_read_to_its_end_with_every_text_at_most_as_often_as_it_has_it(block: int) -> None:
    originals = sources()
    for case in range(block * CASES // 10, (block + 1) * CASES // 10):
        chance = random.Random(case)
        data = spoil(chance.choice(originals), chance)
        *lines, tail = data.split(b"\n")
        surface_fold = ClaudeSurfaceFold("s", is_subagent=chance.random() < 0.2)
        head_fold = ClaudeHeadFold("s", None, is_subagent=False)
        for line in lines:
            surface_fold.feed(line)
            head_fold.feed(line)
        surface = surface_fold.surface(LogEnd(tail=tail))
        head_fold.head(LogEnd(tail=tail))
        assert surface == surface_fold.surface(LogEnd(tail=tail)), case
        written = sum((texts_in(parse_json_line(line)) for line in (*lines, tail)), Counter[str]())
        shown = Counter(part for message in surface.messages for part in message.text.split("\n"))
        written_parts = Counter[str]()
        for text, count in written.items():
            written_parts.update({part: count * text.split("\n").count(part) for part in text.split("\n")})
        assert not shown - written_parts, case
        assert (surface.messages == []) == (surface.reading.status in SILENT), case
