from __future__ import annotations

import json
from typing import Any

from golden.vector_cases import each_case, load_vectors
from sessionref_server.adapters.sessions.formats.dsh.surface import message_of_event
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.errors import BudgetExceededError
from sessionref_server.domain.prepare.retain import Retained, retain
from sessionref_server.domain.session import SessionId


def capture_of(snapshot: dict[str, Any]) -> Capture:
    messages = (message_of_event(event) for event in snapshot["events"])
    return Capture(
        session_id=SessionId(snapshot["session"]["id"]),
        cwd=snapshot["session"].get("cwd"),
        through_seq=snapshot["capturedThroughSeq"],
        conversation=Conversation.of(message for message in messages if message is not None),
    )


def described(retained: Retained) -> dict[str, Any]:
    return {
        "data": json.loads(retained.preview_json),
        "stats": {
            "compacted": retained.compacted,
            "originalMessages": retained.original_messages,
            "retainedMessages": retained.retained_messages,
            "omittedMessages": retained.omitted_messages,
            "omittedBytes": retained.omitted_bytes,
            "truncated": retained.truncated,
        },
        "bytes": len(retained.preview_json),
    }


def outcome(given: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"output": described(retain(capture_of(given["snapshot"]), given["label"], given["maxBytes"]))}
    except BudgetExceededError as error:
        return {"error_code": error.reason}


@each_case(load_vectors("retention"))
def test_retention_vector_gives_its_output(case: dict[str, Any]) -> None:
    assert outcome(case["input"]) == {key: case[key] for key in ("output", "error_code") if key in case}
