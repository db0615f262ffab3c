"""Client of sessionref: find earlier coding-agent sessions, and prepare bounded, untrusted context from them.

Start with ``connect`` (blocking) or ``connect_aio``. The values and errors do not need gRPC; it is imported with the clients.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from sessionref_client.address import default_address
from sessionref_client.candidate import Domain, FileCandidate, FileKind, SearchBatch, SessionCandidate, SourceStatus
from sessionref_client.content import ContentBlock, ImageBlock, JsonValue, OpaqueBlock, PackedMessage, TextBlock, UnknownBlock
from sessionref_client.errors import (
    BudgetExceededError,
    CancelledCallError,
    DeadlineExceededError,
    Failure,
    InternalError,
    InvalidReferenceError,
    InvalidRequestError,
    ModelMetadataError,
    NotServedError,
    OverloadedError,
    PermissionDeniedError,
    ReadFailedError,
    ReadFailureKind,
    SelfReferenceError,
    SessionReferenceError,
    ShuttingDownError,
    TooManyReferencesError,
    TransportError,
    UnauthenticatedError,
    WorkspaceNotFoundError,
    WorkspaceUnreadableError,
)
from sessionref_client.reference import (
    CapturedReference,
    ContextMessage,
    FileMention,
    ModelRoute,
    Omission,
    ParsedText,
    Prepared,
    ReadingFacts,
    SavedSnapshot,
    SessionReference,
    SessionReferenceSource,
    SnapshotChunk,
    SnapshotUnavailable,
    Target,
    Trust,
)
from sessionref_client.service import ServiceInfo, ServiceLimits

if TYPE_CHECKING:
    from sessionref_client.aio_client import AioClient, connect_aio
    from sessionref_client.calls import CallOptions, SearchOptions, SessionSearchOptions, SnapshotOptions
    from sessionref_client.connection import ClientTls
    from sessionref_client.sync_client import SyncClient, connect

_IMPORTED_WITH_GRPC = {
    "AioClient": "aio_client",
    "CallOptions": "calls",
    "ClientTls": "connection",
    "SearchOptions": "calls",
    "SessionSearchOptions": "calls",
    "SnapshotOptions": "calls",
    "SyncClient": "sync_client",
    "connect": "sync_client",
    "connect_aio": "aio_client",
}

__all__ = [
    "AioClient",
    "BudgetExceededError",
    "CallOptions",
    "CancelledCallError",
    "CapturedReference",
    "ClientTls",
    "ContentBlock",
    "ContextMessage",
    "DeadlineExceededError",
    "Domain",
    "Failure",
    "FileCandidate",
    "FileKind",
    "FileMention",
    "ImageBlock",
    "InternalError",
    "InvalidReferenceError",
    "InvalidRequestError",
    "JsonValue",
    "ModelMetadataError",
    "ModelRoute",
    "NotServedError",
    "Omission",
    "OpaqueBlock",
    "OverloadedError",
    "PackedMessage",
    "ParsedText",
    "PermissionDeniedError",
    "Prepared",
    "ReadFailedError",
    "ReadFailureKind",
    "ReadingFacts",
    "SavedSnapshot",
    "SearchBatch",
    "SearchOptions",
    "SelfReferenceError",
    "ServiceInfo",
    "ServiceLimits",
    "SessionCandidate",
    "SessionReference",
    "SessionReferenceError",
    "SessionReferenceSource",
    "SessionSearchOptions",
    "ShuttingDownError",
    "SnapshotChunk",
    "SnapshotOptions",
    "SnapshotUnavailable",
    "SourceStatus",
    "SyncClient",
    "Target",
    "TextBlock",
    "TooManyReferencesError",
    "TransportError",
    "Trust",
    "UnauthenticatedError",
    "UnknownBlock",
    "WorkspaceNotFoundError",
    "WorkspaceUnreadableError",
    "connect",
    "connect_aio",
    "default_address",
]


def __getattr__(name: str) -> object:
    if name not in _IMPORTED_WITH_GRPC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_IMPORTED_WITH_GRPC[name]}"), name)
