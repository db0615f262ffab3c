r"""Compact JSON that cannot spell a tag: ECMAScript's escapes, and every ``<`` as ``\u003c``."""

from __future__ import annotations

import orjson


def tag_safe_json(value: object) -> bytes:
    """Write a value of dicts, lists, strings, integers, booleans and ``None``. Lossless for any JSON reader."""
    return escape_tags(orjson.dumps(value))


def escape_tags(json: bytes) -> bytes:
    """Escape the ``<`` of finished JSON, where it occurs in strings only."""
    return json.replace(b"<", b"\\u003c")
