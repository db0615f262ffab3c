"""The ``dsh-session:`` URI: unpadded base64url of the UTF-8 of a session id written as a JSON string.

Each id has exactly one URI. Decoding therefore accepts only what encoding the decoded id gives again: no padding, stray bits,
other escapes, white space or broken UTF-8. Ids with lone surrogates cannot travel in a protobuf string and are refused.
"""

from __future__ import annotations

import binascii

import orjson

from sessionref_server.domain.errors import InvalidReferenceError
from sessionref_server.domain.session import SessionId

SCHEME = "dsh-session:"

_TO_STANDARD_ALPHABET = str.maketrans("-_", "+/")
_TO_URL_ALPHABET = bytes.maketrans(b"+/", b"-_")


def encode_session_uri(session_id: str) -> str:
    """Write the canonical URI of an id. Raises InvalidReferenceError when the id holds a lone surrogate."""
    try:
        literal = orjson.dumps(session_id)
    except orjson.JSONEncodeError as error:
        raise InvalidReferenceError("session id is not valid Unicode", field="session_id") from error
    return SCHEME + _encode_payload(literal)


def decode_session_uri(uri: str) -> SessionId:
    """Read a canonical URI. Raises InvalidReferenceError for anything else."""
    if not uri.startswith(SCHEME):
        raise InvalidReferenceError("not a session URI", field="uri")
    payload = uri[len(SCHEME) :]
    session_id = _decode_payload(payload)
    if session_id is None or _encode_payload(orjson.dumps(session_id)) != payload:
        raise InvalidReferenceError("session URI is not in canonical form", field="uri")
    return SessionId(session_id)


def _encode_payload(literal: bytes) -> str:
    return binascii.b2a_base64(literal, newline=False).translate(_TO_URL_ALPHABET, b"=").decode("ascii")


def _decode_payload(payload: str) -> str | None:
    """Decode leniently; the caller holds the result against the canonical form."""
    if not payload.isascii():
        return None
    padded = payload.translate(_TO_STANDARD_ALPHABET) + "=" * (-len(payload) % 4)
    try:
        literal = binascii.a2b_base64(padded)
        # Only a string literal can be right; a long array or number is not worth parsing.
        value = orjson.loads(literal) if literal.startswith(b'"') else None
    except ValueError:
        return None
    return value if isinstance(value, str) else None
