"""Every way a call fails, as a typed error."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import grpc
import pytest
import sessionref_client as client
from google.rpc.status_pb2 import Status
from sessionref.v1.reference_pb2 import ServiceErrorReason, SessionReferenceErrorCode
from sessionref_client import SessionReferenceError, Target
from sessionref_client.errors import Failure, error_for
from sessionref_client.status import error_from_status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Caller, Refusal, ScriptedService

CODE = grpc.StatusCode
CONTRACT_REASONS = {
    *(name.replace("_ERROR_CODE", "") for name in SessionReferenceErrorCode.keys()),  # noqa: SIM118 - not a dict
    *(name.removeprefix("SERVICE_ERROR_REASON_") for name in ServiceErrorReason.keys()),  # noqa: SIM118 - not a dict
} - {"SESSION_REFERENCE_UNSPECIFIED", "UNSPECIFIED"}
NEVER_ON_THE_WIRE = {"SESSION_REFERENCE_INVALID_CONFIG"}
EXPECTED = [
    ("SESSION_REFERENCE_INVALID_REFERENCE", CODE.INVALID_ARGUMENT, client.InvalidReferenceError),
    ("SESSION_REFERENCE_SELF_REFERENCE", CODE.INVALID_ARGUMENT, client.SelfReferenceError),
    ("SESSION_REFERENCE_TOO_MANY", CODE.INVALID_ARGUMENT, client.TooManyReferencesError),
    ("SESSION_REFERENCE_READ_FAILED", CODE.NOT_FOUND, client.ReadFailedError),
    ("SESSION_REFERENCE_BUDGET_EXCEEDED", CODE.FAILED_PRECONDITION, client.BudgetExceededError),
    ("SESSION_REFERENCE_CANCELLED", CODE.CANCELLED, client.CancelledCallError),
    ("SESSION_REFERENCE_CANCELLED", CODE.DEADLINE_EXCEEDED, client.DeadlineExceededError),
    ("MODEL_METADATA_FAILED", CODE.UNAVAILABLE, client.ModelMetadataError),
    ("WORKSPACE_NOT_FOUND", CODE.NOT_FOUND, client.WorkspaceNotFoundError),
    ("WORKSPACE_UNREADABLE", CODE.PERMISSION_DENIED, client.WorkspaceUnreadableError),
    ("PERMISSION_DENIED", CODE.PERMISSION_DENIED, client.PermissionDeniedError),
    ("UNAUTHENTICATED", CODE.UNAUTHENTICATED, client.UnauthenticatedError),
    ("OVERLOADED", CODE.RESOURCE_EXHAUSTED, client.OverloadedError),
    ("INVALID_REQUEST", CODE.INVALID_ARGUMENT, client.InvalidRequestError),
    ("INTERNAL", CODE.INTERNAL, client.InternalError),
    ("NOT_SERVED", CODE.UNIMPLEMENTED, client.NotServedError),
    ("SHUTTING_DOWN", CODE.UNAVAILABLE, client.ShuttingDownError),
    ("SOMETHING_NEWER", CODE.ABORTED, client.SessionReferenceError),
]
METHODS = ["prepare", "search"]


async def failure_of(caller: Caller, method: str) -> SessionReferenceError:
    failing = caller.stream(method) if method == "search" else caller.answer(method, "", target=Target(session_id="me"))
    with pytest.raises(SessionReferenceError) as caught:
        await failing
    return caught.value


def test_every_reason_of_the_contract_has_a_class() -> None:
    assert {reason for reason, _, _ in EXPECTED} - {"SOMETHING_NEWER"} == CONTRACT_REASONS - NEVER_ON_THE_WIRE


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda row: f"{row[0]}-{row[1].name}")
async def test_reason_is_raised_as_its_class(
    caller: Caller,
    service: ScriptedService,
    refusal: type[Refusal],
    method: str,
    expected: tuple[str, grpc.StatusCode, type[SessionReferenceError]],
) -> None:
    reason, code, kind = expected
    # As many times as a retried call would be made.
    service.refusals = [refusal(code=code, reason=reason, metadata={"session_id": "s"})] * 3

    error = await failure_of(caller, method)

    assert (type(error), error.reason, error.code, error.message, error.metadata, error.request_id) == (
        kind,
        reason,
        code.name,
        "what went wrong",
        {"session_id": "s"},
        "made-by-the-server",
    )


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (CODE.NOT_FOUND, "unknown"),
        (CODE.DATA_LOSS, "damaged"),
        (CODE.FAILED_PRECONDITION, "unsupported"),
        (CODE.UNAVAILABLE, "unavailable"),
        (CODE.ABORTED, "unavailable"),
    ],
)
async def test_read_failure_says_what_kind_it_is(
    caller: Caller, service: ScriptedService, refusal: type[Refusal], code: grpc.StatusCode, kind: str
) -> None:
    service.refusals = [refusal(code=code, reason="SESSION_REFERENCE_READ_FAILED")]

    error = await failure_of(caller, "prepare")

    assert isinstance(error, client.ReadFailedError)
    assert error.kind == kind


@pytest.mark.parametrize("seconds", [None, 0.25])
async def test_retry_advice_of_the_server_is_passed_on(
    caller: Caller, service: ScriptedService, refusal: type[Refusal], seconds: float | None
) -> None:
    service.refusals = [refusal(code=CODE.RESOURCE_EXHAUSTED, reason="OVERLOADED", retry_after_seconds=seconds)]

    assert (await failure_of(caller, "search")).retry_after_seconds == seconds


@pytest.mark.parametrize("method", METHODS)
async def test_failure_without_details_is_a_transport_error(
    caller: Caller, service: ScriptedService, refusal: type[Refusal], address: str, method: str
) -> None:
    service.refusals = [refusal(code=CODE.PERMISSION_DENIED)]

    error = await failure_of(caller, method)

    assert (type(error), error.reason, error.code, error.request_id) == (
        client.TransportError,
        "",
        "PERMISSION_DENIED",
        "made-by-the-server",
    )
    assert str(error) == f"PERMISSION_DENIED: what went wrong (address {address})"


async def test_details_of_another_domain_are_not_believed(
    caller: Caller, service: ScriptedService, refusal: type[Refusal]
) -> None:
    service.refusals = [refusal(code=CODE.RESOURCE_EXHAUSTED, reason="OVERLOADED", domain="example.org")]

    assert type(await failure_of(caller, "prepare")) is client.TransportError


@pytest.mark.parametrize("method", METHODS)
async def test_absent_server_is_a_transport_error_that_says_what_to_do(
    make_caller: Callable[..., Caller], tmp_path: Path, method: str
) -> None:
    address = f"unix:{tmp_path.parent / 'absent'}"

    error = await failure_of(make_caller(address), method)

    assert (type(error), error.code) == (client.TransportError, "UNAVAILABLE")
    assert f"is `sessionref serve` running? No answer from address {address}" in str(error)


def test_garbage_in_details_is_a_transport_error() -> None:
    status = Status(code=CODE.INTERNAL.value[0])
    status.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff\xff")

    assert type(error_from_status(status)) is client.TransportError


def test_error_survives_pickling() -> None:
    error = error_for(Failure(code="NOT_FOUND", reason="SESSION_REFERENCE_READ_FAILED", message="no such session"))

    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here

    assert (type(copied), str(copied)) == (client.ReadFailedError, "SESSION_REFERENCE_READ_FAILED: no such session")
