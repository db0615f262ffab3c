"""Concatenated zstd frames, decompressed piece by piece, so that a torn or damaged frame is never taken for the end of a log.

Ready-made stream readers either stop after the first frame or hide that the last one is incomplete. Here the block headers
are walked first (RFC 8878): where a frame ends, and whether it does, is known from the compressed bytes alone, and the
decompressor is given a few blocks at a time, which bounds what one call can put out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import zstandard

_MAGIC = b"\x28\xb5\x2f\xfd"
_MAGIC_BYTES = len(_MAGIC)
_SKIPPABLE_MAGIC_TAIL = b"\x2a\x4d\x18"
_RESERVED_DESCRIPTOR_BITS = 0x18
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_CHECKSUM_BYTES = 4
_BLOCK_HEADER_BYTES = 3
_BLOCK_BYTES = 128 * 1024
_RLE_BLOCK = 1
_INVALID_BLOCK = 3

_BLOCKS_PER_PIECE = 4
"""Blocks decompressed at once: at most 512 KiB of output."""
_READ_BYTES = 256 * 1024

_BOMB_FROM_BYTES = 32 * 1024 * 1024
_BOMB_RATIO = 1000
"""Past the first 32 MiB of output no honest log is a thousand times larger than its frames; one long run of the same character
stays below."""


class FrameDamageError(Exception):
    """The container is damaged; the message is one sentence of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLimits:
    """What a hostile container may cost."""

    output_bytes: int
    window_bytes: int
    frames: int


class ZstdFrames:
    """Reads frames from ``read(limit_bytes)``, which returns fewer bytes only at the end and then ``b""``."""

    def __init__(self, read: Callable[[int], bytes], limits: FrameLimits, *, allow_skippable: bool) -> None:
        self._read = read
        self._limits = limits
        self._allow_skippable = allow_skippable
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=limits.window_bytes)
        self._buffer = b""
        self._position = 0
        self.torn = False
        """Whether the input ended inside a frame."""
        self.complete_bytes = 0
        """Compressed bytes up to the end of the last complete frame."""
        self.torn_output_bytes = 0
        """Output of the last frame so far."""
        self.frames = 0
        self.input_bytes = 0
        self.output_bytes = 0

    def pieces(self) -> Iterator[bytes | None]:
        """Yield output in order, and ``None`` after each complete frame. Raises FrameDamageError; check ``torn`` at the end."""
        while self._have(1) and not self.torn:
            self.torn_output_bytes = 0
            if not self._have(_MAGIC_BYTES):
                self.torn = True
            elif self._peek(0, _MAGIC_BYTES) == _MAGIC:
                yield from self._frame()
            else:
                self._skip_frame()

    def _frame(self) -> Iterator[bytes | None]:
        self._count_frame()
        header_bytes, checksum_bytes = self._frame_header()
        decompressor = self._decompressor.decompressobj()
        pending, blocks, last = header_bytes, 0, False
        while not self.torn and not last:
            payload_bytes, last = self._block(pending)
            pending += payload_bytes + (checksum_bytes if last else 0)
            blocks += 1
            self.torn = self.torn or not self._have(pending)
            if last or self.torn or blocks == _BLOCKS_PER_PIECE:
                yield self._decompress(decompressor, pending)
                pending, blocks = 0, 0
        if self.torn:
            return
        if not decompressor.eof:
            raise FrameDamageError("a compressed frame is damaged")
        self.complete_bytes = self.input_bytes
        yield None

    def _count_frame(self) -> None:
        self.frames += 1
        if self.frames > self._limits.frames:
            raise FrameDamageError("the log has too many compressed frames")

    def _frame_header(self) -> tuple[int, int]:
        """Sizes in bytes of the header and of the checksum at the end; marks the input torn when the header is not whole."""
        if not self._have(_MAGIC_BYTES + 1):
            self.torn = True
            return 0, 0
        descriptor = self._peek(_MAGIC_BYTES, 1)[0]
        if descriptor & _RESERVED_DESCRIPTOR_BITS:
            raise FrameDamageError("a compressed frame has an invalid header")
        single_segment = bool(descriptor & 0x20)
        size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or int(single_segment)
        header_bytes = _MAGIC_BYTES + 1 + (not single_segment) + _DICTIONARY_ID_BYTES[descriptor & 3] + size_bytes
        if not self._have(header_bytes):
            self.torn = True
            return header_bytes, 0
        if single_segment:
            window_bytes = int.from_bytes(self._peek(header_bytes - size_bytes, size_bytes), "little")
            window_bytes += 256 if size_bytes == 2 else 0  # noqa: PLR2004 - a two-byte content size starts at 256
        else:
            code = self._peek(_MAGIC_BYTES + 1, 1)[0]
            window_bytes = (1 << (10 + (code >> 3))) // 8 * (8 + (code & 7))
        if window_bytes > self._limits.window_bytes:
            raise FrameDamageError("a compressed frame asks for too large a window")
        return header_bytes, _CHECKSUM_BYTES if descriptor & 0x04 else 0

    def _block(self, offset: int) -> tuple[int, bool]:
        """Bytes of the block at ``offset``, its header included, and whether it is the frame's last."""
        if not self._have(offset + _BLOCK_HEADER_BYTES):
            self.torn = True
            return _BLOCK_HEADER_BYTES, False
        header = int.from_bytes(self._peek(offset, _BLOCK_HEADER_BYTES), "little")
        kind, size = header >> 1 & 3, header >> 3
        if kind == _INVALID_BLOCK or size > _BLOCK_BYTES:
            raise FrameDamageError("a compressed frame is damaged")
        return _BLOCK_HEADER_BYTES + (1 if kind == _RLE_BLOCK else size), bool(header & 1)

    def _decompress(self, decompressor: zstandard.ZstdDecompressionObj, count: int) -> bytes:
        data = self._take(count)
        try:
            output = decompressor.decompress(data)
        except zstandard.ZstdError:
            # An incomplete frame is decoded as far as possible; what stops that is part of being incomplete.
            if self.torn:
                return b""
            raise FrameDamageError("a compressed frame is damaged") from None
        self.output_bytes += len(output)
        self.torn_output_bytes += len(output)
        if self.output_bytes > self._limits.output_bytes:
            raise FrameDamageError("the log expands past the size limit")
        if self.output_bytes > _BOMB_FROM_BYTES and self.output_bytes > _BOMB_RATIO * self.input_bytes:
            raise FrameDamageError("the log expands like a decompression bomb")
        return output

    def _skip_frame(self) -> None:
        """Pass over a skippable frame where the format allows one; anything else between frames is damage."""
        skippable = self._allow_skippable and self._peek(1, 3) == _SKIPPABLE_MAGIC_TAIL and self._peek(0, 1)[0] >> 4 == 5  # noqa: PLR2004
        if not skippable:
            raise FrameDamageError("the log holds bytes that are no compressed frame")
        self._count_frame()
        if not self._have(8):
            self.torn = True
            return
        remaining = 8 + int.from_bytes(self._peek(4, 4), "little")
        while remaining and self._have(1):
            remaining -= len(self._take(min(remaining, _READ_BYTES)))
        self.torn = remaining > 0
        if not self.torn:
            self.complete_bytes = self.input_bytes

    def _have(self, count: int) -> bool:
        """Make ``count`` bytes available from the current position on."""
        missing = count - (len(self._buffer) - self._position)
        if missing <= 0:
            return True
        more = self._read(max(missing, _READ_BYTES))
        self._buffer = self._buffer[self._position :] + more
        self._position = 0
        return len(self._buffer) >= count

    def _peek(self, offset: int, count: int) -> bytes:
        start = self._position + offset
        return self._buffer[start : start + count]

    def _take(self, count: int) -> bytes:
        data = self._buffer[self._position : self._position + count]
        self._position += len(data)
        self.input_bytes += len(data)
        return data
