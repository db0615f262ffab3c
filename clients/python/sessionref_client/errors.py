"""Every failure of a call, as one tree.

    SessionReferenceError                 also: a reason newer than this client
    ├── InvalidReferenceError             SESSION_REFERENCE_INVALID_REFERENCE
    ├── SelfReferenceError                SESSION_REFERENCE_SELF_REFERENCE
    ├── TooManyReferencesError            SESSION_REFERENCE_TOO_MANY
    ├── ReadFailedError                   SESSION_REFERENCE_READ_FAILED, see its ``kind``
    ├── BudgetExceededError               SESSION_REFERENCE_BUDGET_EXCEEDED
    ├── CancelledCallError                SESSION_REFERENCE_CANCELLED
    │   └── DeadlineExceededError         the same, when the deadline passed
    ├── ModelMetadataError                MODEL_METADATA_FAILED
    ├── WorkspaceNotFoundError            WORKSPACE_NOT_FOUND
    ├── WorkspaceUnreadableError          WORKSPACE_UNREADABLE
    ├── PermissionDeniedError             PERMISSION_DENIED
    ├── UnauthenticatedError              UNAUTHENTICATED
    ├── OverloadedError                   OVERLOADED
    ├── InvalidRequestError               INVALID_REQUEST
    ├── InternalError                     INTERNAL
    ├── NotServedError                    NOT_SERVED
    ├── ShuttingDownError                 SHUTTING_DOWN
    └── TransportError                    no reason: the server was not reached, or something else answered

An argument that cannot be sent at all is a ``ValueError`` or ``TypeError`` of the call that was given it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

CANCELLED_REASON = "SESSION_REFERENCE_CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What is known about a failed call."""

    code: str
    """Name of the gRPC status, for example ``NOT_FOUND``."""
    reason: str = ""
    """The stable code to route on, for example ``SESSION_REFERENCE_TOO_MANY``; empty when the server did not answer."""
    message: str = ""
    """For a person."""
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    """What the reason is about, for example ``session_id`` or ``field``."""
    retry_after_seconds: float | None = None
    """When trying again makes sense; ``None``: the server does not say that it does."""
    request_id: str | None = None
    """What the server's log calls this call."""


class SessionReferenceError(Exception):
    """A call failed. The attributes are those of ``Failure``."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.code = failure.code
        self.reason = failure.reason
        self.message = failure.message
        self.metadata = failure.metadata
        self.retry_after_seconds = failure.retry_after_seconds
        self.request_id = failure.request_id

    def __str__(self) -> str:
        return f"{self.reason or self.code}: {self.message}"


class InvalidReferenceError(SessionReferenceError):
    """A reference, mention or limit is malformed. Metadata: ``field`` and, in a list, ``index``."""


class SelfReferenceError(SessionReferenceError):
    """The target refers to itself. Metadata: ``session_id``."""


class TooManyReferencesError(SessionReferenceError):
    """More distinct references than allowed. Metadata: ``count``, ``maximum``."""


class ReadFailureKind(StrEnum):
    """Why a session cannot be read."""

    UNKNOWN = "unknown"
    """No source knows the id, the session has no message yet, or the snapshot is gone."""
    DAMAGED = "damaged"
    """The log is damaged beyond a truthful reading."""
    UNSUPPORTED = "unsupported"
    """The log was written by a newer format version."""
    UNAVAILABLE = "unavailable"
    """It cannot be read now."""


_KINDS = {
    "NOT_FOUND": ReadFailureKind.UNKNOWN,
    "DATA_LOSS": ReadFailureKind.DAMAGED,
    "FAILED_PRECONDITION": ReadFailureKind.UNSUPPORTED,
}


class ReadFailedError(SessionReferenceError):
    """A source session cannot be read. Metadata: ``session_id``, and ``source`` when it is known."""

    @property
    def kind(self) -> ReadFailureKind:
        """Why. A status this client does not know counts as unavailable."""
        return _KINDS.get(self.code, ReadFailureKind.UNAVAILABLE)


class BudgetExceededError(SessionReferenceError):
    """A source does not fit into its byte budget even when cut down. Metadata: ``session_id``, ``maximum_bytes``."""


class CancelledCallError(SessionReferenceError):
    """The call was cancelled; nothing was published. Cancelling an asyncio task raises ``asyncio.CancelledError`` instead."""


class DeadlineExceededError(CancelledCallError):
    """The deadline passed; nothing was published."""


class ModelMetadataError(SessionReferenceError):
    """The model catalogue failed. Metadata: ``provider``, ``model``."""


class WorkspaceNotFoundError(SessionReferenceError):
    """The workspace directory does not exist."""


class WorkspaceUnreadableError(SessionReferenceError):
    """The workspace directory cannot be read."""


class PermissionDeniedError(SessionReferenceError):
    """The caller may not do this."""


class UnauthenticatedError(SessionReferenceError):
    """The caller is not known."""


class OverloadedError(SessionReferenceError):
    """The server sheds load; try again after ``retry_after_seconds``."""


class InvalidRequestError(SessionReferenceError):
    """A request field other than a reference is malformed. Metadata: ``field``."""


class InternalError(SessionReferenceError):
    """A fault of the server, which its log explains under ``request_id``."""


class NotServedError(SessionReferenceError):
    """The call is in the contract but not in the server's release."""


class ShuttingDownError(SessionReferenceError):
    """The server is going away; another one, or the same one started again, answers after ``retry_after_seconds``."""


class TransportError(SessionReferenceError):
    """The server was not reached, or what answered is no sessionref server."""


_BY_REASON: dict[str, type[SessionReferenceError]] = {
    "": TransportError,
    "SESSION_REFERENCE_INVALID_REFERENCE": InvalidReferenceError,
    "SESSION_REFERENCE_SELF_REFERENCE": SelfReferenceError,
    "SESSION_REFERENCE_TOO_MANY": TooManyReferencesError,
    "SESSION_REFERENCE_READ_FAILED": ReadFailedError,
    "SESSION_REFERENCE_BUDGET_EXCEEDED": BudgetExceededError,
    CANCELLED_REASON: CancelledCallError,
    "MODEL_METADATA_FAILED": ModelMetadataError,
    "WORKSPACE_NOT_FOUND": WorkspaceNotFoundError,
    "WORKSPACE_UNREADABLE": WorkspaceUnreadableError,
    "PERMISSION_DENIED": PermissionDeniedError,
    "UNAUTHENTICATED": UnauthenticatedError,
    "OVERLOADED": OverloadedError,
    "INVALID_REQUEST": InvalidRequestError,
    "INTERNAL": InternalError,
    "NOT_SERVED": NotServedError,
    "SHUTTING_DOWN": ShuttingDownError,
}


def error_for(failure: Failure) -> SessionReferenceError:
    """The failure as an exception of the class its reason stands for."""
    if failure.reason == CANCELLED_REASON and failure.code == "DEADLINE_EXCEEDED":
        return DeadlineExceededError(failure)
    return _BY_REASON.get(failure.reason, SessionReferenceError)(failure)
