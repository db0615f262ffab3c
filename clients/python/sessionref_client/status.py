"""From a gRPC failure to a typed error: the one place that reads status details."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from google.protobuf.message import DecodeError, Message
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from sessionref_client.errors import CANCELLED_REASON, Failure, SessionReferenceError, error_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    import grpc

ERROR_DOMAIN = "sessionref.v1"
REQUEST_ID_KEY = "x-request-id"
_DETAILS_KEY = "grpc-status-details-bin"
_DetailMessage = TypeVar("_DetailMessage", bound=Message)


class _FailedCall(Protocol):
    """What the errors of ``grpc`` and of ``grpc.aio`` have in common."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


def error_from_call(raised: grpc.RpcError, address: str) -> SessionReferenceError:
    """The typed error for what gRPC raised while calling the server at an address."""
    call = cast("_FailedCall", raised)
    trailers = dict(iter(call.trailing_metadata() or ()))
    request_id = trailers.get(REQUEST_ID_KEY)
    plain = Failure(
        code=call.code().name,
        message=call.details() or "",
        request_id=request_id if isinstance(request_id, str) else None,
    )
    failure = _with_details(plain, _status_in(trailers.get(_DETAILS_KEY, b"")))
    return error_for(failure if failure.reason else _without_reason(failure, address))


def error_from_status(status: Status) -> SessionReferenceError:
    """The typed error for a failure reported inside an answer."""
    known = status.code in Code.values()
    plain = Failure(code=Code.Name(status.code) if known else "UNKNOWN", message=status.message)
    return error_for(_with_details(plain, status))


def _status_in(trailer: str | bytes) -> Status:
    try:
        return Status.FromString(trailer) if isinstance(trailer, bytes) else Status()
    except DecodeError:  # whatever it is, the server did not write it
        return Status()


def _with_details(failure: Failure, status: Status) -> Failure:
    info = _detail(status, ErrorInfo)
    if info is None or info.domain != ERROR_DOMAIN:
        return failure
    retry = _detail(status, RetryInfo)
    return replace(
        failure,
        reason=info.reason,
        metadata=dict(info.metadata),
        retry_after_seconds=None if retry is None else retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9,
        request_id=failure.request_id or info.metadata.get("request_id"),
    )


def _detail(status: Status, kind: type[_DetailMessage]) -> _DetailMessage | None:
    for detail in status.details:
        if detail.TypeName() == kind.DESCRIPTOR.full_name:
            try:
                return kind.FromString(detail.value)
            except DecodeError:
                return None
    return None


def _without_reason(failure: Failure, address: str) -> Failure:
    """Failures made by gRPC itself: the caller's own cancel or deadline, and a server that is not there."""
    if failure.code in {"CANCELLED", "DEADLINE_EXCEEDED"}:
        return replace(failure, reason=CANCELLED_REASON)
    if failure.code == "UNAVAILABLE":
        return replace(failure, message=f"is `sessionref serve` running? No answer from address {address} ({failure.message})")
    return replace(failure, message=f"{failure.message} (address {address})")
