"""Shortens one text to a number of bytes, keeping its head and its tail."""

from __future__ import annotations

from typing import Final

_TOP_TWO_BITS: Final = 0b1100_0000
_CONTINUATION: Final = 0b1000_0000
"""How every byte of a code point but its first begins."""


def shorten(text_utf8: bytes, limit_bytes: int) -> tuple[str, int]:
    """Shorten a text to at most ``limit_bytes``: head, tail, a line break, and a marker that says how many bytes are missing.

    Head and tail are whole code points and about equal; how much of them fits beside the marker is found by bisection over
    ``0..limit_bytes``. Where not even the marker fits, the result is empty.

    Args:
        text_utf8: The whole text as UTF-8, longer than ``limit_bytes``.
        limit_bytes: Most bytes of the result, 0 or more.

    Returns:
        The shortened text, and how many bytes of the original it lacks.
    """
    low, high = 0, limit_bytes
    best: tuple[int, int] | None = None
    while low <= high:
        kept = (low + high) // 2
        head_end, tail_start = _cut_points(text_utf8, kept)
        missing = tail_start - head_end
        if len(text_utf8) - missing + len(_marker(missing)) <= limit_bytes:
            best, low = (head_end, tail_start), kept + 1
        else:
            high = kept - 1
    if best is None:
        return "", len(text_utf8)
    head_end, tail_start = best
    missing = tail_start - head_end
    return (text_utf8[:head_end] + text_utf8[tail_start:] + _marker(missing)).decode(), missing


def _marker(missing_bytes: int) -> bytes:
    return f"\n[… omitted {missing_bytes} UTF-8 bytes …]".encode()


def _cut_points(text_utf8: bytes, kept_bytes: int) -> tuple[int, int]:
    """End of the head and start of the tail that together keep at most ``kept_bytes``, at code point boundaries."""
    head_end = (kept_bytes + 1) // 2
    while head_end > 0 and _inside_code_point(text_utf8, head_end):
        head_end -= 1
    tail_start = len(text_utf8) - kept_bytes // 2
    while _inside_code_point(text_utf8, tail_start):
        tail_start += 1
    return head_end, tail_start


def _inside_code_point(text_utf8: bytes, offset: int) -> bool:
    return offset < len(text_utf8) and text_utf8[offset] & _TOP_TWO_BITS == _CONTINUATION
