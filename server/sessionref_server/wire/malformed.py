"""Requests whose bytes are no message: refused by name like any other bad request.

A deserializer that raises ends a call as UNKNOWN with the parser's own words and without details. So it hands on a value that
stands for such bytes, and the guard around each method refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from sessionref_server.domain.errors import InvalidRequestError


class MalformedRequest:
    """Stands for the bytes of a request that are no message of its type."""


MALFORMED = MalformedRequest()


def refuse_malformed(request: object) -> None:
    """Raises InvalidRequestError when the request could not be parsed."""
    if isinstance(request, MalformedRequest):
        raise InvalidRequestError("the request is not a message of its type", field="request")


class TolerantHandlers(grpc.GenericRpcHandler):
    """Other handlers, in which guarded methods are also given requests that cannot be parsed."""

    def __init__(self, inner: grpc.GenericRpcHandler) -> None:
        self._inner = inner
        self._known: dict[str, Any] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - the stubs type handlers by message
        """The handler of a method; ``None`` for one that is not here."""
        handler: Any = self._known.get(handler_call_details.method)
        if handler is None:
            handler = self._inner.service(handler_call_details)
            if handler is not None:
                handler = self._known[handler_call_details.method] = _tolerant(handler)
        return handler


def _tolerant(handler: Any) -> Any:  # noqa: ANN401
    method = handler.unary_unary or handler.unary_stream
    if method is None or not getattr(method, "is_guarded", False):
        return handler
    make = grpc.unary_unary_rpc_method_handler if handler.unary_unary else grpc.unary_stream_rpc_method_handler
    make_any: Any = make
    return make_any(
        method,
        request_deserializer=_tolerantly(handler.request_deserializer),
        response_serializer=handler.response_serializer,
    )


def _tolerantly(deserialize: Callable[[bytes], object]) -> Callable[[bytes], object]:
    def deserialize_or_mark(data: bytes) -> object:
        try:
            return deserialize(data)
        except DecodeError:
            return MALFORMED

    return deserialize_or_mark
