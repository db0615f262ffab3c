"""How the channel behaves, in both clients: sizes, retries, keepalive, keys."""

from __future__ import annotations

import json
from dataclasses import dataclass

import grpc

MAXIMUM_RECEIVE_BYTES = 16 * 1024 * 1024
_SERVICE = "sessionref.v1.SessionReferenceService"
_IDEMPOTENT = ("SearchCandidates", "ParseMentions", "ReadSnapshot", "GetServiceInfo")

# gRPC retries before the first answer only, and stops while most calls fail, so that a server in trouble is not buried.
_SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [{"service": _SERVICE, "method": method} for method in _IDEMPOTENT],
            "retryPolicy": {
                "maxAttempts": 3,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        },
    ],
    "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
}

CHANNEL_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_receive_message_length", MAXIMUM_RECEIVE_BYTES),
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    ("grpc.service_config_disable_resolution", 1),  # the policy is the client's; nothing is asked of DNS
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 0),
    # gRPC waits up to two minutes between attempts to connect; a local server that was restarted is back at once.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """Keys for a TLS connection, PEM encoded. Without root certificates, those that gRPC brings along are trusted."""

    root_certificates: bytes | None = None
    certificate: bytes | None = None
    """Chain that identifies the client; goes with ``key``."""
    key: bytes | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("a client certificate needs its key, and a key its certificate")

    def credentials(self) -> grpc.ChannelCredentials:
        """The keys as gRPC takes them."""
        return grpc.ssl_channel_credentials(self.root_certificates, self.key, self.certificate)
