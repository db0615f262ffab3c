"""Labels and titles are somebody else's text that ends up in front of a person: one clean line, whatever was recorded."""

from __future__ import annotations

import unicodedata
from typing import Final

from sessionref_server.domain.limits import MAX_LABEL_CHARACTERS

LABEL_RULES: Final = 1
"""Version of what is done to a recorded label before it is shown; a change makes labels void that were kept from earlier runs."""

_ELLIPSIS: Final = "…"
_READ_PER_SHOWN_CHARACTER: Final = 64
"""How many recorded characters are looked at for each one shown; the rest of a hostile title is not worth the time."""

_ESCAPE: Final = "\x1b"
_CSI: Final = "\x9b"
_BELL: Final = "\x07"
_STRING_TERMINATOR: Final = "\x9c"
_SEVEN_BIT_STRINGS: Final = frozenset("]PX^_")
_EIGHT_BIT_STRINGS: Final = frozenset("\x9d\x90\x98\x9e\x9f")
_CSI_PARAMETERS: Final = frozenset(map(chr, range(0x30, 0x40)))
_INTERMEDIATES: Final = frozenset(map(chr, range(0x20, 0x30)))
_DROPPED_CATEGORIES: Final = frozenset({"Cc", "Cf"})


def clean_label(text: str, limit: int = MAX_LABEL_CHARACTERS) -> str:
    """Make a label one clean line.

    Terminal control sequences go as a whole where they can be told apart (CSI, OSC and the other string sequences, character set
    selection). White space and line breaks of every kind fold into one blank, trimmed at both ends. Control and format
    characters go, bidirectional ones and joiners among them: a family emoji falls apart into its members, but no invisible
    character is left. A lone surrogate becomes U+FFFD. What is longer than ``limit`` code points is cut and ends in an ellipsis
    within the limit.

    Cleaning a clean label changes nothing. Time is linear in the label, and bounded.
    """
    if text.isprintable() and "  " not in text and len(text) <= limit:
        return text.strip(" ")
    return _fold(text, limit)


def _fold(text: str, limit: int) -> str:
    read = text[: limit * _READ_PER_SHOWN_CHARACTER]
    kept: list[str] = []
    blank = False
    position = 0
    while position < len(read) and len(kept) <= limit:
        character = read[position]
        if character.isspace():
            blank, position = True, position + 1
            continue
        shown, position = _read(read, position)
        if shown:
            if blank and kept:
                kept.append(" ")
            blank = False
            kept.append(shown)
    label = "".join(kept)
    return label if len(label) <= limit and len(read) == len(text) else _cut(label, limit)


def _cut(label: str, limit: int) -> str:
    return label[: limit - 1].rstrip(" ") + _ELLIPSIS if limit > 0 else ""


def _read(text: str, position: int) -> tuple[str, int]:
    """What is shown for the character or control sequence at ``position``, and where the next one starts."""
    character = text[position]
    if character == _ESCAPE:
        return "", _after_escape(text, position + 1)
    if character == _CSI:
        return "", _after_csi(text, position + 1)
    if character in _EIGHT_BIT_STRINGS:
        return "", _after_string(text, position + 1)
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd", position + 1
    return "" if category in _DROPPED_CATEGORIES else character, position + 1


def _after_escape(text: str, position: int) -> int:
    """Where text goes on after ESC; at ``position`` itself when what follows is no sequence that can be told from text."""
    kind = text[position : position + 1]
    if kind == "[":
        return _after_csi(text, position + 1, otherwise=position)
    if kind and kind in _SEVEN_BIT_STRINGS:
        return _after_string(text, position + 1, otherwise=position)
    after = _skip(text, position, _INTERMEDIATES)
    if after > position and kind != " " and "0" <= text[after : after + 1] <= "~":
        return after + 1
    return position


def _after_csi(text: str, position: int, otherwise: int | None = None) -> int:
    """Parameters, intermediates and one final character. A sequence cut off by the end of the text goes as well."""
    after = _skip(text, _skip(text, position, _CSI_PARAMETERS), _INTERMEDIATES)
    if after == len(text) or "@" <= text[after] <= "~":
        return min(after + 1, len(text))
    return position if otherwise is None else otherwise


def _after_string(text: str, position: int, otherwise: int | None = None) -> int:
    """A string sequence ends at BEL or ST. Any other control character means that it is none; so no text is read twice."""
    after = position
    while after < len(text) and unicodedata.category(text[after]) != "Cc":
        after += 1
    if text.startswith((_BELL, _STRING_TERMINATOR), after):
        return after + 1
    if text.startswith(_ESCAPE + "\\", after):
        return after + 2
    return position if otherwise is None else otherwise


def _skip(text: str, position: int, characters: frozenset[str]) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position
