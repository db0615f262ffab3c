from __future__ import annotations

from dataclasses import asdict
from typing import Any

from golden.vector_cases import each_case, load_vectors
from sessionref_server.domain.file_token import active_at_token, format_file_mention


def outcome(given: dict[str, Any]) -> dict[str, Any] | str | None:
    if given["op"] == "activeAtToken":
        token = active_at_token(given["line"], given["cursor"])
        return None if token is None else asdict(token)
    candidate = given["candidate"]
    is_directory = candidate["kind"] == "directory"
    return format_file_mention(candidate["path"], is_directory=is_directory, preserve_quote=given["preserveQuote"])


@each_case(load_vectors("atoken"))
def test_at_token_vector_gives_its_output(case: dict[str, Any]) -> None:
    assert outcome(case["input"]) == case["output"]
