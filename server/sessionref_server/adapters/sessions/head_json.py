"""A native head as JSON: how it travels from a worker process and how it lies in the cache, written once and read once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import orjson

from sessionref_server.adapters.sessions.log_format import NativeHead
from sessionref_server.domain.limits import MAX_SAFE_INTEGER
from sessionref_server.domain.session import ModelRoute, SessionStatus

MAX_RAW_TITLE_CHARACTERS = 13_000
"""A title is shown with at most 200 characters; what white space and control characters may take away is in the margin."""
MAX_PATH_CHARACTERS = 16_384
MAX_ROUTE_CHARACTERS = 512

_FIELD_TYPES: dict[str, type] = {
    "native_id": str,
    "title": str,
    "subagent_label": str,
    "cwd": str,
    "created_at_ms": int,
    "updated_at_ms": int,
    "parent_native_id": str,
    "is_subagent": bool,
    "status_detail": str,
}
_OPTIONAL_FIELDS = ("title", "subagent_label", "cwd", "created_at_ms", "updated_at_ms", "parent_native_id")


def encode_head(head: NativeHead) -> bytes:
    """Compact JSON of a bounded head; fields at their default are left out."""
    document: dict[str, Any] = {name: value for name in _OPTIONAL_FIELDS if (value := getattr(head, name)) is not None}
    document["native_id"] = head.native_id
    if head.is_subagent:
        document["is_subagent"] = True
    if head.route is not None:
        document["route"] = [head.route.provider, head.route.model]
    if head.status is not SessionStatus.OK:
        document["status"] = head.status.value
        document["status_detail"] = head.status_detail
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:  # a lone surrogate
        return json.dumps(document, separators=(",", ":")).encode()


def decode_head(document: bytes) -> NativeHead:
    """The head again. Raises ValueError when the bytes are not what ``encode_head`` writes."""
    try:
        fields: Any = orjson.loads(document)
    except orjson.JSONDecodeError:
        fields = _decode_slowly(document)
    if type(fields) is not dict or "native_id" not in fields:
        raise ValueError("no head")
    known = cast("dict[str, Any]", fields)
    route, status = known.pop("route", None), known.pop("status", None)
    for name, value in known.items():
        if type(value) is not _FIELD_TYPES.get(name):
            raise ValueError("no head")
    if route is not None:
        known["route"] = _decode_route(route)
    if status is not None:
        known["status"] = SessionStatus(status)
    return NativeHead(**known)


def _decode_slowly(document: bytes) -> object:
    try:
        return json.loads(document)
    except RecursionError as error:
        raise ValueError("no head") from error


def _decode_route(route: Any) -> ModelRoute:  # noqa: ANN401 - any JSON value
    match route:
        case [(str() | None) as provider, (str() | None) as model]:
            return ModelRoute(provider=provider, model=model)
        case _:
            raise ValueError("no head")


def bounded_head(head: NativeHead) -> NativeHead:
    """The head without what only a hostile log holds: titles of megabytes, paths no system accepts, times no clock shows."""
    return replace(
        head,
        title=_cut(head.title),
        subagent_label=_cut(head.subagent_label),
        cwd=head.cwd if head.cwd is None or len(head.cwd) <= MAX_PATH_CHARACTERS else None,
        created_at_ms=_bounded_time(head.created_at_ms),
        updated_at_ms=_bounded_time(head.updated_at_ms),
        route=_bounded_route(head.route),
        status_detail=head.status_detail[:MAX_ROUTE_CHARACTERS],
    )


def _cut(title: str | None) -> str | None:
    return title if title is None else title[:MAX_RAW_TITLE_CHARACTERS]


def _bounded_time(time_ms: int | None) -> int | None:
    return time_ms if time_ms is not None and abs(time_ms) <= MAX_SAFE_INTEGER else None


def _bounded_route(route: ModelRoute | None) -> ModelRoute | None:
    if route is None or max(len(route.provider or ""), len(route.model or "")) <= MAX_ROUTE_CHARACTERS:
        return route
    return None
