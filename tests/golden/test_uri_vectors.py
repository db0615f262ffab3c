from __future__ import annotations

from typing import Any

from golden.vector_cases import each_case, load_vectors
from sessionref_server.domain.errors import InvalidReferenceError
from sessionref_server.domain.mention import format_mention
from sessionref_server.domain.session_uri import decode_session_uri, encode_session_uri


def outcome(case: dict[str, Any]) -> dict[str, str]:
    given = case["input"]
    try:
        match given["op"]:
            case "encode":
                return {"output": encode_session_uri(given["sessionId"])}
            case "decode":
                return {"output": decode_session_uri(given["uri"])}
            case _:
                return {"output": format_mention(given["sessionId"], given.get("label"))}
    except InvalidReferenceError as error:
        return {"error_code": error.reason}


@each_case(load_vectors("uri"))
def test_uri_vector_gives_its_output(case: dict[str, Any]) -> None:
    assert outcome(case) == {key: case[key] for key in ("output", "error_code") if key in case}
