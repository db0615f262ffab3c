from __future__ import annotations

from pathlib import Path

import pytest
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.adapters.sessions.log_reader import (
    FoldReader,
    StaleFoldError,
)
from unit.log_reader_rig import Lines, append, frame, read


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl.zstd"


def test_frames_are_read_one_after_the_other_and_their_ends_counted(packed: Path) -> None:
    packed.write_bytes(frame(b"{}\n") + frame(b'{"a":1}\n{"b":2}\n') + frame(b'{"c":3}\n'))
    lines, end = read(packed)
    assert lines == [b"{}", b'{"a":1}', b'{"b":2}', b'{"c":3}']
    assert LogEnd(frame_ends=(1, 3)) == end


def test_growth_of_frames_feeds_only_the_new_ones(packed: Path) -> None:
    packed.write_bytes(frame(b'{"a":1}\n'))
    fold = Lines()
    reader = FoldReader(str(packed), fold, is_head=False)
    reader.read()
    append(packed, frame(b'{"b":2}\n'))
    reader.read()
    assert fold.seen == [b'{"a":1}', b'{"b":2}']


def test_torn_frame_that_gave_nothing_is_read_when_it_is_whole(packed: Path) -> None:
    second = frame(b'{"b":2}\n')
    packed.write_bytes(frame(b'{"a":1}\n') + second[:8])
    fold = Lines()
    reader = FoldReader(str(packed), fold, is_head=False)
    assert reader.read().torn_frame
    append(packed, second[8:])
    assert not reader.read().torn_frame
    assert fold.seen == [b'{"a":1}', b'{"b":2}']


def test_lines_recovered_from_a_torn_frame_make_the_fold_stale_when_the_log_grows(packed: Path) -> None:
    second = frame(b'{"b":2}\n{"c')
    packed.write_bytes(frame(b'{"a":1}\n') + second[:-1])
    fold = Lines()
    reader = FoldReader(str(packed), fold, is_head=False)
    end = reader.read()
    assert fold.seen == [b'{"a":1}', b'{"b":2}']
    assert (end.torn_frame, end.recovered_lines, end.tail) == (True, 1, b'{"c')
    append(packed, second[-1:])
    with pytest.raises(StaleFoldError):
        reader.read()


def test_frame_that_ends_inside_a_line_is_told(packed: Path) -> None:
    packed.write_bytes(frame(b'{"a"') + frame(b":1}\n"))
    lines, end = read(packed)
    assert (lines, end.split_frame) == ([b'{"a":1}'], True)


def test_damage_is_told_and_what_came_before_it_was_fed(packed: Path) -> None:
    packed.write_bytes(frame(b'{"a":1}\n') + frame(b'{"b":2}\n')[:-1] + b"\0" + frame(b'{"c":3}\n'))
    lines, end = read(packed)
    assert (lines[0], end.damage) == (b'{"a":1}', "a compressed frame is damaged")
    assert b'{"c":3}' not in lines
