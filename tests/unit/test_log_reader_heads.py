from __future__ import annotations

import re
from pathlib import Path

import pytest
from sessionref_server.adapters.sessions.line_feed import TAIL_BYTES
from sessionref_server.adapters.sessions.log_reader import (
    FoldReader,
)
from sessionref_server.adapters.sessions.marker_search import marker_literals
from unit.log_reader_rig import Heads, append, frame


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def test_head_is_fed_all_lines_until_settled_then_marked_ones_then_the_last_64_kibibytes(plain: Path) -> None:
    noise = [b'{"text":"%d"}' % number for number in range(20_000)]
    marked = [b'{"title":"first"}', b'{"x":1,"name":2}']
    plain.write_bytes(b"\n".join([b"{}", marked[0], *noise[:10_000], marked[1], *noise[10_000:]]) + b"\n")
    fold = Heads()
    FoldReader(str(plain), fold, is_head=True).read()
    assert [b"{}", *marked] == fold.seen[:3]
    tail = fold.seen[3:]
    assert tail == noise[-len(tail) :]
    assert TAIL_BYTES - 20 <= sum(len(line) + 1 for line in tail) <= TAIL_BYTES + 20


@pytest.mark.parametrize("suffix", ["", ".zstd"])
def test_head_of_a_grown_log_is_fed_each_line_at_most_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log.jsonl{suffix}"
    pack = frame if suffix else bytes
    path.write_bytes(pack(b'{}\n{"title":1}\n'))
    fold = Heads()
    reader = FoldReader(str(path), fold, is_head=True)
    reader.read()
    append(path, pack(b'{"title":2}\n' + b'{"x":1}\n' * 30_000))
    reader.read()
    assert fold.seen[:3] == [b"{}", b'{"title":1}', b'{"title":2}']
    assert {b'{"x":1}'} == set(fold.seen[3:])
    assert len(fold.seen) < 30_000


def test_nul_run_in_the_middle_of_a_head_is_counted(plain: Path) -> None:
    noise = b'{"text":"x"}\n' * 20_000
    plain.write_bytes(b"{}\n" + noise + b'{"title":1}\0\0\0\n' + noise)
    fold = Heads()
    end = FoldReader(str(plain), fold, is_head=True).read()
    assert (end.skipped_lines, fold.seen[1]) == (1, b'{"title":1}')


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (rb'"title"', [b'"title"']),
        (rb'"a":"b"|\{"c"|d\-e', [b'"a":"b"', b'{"c"', b"d-e"]),
        (rb"ab?", None),
        (rb"a.c|d", None),
        (rb"[ab]", None),
        (rb"a{2}", None),
        (rb"a\|b", None),
        (rb"\d", None),
        (rb"", None),
    ],
)
def test_marker_is_searched_as_literals_only_when_it_is_made_of_them(pattern: bytes, literals: list[bytes] | None) -> None:
    assert literals == marker_literals(re.compile(pattern))


def test_marker_that_is_no_set_of_literals_works_too(plain: Path) -> None:
    class Patterned(Heads):
        marker = re.compile(rb"ti[t]le")

    plain.write_bytes(b'{}\n{"title":1}\n' + b'{"x":1}\n' * 30_000)
    fold = Patterned()
    FoldReader(str(plain), fold, is_head=True).read()
    assert fold.seen[:2] == [b"{}", b'{"title":1}']
