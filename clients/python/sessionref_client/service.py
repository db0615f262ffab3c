"""What a server says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessionref_client.candidate import SourceStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """Limits in force at the server."""

    maximum_references: int
    maximum_reference_bytes: int | None
    reference_context_fraction: float
    default_session_candidates: int
    maximum_candidates: int
    maximum_query_bytes: int
    maximum_request_bytes: int
    maximum_call_seconds: float
    snapshot_lifetime_seconds: float | None
    maximum_concurrent_prepares: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceInfo:
    """What the server is: its version, limits, and sources of sessions."""

    version: str
    limits: ServiceLimits
    sources: tuple[SourceStatus, ...]
