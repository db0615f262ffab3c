"""ECMAScript's character classes, which the mention grammars are defined in and which differ from Python's."""

from __future__ import annotations

from typing import Final

WHITE_SPACE: Final = frozenset(
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
r"""What ``\s`` matches: U+FEFF is in it; U+0085 and U+001C to U+001F, which Python counts, are not."""

LINE_TERMINATORS: Final = frozenset("\n\r\u2028\u2029")
"""What ``.`` does not match."""

_NEAR_CHARACTERS: Final = 24
_CHUNK_CHARACTERS: Final = 256
"""What is near is looked at character by character; further on, a set held against a chunk at a time is quicker."""


def find_any(text: str, stops: frozenset[str], start: int) -> int:
    """Position of the first character at or after ``start`` that is in ``stops``; the text's length when there is none."""
    position = start
    for character in text[start : start + _NEAR_CHARACTERS]:
        if character in stops:
            return position
        position += 1
    while stops.isdisjoint(chunk := text[position : position + _CHUNK_CHARACTERS]):
        if not chunk:
            return len(text)
        position += len(chunk)
    return position + next(offset for offset, character in enumerate(chunk) if character in stops)


def find_other(text: str, allowed: frozenset[str], start: int) -> int:
    """Position of the first character at or after ``start`` that is not in ``allowed``; the text's length when there is none."""
    position = start
    for character in text[start : start + _NEAR_CHARACTERS]:
        if character not in allowed:
            return position
        position += 1
    while allowed.issuperset(chunk := text[position : position + _CHUNK_CHARACTERS]):
        if not chunk:
            return len(text)
        position += len(chunk)
    return position + next(offset for offset, character in enumerate(chunk) if character not in allowed)


def find_last_any(text: str, stops: frozenset[str]) -> int:
    """Position of the last character that is in ``stops``; -1 when there is none."""
    end = len(text)
    while stops.isdisjoint(chunk := text[max(0, end - _CHUNK_CHARACTERS) : end]):
        if not chunk:
            return -1
        end -= len(chunk)
    return end - 1 - next(offset for offset, character in enumerate(reversed(chunk)) if character in stops)


def utf16_prefix(text: str, units: int) -> str:
    """The first ``units`` UTF-16 code units of ``text``; half a character at the end is left out. Negative counts as 0."""
    if units <= 0:
        return ""
    head = text[:units]
    if head.isascii():
        return head
    return head.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore")
