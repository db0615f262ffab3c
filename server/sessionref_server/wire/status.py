"""The one table from failures to what a client sees, and the one function that ends a call with a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode

from sessionref_server.domain import errors

DOMAIN = "sessionref.v1"
DETAILS_KEY = "grpc-status-details-bin"
REQUEST_ID_KEY = "x-request-id"
_MAX_MESSAGE_CHARACTERS = 256
_MAX_METADATA_VALUE_BYTES = 200
"""As UTF-8. All details stay under a kilobyte: long trailers are refused by some peers, and the status is lost with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How one kind of failure looks on the wire."""

    code: StatusCode
    retry_after_ms: int | None = None
    names_field: bool = False


TABLE: dict[type[errors.SessionReferenceError], Row] = {
    errors.InvalidReferenceError: Row(code=StatusCode.INVALID_ARGUMENT, names_field=True),
    errors.SelfReferenceError: Row(code=StatusCode.INVALID_ARGUMENT),
    errors.TooManyReferencesError: Row(code=StatusCode.INVALID_ARGUMENT),
    errors.UnknownSessionError: Row(code=StatusCode.NOT_FOUND),
    errors.DamagedSessionError: Row(code=StatusCode.DATA_LOSS),
    errors.UnsupportedVersionError: Row(code=StatusCode.FAILED_PRECONDITION),
    errors.SourceUnavailableError: Row(code=StatusCode.UNAVAILABLE, retry_after_ms=1000),
    errors.BudgetExceededError: Row(code=StatusCode.FAILED_PRECONDITION),
    errors.CancelledCallError: Row(code=StatusCode.CANCELLED),
    errors.ModelMetadataError: Row(code=StatusCode.UNAVAILABLE, retry_after_ms=1000),
    errors.WorkspaceNotFoundError: Row(code=StatusCode.NOT_FOUND),
    errors.WorkspaceUnreadableError: Row(code=StatusCode.PERMISSION_DENIED),
    errors.PermissionDeniedError: Row(code=StatusCode.PERMISSION_DENIED),
    errors.UnauthenticatedError: Row(code=StatusCode.UNAUTHENTICATED),
    errors.OverloadedError: Row(code=StatusCode.RESOURCE_EXHAUSTED, retry_after_ms=500),
    errors.InvalidRequestError: Row(code=StatusCode.INVALID_ARGUMENT, names_field=True),
    errors.ShuttingDownError: Row(code=StatusCode.UNAVAILABLE, retry_after_ms=200),
    errors.NotServedError: Row(code=StatusCode.UNIMPLEMENTED),
}
"""Every class of ``domain.errors`` that can reach the wire. InvalidConfigError cannot: the server does not start with it."""

INTERNAL_REASON = "INTERNAL"


def status_of(error: errors.SessionReferenceError) -> Status:
    """The failure as google.rpc.Status with its details."""
    row = TABLE[type(error)]
    code = row.code
    if isinstance(error, errors.CancelledCallError) and error.deadline_exceeded:
        code = StatusCode.DEADLINE_EXCEEDED
    status = Status(code=_number(code), message=str(error)[:_MAX_MESSAGE_CHARACTERS])
    metadata = {key: _short(value) for key, value in error.metadata.items()}
    _add(status, ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=metadata))
    if row.names_field and "field" in error.metadata:
        violation = BadRequest.FieldViolation(field=_field_path(error.metadata), description=status.message)
        _add(status, BadRequest(field_violations=[violation]))
    if row.retry_after_ms is not None:
        retry = RetryInfo()
        retry.retry_delay.FromMilliseconds(row.retry_after_ms)
        _add(status, retry)
    return status


def internal_status(request_id: str) -> Status:
    """What a client learns of a fault of ours: nothing but the id under which the log explains it."""
    status = Status(code=_number(StatusCode.INTERNAL), message="internal error; the server's log explains it")
    _add(status, ErrorInfo(reason=INTERNAL_REASON, domain=DOMAIN, metadata={"request_id": request_id}))
    return status


def _short(value: str) -> str:
    return value.encode(errors="replace")[:_MAX_METADATA_VALUE_BYTES].decode(errors="ignore")


def _field_path(metadata: dict[str, str]) -> str:
    index = metadata.get("index")
    return metadata["field"] if index is None else f"{metadata['field']}[{index}]"


def _add(status: Status, detail: Any) -> None:  # noqa: ANN401 - any protobuf message
    packed = AnyMessage()
    packed.Pack(detail)
    status.details.append(packed)


def _number(code: StatusCode) -> int:
    return code.value[0]


CODES = {_number(code): code for code in StatusCode}
