"""Every failure the service can report, as one tree.

    SessionReferenceError
    ├── InvalidConfigError            start-up only, exit code 2
    ├── InvalidReferenceError
    ├── SelfReferenceError
    ├── TooManyReferencesError
    ├── ReadFailedError
    │   ├── UnknownSessionError
    │   ├── DamagedSessionError
    │   ├── UnsupportedVersionError
    │   └── SourceUnavailableError
    ├── BudgetExceededError
    ├── CancelledCallError
    ├── ModelMetadataError
    ├── WorkspaceNotFoundError
    ├── WorkspaceUnreadableError
    ├── PermissionDeniedError
    ├── UnauthenticatedError
    ├── OverloadedError
    ├── InvalidRequestError
    ├── ShuttingDownError
    └── NotServedError                an RPC of a later release

``wire/status.py`` holds the one table from these classes to gRPC status, reason and retry advice. Messages name the field
or the session, never transcript text and never a path outside the caller's own workspace.
"""

from __future__ import annotations

from typing import ClassVar

MAX_METADATA_VALUE_CHARACTERS = 128


class SessionReferenceError(Exception):
    """A failure a host can act on. ``metadata`` is what the host's code reads; the message is for a person."""

    reason: ClassVar[str]

    def __init__(self, message: str, **metadata: str | int) -> None:
        super().__init__(message)
        self.metadata = {key: str(value)[:MAX_METADATA_VALUE_CHARACTERS] for key, value in metadata.items()}


class InvalidConfigError(SessionReferenceError):
    """A configuration key has a bad value. Metadata: ``key``."""

    reason = "SESSION_REFERENCE_INVALID_CONFIG"


class InvalidReferenceError(SessionReferenceError):
    """A reference, mention or limit is malformed. Metadata: ``field`` and, in a list, ``index``."""

    reason = "SESSION_REFERENCE_INVALID_REFERENCE"


class SelfReferenceError(SessionReferenceError):
    """The target refers to itself. Metadata: ``session_id``."""

    reason = "SESSION_REFERENCE_SELF_REFERENCE"


class TooManyReferencesError(SessionReferenceError):
    """More distinct references than allowed. Metadata: ``count``, ``maximum``."""

    reason = "SESSION_REFERENCE_TOO_MANY"


class ReadFailedError(SessionReferenceError):
    """A source session cannot be read. Raised only through its subclasses."""

    reason = "SESSION_REFERENCE_READ_FAILED"


class UnknownSessionError(ReadFailedError):
    """No source knows the id, or the session has nothing to show yet. Metadata: ``session_id``."""


class DamagedSessionError(ReadFailedError):
    """The log is damaged beyond a truthful reading. Metadata: ``session_id``, ``source``."""


class UnsupportedVersionError(ReadFailedError):
    """The log was written by a newer format version. Metadata: ``session_id``, ``source``, ``version``."""


class SourceUnavailableError(ReadFailedError):
    """The source cannot be reached now; trying again makes sense. Metadata: ``session_id``, ``source``."""


class BudgetExceededError(SessionReferenceError):
    """A source does not fit into its byte budget even when cut down. Metadata: ``session_id``, ``maximum_bytes``."""

    reason = "SESSION_REFERENCE_BUDGET_EXCEEDED"


class CancelledCallError(SessionReferenceError):
    """The caller cancelled, or the deadline passed; nothing was published."""

    reason = "SESSION_REFERENCE_CANCELLED"

    def __init__(self, message: str, *, deadline_exceeded: bool = False) -> None:
        super().__init__(message)
        self.deadline_exceeded = deadline_exceeded


class ModelMetadataError(SessionReferenceError):
    """The model catalogue failed. Metadata: ``provider``, ``model``."""

    reason = "MODEL_METADATA_FAILED"


class WorkspaceNotFoundError(SessionReferenceError):
    """The workspace directory does not exist."""

    reason = "WORKSPACE_NOT_FOUND"


class WorkspaceUnreadableError(SessionReferenceError):
    """The workspace directory cannot be read."""

    reason = "WORKSPACE_UNREADABLE"


class PermissionDeniedError(SessionReferenceError):
    """The caller may not do this."""

    reason = "PERMISSION_DENIED"


class UnauthenticatedError(SessionReferenceError):
    """The caller is not known."""

    reason = "UNAUTHENTICATED"


class OverloadedError(SessionReferenceError):
    """The service sheds load; try again later."""

    reason = "OVERLOADED"


class InvalidRequestError(SessionReferenceError):
    """A request field other than a reference is malformed. Metadata: ``field``."""

    reason = "INVALID_REQUEST"


class ShuttingDownError(SessionReferenceError):
    """The server is going away; another one, or a later try, may answer."""

    reason = "SHUTTING_DOWN"


class NotServedError(SessionReferenceError):
    """The RPC exists in the contract but not in this release."""

    reason = "NOT_SERVED"
