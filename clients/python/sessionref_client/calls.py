"""What every call carries, in both clients: options, deadline and metadata."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from sessionref_client.address import default_address, grpc_target
from sessionref_client.status import REQUEST_ID_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionref_client.candidate import Domain
    from sessionref_client.reference import Target

DEFAULT_TIMEOUT_SECONDS = 10.0
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class CallOptions(TypedDict, total=False):
    """Options of every call."""

    timeout_seconds: float | None
    """Deadline of the call, streams included. ``None`` or absent: the client's. There is no call without one."""
    request_id: str | None
    """Id for the server's log, at most 64 of ``A-Za-z0-9._-``. ``None`` or absent: the server makes one."""


class SessionSearchOptions(CallOptions, total=False):
    """Options of a search for sessions."""

    target: Target | None
    """Who is typing, and where. Absent: no session is left out or ranked as near."""
    limit: int | None
    """How many candidates per domain. Absent: the server's default."""
    sources: Iterable[str]
    """Names of session sources to search. Absent or empty: all."""
    subagents: bool | None
    """Whether sessions of subagents are offered. Absent: each source decides."""


class SearchOptions(SessionSearchOptions, total=False):
    """Options of a search."""

    domains: Iterable[Domain]
    """Domains wanted. Absent or empty: all."""


class SnapshotOptions(CallOptions, total=False):
    """Options of reading a saved transcript."""

    offset_bytes: int | None
    """Where to start. Absent: at the beginning."""
    chunk_bytes: int | None
    """Largest chunk. Absent: 65,536."""
    limit_bytes: int | None
    """How many bytes in all. Absent: to the end."""


class CallArguments(TypedDict):
    """What the stubs take beside the request."""

    timeout: float
    metadata: tuple[tuple[str, str], ...]
    wait_for_ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Where a client calls, and how long it waits when a call does not say."""

    address: str
    timeout_seconds: float

    @classmethod
    def of(cls, address: str | None, timeout_seconds: float) -> ClientSettings:
        """Settings with the default address filled in.

        Raises:
            ValueError: the timeout is no positive finite number.
            PermissionError: as in ``default_address``.
        """
        return cls(address=address or default_address(), timeout_seconds=_deadline(timeout_seconds))

    @property
    def target(self) -> str:
        """The address as gRPC names it. Raises ValueError when it has no known form."""
        return grpc_target(self.address)

    def arguments(self, options: CallOptions, kind: type[CallOptions] = CallOptions) -> CallArguments:
        """What the stub takes beside the request, from the options of one kind of call.

        Raises:
            ValueError: the timeout is no positive finite number, or the request id is malformed.
            TypeError: there is no such option.
        """
        unknown = options.keys() - kind.__annotations__.keys()
        if unknown:
            raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
        timeout_seconds = options.get("timeout_seconds")
        request_id = options.get("request_id")
        return CallArguments(
            timeout=self.timeout_seconds if timeout_seconds is None else _deadline(timeout_seconds),
            metadata=() if request_id is None else ((REQUEST_ID_KEY, _checked_request_id(request_id)),),
            wait_for_ready=False,  # a server that is not there is told at once
        )


def _deadline(timeout_seconds: float) -> float:
    if not (math.isfinite(timeout_seconds) and timeout_seconds > 0):
        raise ValueError(f"timeout_seconds must be a positive finite number, not {timeout_seconds}")
    return timeout_seconds


def _checked_request_id(request_id: str) -> str:
    if not _REQUEST_ID.fullmatch(request_id):
        raise ValueError("request_id must be 1 to 64 of A-Z a-z 0-9 . _ -")
    return request_id
