"""Event names of versions 0 to 4, and what each of them means to a reader of the surface."""

from __future__ import annotations

from enum import StrEnum

NEWEST_VERSION = 4

HEADER = "session"
USER_MESSAGE = "user/message"
STEERING_MESSAGE = "steering/message"
ASSISTANT_MESSAGE = "assistant/message"
SYSTEM_MESSAGE = "system/message"
DEVELOPER_MESSAGE = "developer/message"
TOOL_RESULT = "tool/result"
TITLE = "session/title"
DESCRIPTOR = "subagent/descriptor"
TURN_START = "turn/start"
TURN_END = "turn/end"
STEP_START = "step/start"
STEP_END = "step/end"
REQUEST_CONTEXT = "request/context"

PACKED_MEMBERS = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
"""Rows of versions 0 and 1 that stand for a run of chunk events, and the list that holds its members."""

_FIRST_SURFACE = frozenset({USER_MESSAGE, ASSISTANT_MESSAGE, TOOL_RESULT})
ALL_SURFACE = _FIRST_SURFACE | {SYSTEM_MESSAGE, DEVELOPER_MESSAGE, STEERING_MESSAGE}

_LOG_ONLY = frozenset(
    {
        "agent-preset/selected",
        "agent/inbox/spliced",
        "approval/asked",
        "approval/decided",
        "approval/policy",
        "assistant/attempt",
        "assistant/chunk",
        "command/done",
        "command/run",
        "compact/end",
        "compact/prune",
        "compact/start",
        "compact/summary",
        "compaction/end",
        "compaction/prune",
        "compaction/start",
        "compaction/summary",
        "deliverables/presented",
        "feedback/message-delete",
        "feedback/message-put",
        "feedback/record",
        "goal/change",
        "hook/invoked",
        "hook/result",
        "image/offload",
        "llm/retry",
        "llm/retry-started",
        "model/selection",
        "permission/preset",
        "plan/mode",
        REQUEST_CONTEXT,
        "request/header",
        "sandbox/mode",
        "schedule/change",
        "session-log-deepseek/delivery-accepted",
        "session/end-seed",
        TITLE,
        "session/title-llm-request",
        STEP_END,
        STEP_START,
        "subagent/catalog",
        DESCRIPTOR,
        "subagent/model-selection-policy",
        "team/member",
        "team/message/delivered",
        "team/message/queued",
        "team/task",
        "todo/write",
        "tool-workflow/agent-end",
        "tool-workflow/agent-start",
        "tool-workflow/run-end",
        "tool-workflow/run-start",
        "tool/call",
        "tool/code-dispatch",
        "tool/code-dispatch-start",
        "tool/ptc-dispatch",
        "tool/ptc-dispatch-start",
        TURN_END,
        TURN_START,
        "web/deepseek-search-llm-request",
        "workspace/changes",
    }
)
"""One list for all versions: a name a version did not have yet is never written there, and refusing one that it had would hide a
good session."""


def surface_types(version: int) -> frozenset[str]:
    """Events that stand on the surface of a version."""
    if version == 0:
        return _FIRST_SURFACE | {STEERING_MESSAGE}
    if version < 3:  # noqa: PLR2004 - versions are named by number
        return _FIRST_SURFACE
    if version == 3:  # noqa: PLR2004
        return _FIRST_SURFACE | {SYSTEM_MESSAGE}
    return _FIRST_SURFACE | {SYSTEM_MESSAGE, DEVELOPER_MESSAGE}


def log_only_types() -> frozenset[str]:
    """Known events that never touch the surface."""
    return _LOG_ONLY


class LogFault(StrEnum):
    """Why a log is refused."""

    CORRUPT = "CORRUPT"
    UNSUPPORTED = "UNSUPPORTED"
    INVALID_SURFACE = "INVALID_SURFACE"
    NOT_A_LOG = "NOT_A_LOG"
