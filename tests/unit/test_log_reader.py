from __future__ import annotations

import os
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from sessionref_server.adapters.sessions.log_format import LogEnd
from sessionref_server.adapters.sessions.log_reader import (
    FoldReader,
    LogGoneError,
    NotARegularFileError,
    ReadCancelledError,
    ReadLimits,
    StaleFoldError,
)
from unit.log_reader_rig import Heads, Lines, SkippingLines, append, read


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def test_lines_end_at_line_feeds_only(plain: Path) -> None:
    plain.write_bytes("a\u2028b\x0b\x0c\x1c\x85\n{}\r\n{ }\r\r\n".encode())
    assert ["a\u2028b\x0b\x0c\x1c\x85".encode(), b"{}", b"{ }\r"] == read(plain)[0]


def test_blank_lines_are_skipped(plain: Path) -> None:
    plain.write_bytes(b"\n\n{}\n  \n\t\r\n{ }\n\n")
    assert (read(plain)[0], read(plain)[1].tail) == ([b"{}", b"{ }"], b"")


def test_empty_log_feeds_nothing(plain: Path) -> None:
    plain.write_bytes(b"")
    assert ([], LogEnd()) == read(plain)


def test_bytes_after_the_last_newline_are_the_tail(plain: Path) -> None:
    plain.write_bytes(b'{}\n{"a"')
    assert ([b"{}"], LogEnd(tail=b'{"a"')) == read(plain)


def test_blank_tail_is_no_tail(plain: Path) -> None:
    plain.write_bytes(b"{}\n  \t")
    assert ([b"{}"], LogEnd()) == read(plain)


def test_nul_run_after_a_record_counts_one_line_and_keeps_the_record(plain: Path) -> None:
    plain.write_bytes(b'{"a":1}' + b"\0" * 4096 + b'\n{"b":2}\n' + b"\0" * 8192)
    lines, end = read(plain)
    assert lines == [b'{"a":1}', b'{"b":2}']
    assert (1, {0}) == (end.skipped_lines, set(end.tail))
    assert len(end.tail) < 100


def test_records_on_both_sides_of_a_nul_run_are_kept(plain: Path) -> None:
    plain.write_bytes(b'{"a":1}\0\0{"b":2}\0{"c\n')
    lines, end = read(plain)
    assert (lines, end.skipped_lines) == ([b'{"a":1}', b'{"b":2}'], 1)


def test_line_of_nul_bytes_is_told_to_a_fold_that_wants_to_know(plain: Path) -> None:
    plain.write_bytes(b"{}\n\0\0\0\n{ }\n")
    fold = SkippingLines()
    FoldReader(str(plain), fold, is_head=False).read()
    assert fold.seen == [b"{}", b"(skipped)", b"{ }"]


@pytest.mark.parametrize("length", [101, 5000, 600_000])
def test_line_over_the_cap_is_skipped_and_counted(plain: Path, length: int) -> None:
    plain.write_bytes(b"{}\n" + b"x" * length + b"\n{ }\n")
    lines, end = read(plain, ReadLimits(line_bytes=100))
    assert (lines, end.skipped_lines) == ([b"{}", b"{ }"], 1)


def test_unfinished_line_over_the_cap_leaves_a_short_tail(plain: Path) -> None:
    plain.write_bytes(b"{}\n" + b"x" * 600_000)
    lines, end = read(plain, ReadLimits(line_bytes=1000))
    assert (lines, end.skipped_lines, end.tail) == ([b"{}"], 0, b"x" * 64)


@pytest.mark.parametrize("is_head", [False, True])
def test_memory_is_bounded_by_the_cap_whatever_the_line_is_long(plain: Path, *, is_head: bool) -> None:
    with plain.open("wb") as file:
        file.write(b"{}\n")
        for _ in range(32):
            file.write(b"x" * (1 << 20))
        file.write(b"\n{}\n")
    fold = Heads()
    tracemalloc.start()
    end = FoldReader(str(plain), fold, is_head=is_head, limits=ReadLimits(line_bytes=1 << 20)).read()
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (fold.seen, end.skipped_lines) == ([b"{}", b"{}"], 1)
    assert peak_bytes < 8 << 20


def test_growth_feeds_only_what_is_new(plain: Path) -> None:
    plain.write_bytes(b'{"a":1}\n{"b"')
    fold = Lines()
    reader = FoldReader(str(plain), fold, is_head=False)
    first = reader.read()
    append(plain, b':2}\n{"c":3}\n')
    second = reader.read()
    assert (first.tail, second.tail) == (b'{"b"', b"")
    assert fold.seen == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


def test_unchanged_log_is_not_read_again(plain: Path) -> None:
    plain.write_bytes(b'{"a":1}\n')
    fold = Lines()
    reader = FoldReader(str(plain), fold, is_head=False)
    assert reader.read() is reader.read()
    assert fold.seen == [b'{"a":1}']


def test_identity_is_what_stat_tells(plain: Path) -> None:
    plain.write_bytes(b"{}\n")
    reader = FoldReader(str(plain), Lines(), is_head=False)
    assert reader.identity is None
    reader.read()
    found = plain.stat()
    assert reader.identity == (found.st_dev, found.st_ino, 3, found.st_mtime_ns)


def cut(path: Path) -> None:
    os.truncate(path, 4)


def rewrite_longer(path: Path) -> None:
    path.write_bytes(b'{"z":1}\n{"b":2}\n{"c":3}\n')


def rewrite_same_size(path: Path) -> None:
    path.write_bytes(b'{"a":1}\n{"z":2}\n')
    os.utime(path, ns=(1, 1))


def replace_file(path: Path) -> None:
    fresh = path.with_name("fresh")
    fresh.write_bytes(b'{"a":1}\n{"b":2}\n{"c":3}\n')
    fresh.replace(path)


@pytest.mark.parametrize("change", [cut, rewrite_longer, rewrite_same_size, replace_file], ids=lambda change: change.__name__)
def test_log_that_changed_other_than_by_growing_is_stale(plain: Path, change: Callable[[Path], None]) -> None:
    plain.write_bytes(b'{"a":1}\n{"b":2}\n')
    reader = FoldReader(str(plain), Lines(), is_head=False)
    reader.read()
    change(plain)
    with pytest.raises(StaleFoldError):
        reader.read()


def test_what_is_appended_while_reading_is_read_too(plain: Path) -> None:
    plain.write_bytes(b'{"a":1}\n')

    class Appending(Lines):
        def feed(self, line: bytes) -> None:
            super().feed(line)
            if len(self.seen) == 1:
                append(plain, b'{"b":2}\n')

    fold = Appending()
    FoldReader(str(plain), fold, is_head=False).read()
    assert fold.seen == [b'{"a":1}', b'{"b":2}']


def test_log_that_grows_for_ever_is_read_to_some_whole_line(plain: Path) -> None:
    plain.write_bytes(b"{}\n")

    class Endless(Lines):
        def feed(self, line: bytes) -> None:
            super().feed(line)
            append(plain, b"{}\n")

    fold = Endless()
    end = FoldReader(str(plain), fold, is_head=False).read()
    assert (b"", {b"{}"}) == (end.tail, set(fold.seen))


def test_cancelled_read_stops_and_its_reader_is_spent(plain: Path) -> None:
    plain.write_bytes(b"{}\n" * 400_000)
    fold = Lines()
    reader = FoldReader(str(plain), fold, is_head=False, is_cancelled=lambda: len(fold.seen) > 0)
    with pytest.raises(ReadCancelledError):
        reader.read()
    assert len(fold.seen) < 400_000
    reader.is_cancelled = lambda: False
    with pytest.raises(StaleFoldError):
        reader.read()


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    path.with_name("target").write_bytes(b"{}\n")
    path.symlink_to("target")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("make", [make_fifo, make_link, make_socket, Path.mkdir], ids=lambda make: make.__name__)
def test_what_is_no_regular_file_is_refused_at_once(plain: Path, make: Callable[[Path], None]) -> None:
    make(plain)
    with pytest.raises(NotARegularFileError):
        FoldReader(str(plain), Lines(), is_head=False).read()


def test_missing_log_is_told_as_gone(plain: Path) -> None:
    with pytest.raises(LogGoneError):
        FoldReader(str(plain), Lines(), is_head=False).read()
