from __future__ import annotations

import io
from dataclasses import replace

import pytest
import zstandard
from sessionref_server.adapters.sessions.zstd_frames import FrameDamageError, FrameLimits, ZstdFrames

LIMITS = FrameLimits(output_bytes=1 << 30, window_bytes=8 << 20, frames=1000)
SKIPPABLE = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes"


def frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def frames_of(data: bytes, limits: FrameLimits = LIMITS, *, allow_skippable: bool = False) -> ZstdFrames:
    return ZstdFrames(io.BytesIO(data).read, limits, allow_skippable=allow_skippable)


def pieces_of(frames: ZstdFrames) -> list[bytes | None]:
    return list(frames.pieces())


def test_every_frame_of_many_is_read_and_its_end_told() -> None:
    assert pieces_of(frames_of(frame(b"one\n") + frame(b"two\n"))) == [b"one\n", None, b"two\n", None]


def test_large_frame_comes_in_bounded_pieces() -> None:
    data = bytes(range(256)) * 20_000
    pieces = pieces_of(frames_of(frame(data)))
    assert data == b"".join(piece for piece in pieces if piece)
    assert max(len(piece) for piece in pieces if piece) <= 512 * 1024


def test_frame_without_checksum_is_read() -> None:
    data = zstandard.ZstdCompressor(write_checksum=False, write_content_size=False).compress(b"x\n")
    assert pieces_of(frames_of(data)) == [b"x\n", None]


@pytest.mark.parametrize("missing_bytes", [1, 4, 5, 9, 13])
def test_incomplete_last_frame_is_torn_and_the_frames_before_it_are_whole(missing_bytes: int) -> None:
    whole = frame(b"one\n")
    frames = frames_of(whole + frame(b"two\n" * 9)[:-missing_bytes])
    pieces = pieces_of(frames)
    assert pieces[:2] == [b"one\n", None]
    assert None not in pieces[2:]
    assert frames.torn
    assert frames.complete_bytes == len(whole)


def test_content_of_a_frame_that_lacks_only_its_checksum_is_recovered() -> None:
    frames = frames_of(frame(b"one\n")[:-1])
    assert pieces_of(frames) == [b"one\n"]
    assert frames.torn


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_than_four_trailing_bytes_are_torn(count: int) -> None:
    frames = frames_of(frame(b"one\n") + b"\x28\xb5\x2f"[:count])
    assert pieces_of(frames) == [b"one\n", None]
    assert frames.torn


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(frame(b"one\n") + b"zzzz", id="bytes that are no frame"),
        pytest.param(frame(b"one\n") + SKIPPABLE, id="skippable frame"),
        pytest.param(frame(b"one\n")[:-1] + b"\0", id="checksum"),
        pytest.param(b"\x28\xb5\x2f\xfd\x1c\x00\x01\x00\x00", id="reserved descriptor bits"),
        pytest.param(b"\x28\xb5\x2f\xfd\x00\x00\x07\x00\x00", id="invalid block type"),
        pytest.param(b"\x28\xb5\x2f\xfd\x00\x00\xfd\xff\xff", id="block too large"),
        pytest.param(b"\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00", id="window too large"),
        pytest.param(b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x01\x00\x00", id="content size too large"),
    ],
)
def test_damaged_container_is_told(damaged: bytes) -> None:
    with pytest.raises(FrameDamageError):
        pieces_of(frames_of(damaged))


def test_skippable_frames_are_passed_over_where_the_format_allows_them() -> None:
    assert pieces_of(frames_of(SKIPPABLE + frame(b"one\n"), allow_skippable=True)) == [b"one\n", None]


def test_skippable_frame_that_is_not_all_there_is_torn() -> None:
    frames = frames_of(SKIPPABLE[:-1], allow_skippable=True)
    assert pieces_of(frames) == []
    assert frames.torn


def test_bomb_ends_soon_after_the_first_32_mebibytes() -> None:
    frames = frames_of(frame(b" " * (256 << 20)))
    with pytest.raises(FrameDamageError, match="bomb"):
        pieces_of(frames)
    assert frames.output_bytes < 33 << 20


def test_one_long_run_of_a_character_is_no_bomb() -> None:
    data = b"y" * (20 << 20)
    assert len(data) == sum(len(piece) for piece in pieces_of(frames_of(frame(data))) if piece)


def test_output_over_the_limit_is_damage() -> None:
    with pytest.raises(FrameDamageError, match="size limit"):
        pieces_of(frames_of(frame(b"a\n" * 600), replace(LIMITS, output_bytes=1000)))


def test_more_frames_than_allowed_are_damage() -> None:
    with pytest.raises(FrameDamageError, match="too many"):
        pieces_of(frames_of(frame(b"a\n") * 4, replace(LIMITS, frames=3)))
