"""Access to JSON values of unknown shape."""

from __future__ import annotations

from typing import Any, cast


def fields_of(value: object) -> dict[str, Any]:
    """The value itself when it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if type(value) is dict else {}


def items_of(value: object) -> list[object]:
    """The value itself when it is an array, else an empty one."""
    return cast("list[object]", value) if type(value) is list else []
