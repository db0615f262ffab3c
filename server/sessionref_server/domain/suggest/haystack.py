"""Many short texts in one buffer of UTF-8, so that one search of the buffer looks at all of them at the speed of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

ENTRY_END = b"\xff"
"""Between entries. UTF-8 never holds this byte, so no needle reaches over an entry's end."""
FIELD_END = b"\xfe"
"""Between the fields of one entry; never in UTF-8 either."""


def folded(text: str) -> bytes:
    """``text`` in the form in which it is searched: lower case, UTF-8."""
    return text.lower().encode("utf-8", "surrogatepass")


def build_haystack(entries: Iterable[bytes]) -> bytes:
    """Join entries; their positions are what ``entries_with`` gives."""
    return ENTRY_END.join(entries)


def entries_with(haystack: bytes, needle: bytes) -> Iterable[int]:
    """Positions of the entries that hold ``needle``, ascending, each once. The needle is not empty."""
    first = haystack.find(needle)
    return () if first < 0 else _entries_from(haystack, needle, first)


def _entries_from(haystack: bytes, needle: bytes, found: int) -> Iterator[int]:
    entry = 0
    counted = 0
    while found >= 0:
        entry += haystack.count(ENTRY_END, counted, found)
        yield entry
        counted = haystack.find(ENTRY_END, found + len(needle))
        if counted < 0:
            return
        found = haystack.find(needle, counted)
