"""Every kind of failure on the wire: its status, its reason, its metadata, and nothing else."""

from __future__ import annotations

import asyncio
import inspect
import re

import grpc
import pytest
from rpc.failures import Failure, failure_of, refusal_of
from rpc.vector_rig import VectorRig, in_module_loop
from sessionref.v1 import reference_pb2, session_reference_service_pb2, session_store_service_pb2
from sessionref_server.domain import errors
from sessionref_server.wire.reference_service import ReferenceService
from sessionref_server.wire.status import TABLE
from sessionref_server.wire.store_service import StoreService

STARTUP_ONLY = errors.InvalidConfigError
ABSTRACT = errors.ReadFailedError
KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.SessionReferenceError) and kind not in {errors.SessionReferenceError, STARTUP_ONLY, ABSTRACT}
]
ON_THE_WIRE: list[tuple[errors.SessionReferenceError, Failure]] = [
    (
        errors.InvalidReferenceError("malformed", field="references", index=2),
        Failure(
            code=grpc.StatusCode.INVALID_ARGUMENT,
            reason="SESSION_REFERENCE_INVALID_REFERENCE",
            metadata={"field": "references", "index": "2"},
            fields=["references[2]"],
        ),
    ),
    (
        errors.SelfReferenceError("self", session_id="s"),
        Failure(code=grpc.StatusCode.INVALID_ARGUMENT, reason="SESSION_REFERENCE_SELF_REFERENCE", metadata={"session_id": "s"}),
    ),
    (
        errors.TooManyReferencesError("too many", count=4, maximum=3),
        Failure(
            code=grpc.StatusCode.INVALID_ARGUMENT,
            reason="SESSION_REFERENCE_TOO_MANY",
            metadata={"count": "4", "maximum": "3"},
        ),
    ),
    (
        errors.UnknownSessionError("unknown", session_id="s"),
        Failure(code=grpc.StatusCode.NOT_FOUND, reason="SESSION_REFERENCE_READ_FAILED", metadata={"session_id": "s"}),
    ),
    (
        errors.DamagedSessionError("damaged", session_id="s", source="dsh"),
        Failure(
            code=grpc.StatusCode.DATA_LOSS,
            reason="SESSION_REFERENCE_READ_FAILED",
            metadata={"session_id": "s", "source": "dsh"},
        ),
    ),
    (
        errors.UnsupportedVersionError("too new", session_id="s", source="dsh", version="9"),
        Failure(
            code=grpc.StatusCode.FAILED_PRECONDITION,
            reason="SESSION_REFERENCE_READ_FAILED",
            metadata={"session_id": "s", "source": "dsh", "version": "9"},
        ),
    ),
    (
        errors.SourceUnavailableError("down", session_id="s", source="dsh"),
        Failure(
            code=grpc.StatusCode.UNAVAILABLE,
            reason="SESSION_REFERENCE_READ_FAILED",
            metadata={"session_id": "s", "source": "dsh"},
            retry_after_ms=1000,
        ),
    ),
    (
        errors.BudgetExceededError("budget", session_id="s", maximum_bytes=9),
        Failure(
            code=grpc.StatusCode.FAILED_PRECONDITION,
            reason="SESSION_REFERENCE_BUDGET_EXCEEDED",
            metadata={"session_id": "s", "maximum_bytes": "9"},
        ),
    ),
    (
        errors.CancelledCallError("cancelled"),
        Failure(code=grpc.StatusCode.CANCELLED, reason="SESSION_REFERENCE_CANCELLED", metadata={}),
    ),
    (
        errors.CancelledCallError("late", deadline_exceeded=True),
        Failure(code=grpc.StatusCode.DEADLINE_EXCEEDED, reason="SESSION_REFERENCE_CANCELLED", metadata={}),
    ),
    (
        errors.ModelMetadataError("catalogue", provider="p", model="m"),
        Failure(
            code=grpc.StatusCode.UNAVAILABLE,
            reason="MODEL_METADATA_FAILED",
            metadata={"provider": "p", "model": "m"},
            retry_after_ms=1000,
        ),
    ),
    (
        errors.WorkspaceNotFoundError("no folder"),
        Failure(code=grpc.StatusCode.NOT_FOUND, reason="WORKSPACE_NOT_FOUND", metadata={}),
    ),
    (
        errors.WorkspaceUnreadableError("no permission"),
        Failure(code=grpc.StatusCode.PERMISSION_DENIED, reason="WORKSPACE_UNREADABLE", metadata={}),
    ),
    (
        errors.PermissionDeniedError("no"),
        Failure(code=grpc.StatusCode.PERMISSION_DENIED, reason="PERMISSION_DENIED", metadata={}),
    ),
    (
        errors.UnauthenticatedError("who"),
        Failure(code=grpc.StatusCode.UNAUTHENTICATED, reason="UNAUTHENTICATED", metadata={}),
    ),
    (
        errors.OverloadedError("later"),
        Failure(code=grpc.StatusCode.RESOURCE_EXHAUSTED, reason="OVERLOADED", metadata={}, retry_after_ms=500),
    ),
    (
        errors.InvalidRequestError("bad", field="query"),
        Failure(code=grpc.StatusCode.INVALID_ARGUMENT, reason="INVALID_REQUEST", metadata={"field": "query"}, fields=["query"]),
    ),
    (
        errors.ShuttingDownError("going"),
        Failure(code=grpc.StatusCode.UNAVAILABLE, reason="SHUTTING_DOWN", metadata={}, retry_after_ms=200),
    ),
    (
        errors.NotServedError("not here"),
        Failure(code=grpc.StatusCode.UNIMPLEMENTED, reason="NOT_SERVED", metadata={}),
    ),
]


def prepare_request() -> session_reference_service_pb2.PrepareRequest:
    return session_reference_service_pb2.PrepareRequest(
        target=reference_pb2.Target(session_id="me"), references=[reference_pb2.SessionReferenceInput(session_id="s")]
    )


@in_module_loop
@pytest.mark.parametrize(("error", "failure"), ON_THE_WIRE, ids=[type(error).__name__ for error, _ in ON_THE_WIRE])
async def test_failure_of_a_port_reaches_the_client_as_its_row(
    rig: VectorRig, error: errors.SessionReferenceError, failure: Failure
) -> None:
    rig.source.broken = error
    try:
        assert await failure_of(rig.served.stub.Prepare(prepare_request(), timeout=10)) == failure
    finally:
        rig.source.broken = None


@in_module_loop
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("SECRET transcript text"),
        ValueError("SECRET"),
        KeyError("SECRET"),
        RecursionError("SECRET"),
        MemoryError("SECRET"),
        ExceptionGroup("SECRET", [ValueError("SECRET")]),
        TypeError("SECRET"),
        UnicodeDecodeError("utf-8", b"SECRET", 0, 1, "SECRET"),
        OSError(2, "SECRET", "/home/SECRET"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_unknown_exception_tells_the_client_its_request_id_only(rig: VectorRig, error: Exception) -> None:
    rig.source.broken = error
    try:
        refusal = await refusal_of(rig.served.stub.Prepare(prepare_request(), timeout=10))
    finally:
        rig.source.broken = None
    assert refusal.failure == Failure(
        code=grpc.StatusCode.INTERNAL, reason="INTERNAL", metadata={"request_id": refusal.request_id}
    )
    assert b"SECRET" not in refusal.details + refusal.message.encode()


@in_module_loop
async def test_cancellation_of_shared_work_by_somebody_else_is_an_internal_error_not_a_hang(rig: VectorRig) -> None:
    rig.source.broken = asyncio.CancelledError()  # type: ignore[assignment]
    try:
        failure = await failure_of(rig.served.stub.Prepare(prepare_request(), timeout=10))
    finally:
        rig.source.broken = None
    assert (failure.code, failure.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")


@in_module_loop
@pytest.mark.parametrize(
    "session_id",
    [
        pytest.param("x" * 500, id="long"),
        pytest.param("\ud83d" * 128, id="surrogates"),
        pytest.param("\U0001f680" * 128, id="emoji"),
        pytest.param("\x00\x1b[31m\n" * 60, id="control"),
        pytest.param("日本語" * 100, id="cjk"),
    ],
)
async def test_details_of_a_failure_stay_small_whatever_the_ids(rig: VectorRig, session_id: str) -> None:
    rig.source.broken = errors.UnsupportedVersionError(
        "too new", session_id=session_id, source="x" * 500, version="\U0001f680" * 500
    )
    try:
        failure = await failure_of(rig.served.stub.Prepare(prepare_request(), timeout=10))
    finally:
        rig.source.broken = None
    assert session_id.replace("\ud83d", "?").startswith(failure.metadata["session_id"])


def test_every_kind_of_failure_has_a_row_and_an_example() -> None:
    assert set(KINDS) == set(TABLE) == {type(error) for error, _ in ON_THE_WIRE}


def test_every_reason_is_a_value_of_a_public_enum_and_the_other_way_round() -> None:
    codes = reference_pb2.SessionReferenceErrorCode.DESCRIPTOR.values_by_name
    services = reference_pb2.ServiceErrorReason.DESCRIPTOR.values_by_name
    public = {name.replace("_ERROR_CODE_", "_") for name in codes} | {
        name.removeprefix("SERVICE_ERROR_REASON_") for name in services
    }
    reasons = {kind.reason for kind in (*KINDS, STARTUP_ONLY)} | {"INTERNAL"}
    assert reasons == public - {"SESSION_REFERENCE_UNSPECIFIED", "UNSPECIFIED"}


@pytest.mark.parametrize(
    ("servicer", "descriptor"),
    [
        (ReferenceService, session_reference_service_pb2.DESCRIPTOR.services_by_name["SessionReferenceService"]),
        (StoreService, session_store_service_pb2.DESCRIPTOR.services_by_name["SessionStoreService"]),
    ],
)
def test_every_method_is_guarded(servicer: type, descriptor: object) -> None:
    methods = descriptor.methods_by_name  # type: ignore[attr-defined]
    assert len(methods) > 0
    assert {name for name in methods if not getattr(vars(servicer).get(name), "is_guarded", False)} == set()


def test_docstring_of_the_tree_names_every_kind() -> None:
    drawn = set(re.findall(r"[A-Z]\w+Error", errors.__doc__ or ""))
    assert drawn == {kind.__name__ for kind in (*KINDS, STARTUP_ONLY, ABSTRACT, errors.SessionReferenceError)}
