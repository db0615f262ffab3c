"""What a client sees of a failed call, all of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Awaitable
from dataclasses import dataclass, field

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

DETAILS_KEY = "grpc-status-details-bin"
REQUEST_ID_KEY = "x-request-id"
_MAX_DETAILS_BYTES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    code: grpc.StatusCode
    reason: str
    metadata: dict[str, str]
    fields: list[str] = field(default_factory=list[str])
    """Fields named by BadRequest."""
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A failure with everything around it."""

    failure: Failure
    message: str
    details: bytes
    request_id: str


async def failure_of(call: Awaitable[object] | AsyncIterable[object]) -> Failure:
    return (await refusal_of(call)).failure


async def refusal_of(call: Awaitable[object] | AsyncIterable[object]) -> Refusal:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await _finished(call)
    error = caught.value
    trailing = dict(error.trailing_metadata() or ())
    details = trailing[DETAILS_KEY]
    assert isinstance(details, bytes)
    status = Status.FromString(details)
    assert (status.code, status.message) == (error.code().value[0], error.details())
    assert len(details) <= _MAX_DETAILS_BYTES
    assert re.fullmatch(r"[ -~]*", status.message)
    return Refusal(
        failure=failure_in(status),
        message=status.message,
        details=details,
        request_id=str(trailing[REQUEST_ID_KEY]),
    )


def failure_in(status: Status) -> Failure:
    """Read a status that a call failed with, or that a batch carries."""
    info, bad_request, retry = ErrorInfo(), BadRequest(), RetryInfo()
    found = {type(detail) for detail in (info, bad_request, retry) for packed in status.details if packed.Unpack(detail)}
    assert len(found) == len(status.details)
    assert info.domain == "sessionref.v1"
    return Failure(
        code=next(code for code in grpc.StatusCode if code.value[0] == status.code),
        reason=info.reason,
        metadata=dict(info.metadata),
        fields=[violation.field for violation in bad_request.field_violations],
        retry_after_ms=retry.retry_delay.ToMilliseconds() if RetryInfo in found else None,
    )


async def _finished(call: Awaitable[object] | AsyncIterable[object]) -> None:
    if isinstance(call, AsyncIterable):
        async for _ in call:
            pass
    else:
        await call
