"""Text of others on a terminal: nothing in it may move the cursor, change colours, or reorder what a person reads."""

from __future__ import annotations

from typing import Final

_BIDIRECTIONAL: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_LINE_SEPARATORS: Final = (0x2028, 0x2029)
_CONTROLS: Final = (*range(0x20), *range(0x7F, 0xA0), *_BIDIRECTIONAL, *_LINE_SEPARATORS)
_FIRST_TWO_BYTE: Final = 0x100

_ONE_LINE: Final = {code: f"\\x{code:02x}" if code < _FIRST_TWO_BYTE else f"\\u{code:04x}" for code in _CONTROLS}
_MANY_LINES: Final = {code: shown for code, shown in _ONE_LINE.items() if chr(code) not in "\n\t"}
_IN_JSON: Final = {code: f"\\u{code:04x}" for code in _CONTROLS if chr(code) not in "\n\t"}


def visible(text: str, *, keep_lines: bool = False) -> str:
    r"""The text with control, C1, bidirectional and lone surrogate characters as visible escapes such as ``\x1b``.

    ``keep_lines`` leaves line feeds and tabs as they are.
    """
    shown = text.translate(_MANY_LINES if keep_lines else _ONE_LINE)
    return shown.encode("utf-8", "backslashreplace").decode("utf-8")


def visible_json(document: str) -> str:
    r"""A JSON document with the same characters as ``\uXXXX``. They only occur inside strings, so its value stays the same."""
    return document.translate(_IN_JSON)
