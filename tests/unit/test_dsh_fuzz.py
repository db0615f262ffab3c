from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from sessionref_server.adapters.sessions.formats.dsh.surface import message_of_event
from sessionref_server.adapters.sessions.json_line import parse_json_line
from sessionref_server.domain.session import SessionStatus
from unit.dsh_log_rig import OWN, read


def damaged(content: bytes, other: bytes, chance: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        position = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[position : position + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[position:]
            case 2:
                del data[position : position + chance.randint(1, 400)]
            case _:
                data[position:position] = chance.choice([b"\n", b"\0" * 9, b"{}", b"\n\n{", b"\x28\xb5\x2f\xfd"])
    if chance.randrange(4) == 0:
        data[chance.randrange(len(data) + 1) :] = other[chance.randrange(len(other) + 1) :]
    return bytes(data)


def messages_in(content: bytes) -> int:
    rows = (parse_json_line(line) for line in content.split(b"\n"))
    return sum(message_of_event(parsed) is not None for parsed in rows if parsed)


def packed(content: bytes) -> bytes:
    rows = content.splitlines(keepends=True)
    cuts = [0, 1, *range(4, len(rows), 4), len(rows)]
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    return b"".join(compressor.compress(b"".join(rows[start:end])) for start, end in pairwise(cuts) if start < end)


PARENTS = [
    (OWN / "dsh" / "v3" / "made-resume-system-replace.session.v3.jsonl", "session.v3.jsonl"),
    (OWN / "dsh" / "v4" / "made-compacted.session.v4.jsonl", "session.v4.jsonl"),
]


@pytest.mark.parametrize("seed", range(25))
def test_damaged_logs_never_raise_and_never_show_more_than_was_there(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    contents = [path.read_bytes() for path, _ in PARENTS]
    most = sum(map(messages_in, contents))
    for _ in range(10):
        which = chance.randrange(2)
        for encode, suffix in ((bytes, ""), (packed, ".zstd")):
            data = damaged(encode(contents[which]), encode(contents[1 - which]), chance)
            for name in (PARENTS[which][1], "flat.jsonl"):
                path = tmp_path / f"{name}{suffix}"
                path.write_bytes(data)
                head, surface = read(path)
                assert len(surface.messages) <= most
                assert surface.messages or surface.reading.status not in {SessionStatus.OK, SessionStatus.PARTIAL}
                assert head.status in SessionStatus
