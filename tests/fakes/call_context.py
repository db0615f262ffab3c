"""The server's side of a call, without a network."""

from __future__ import annotations

from typing import Any, NoReturn

import grpc


class AbortedError(Exception):
    """What gRPC raises when a call is aborted."""


class CallContext:
    def __init__(self, remaining_seconds: float | None) -> None:
        self.written: list[Any] = []
        self.code: grpc.StatusCode | None = None
        self._remaining_seconds = remaining_seconds

    def time_remaining(self) -> float | None:
        return self._remaining_seconds

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return ()

    def set_trailing_metadata(self, metadata: object) -> None:
        del metadata

    async def write(self, message: object) -> None:
        self.written.append(message)

    async def abort(self, code: grpc.StatusCode, details: str, metadata: object) -> NoReturn:
        del details, metadata
        self.code = code
        raise AbortedError
