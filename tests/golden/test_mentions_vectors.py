from __future__ import annotations

from typing import Any

from golden.vector_cases import each_case, load_vectors
from sessionref_server.domain.errors import InvalidReferenceError
from sessionref_server.domain.mention import parse_mentions


def outcome(text: str) -> dict[str, Any]:
    try:
        parsed = parse_mentions(text)
    except InvalidReferenceError as error:
        return {"error_code": error.reason}
    references = [{"sessionId": reference.session_id, "label": reference.label} for reference in parsed.references]
    return {"output": {"text": parsed.text, "references": references}}


@each_case(load_vectors("mentions"))
def test_mention_vector_gives_its_output(case: dict[str, Any]) -> None:
    assert outcome(case["input"]["text"]) == {key: case[key] for key in ("output", "error_code") if key in case}
