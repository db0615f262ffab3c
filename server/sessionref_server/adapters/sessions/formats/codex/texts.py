"""Which text is the person's: what Codex itself writes into user-role messages, and what surrounds a request from an editor."""

from __future__ import annotations

from typing import Any, cast

_INJECTED_PREFIXES = (
    "# agents.md instructions",
    "<instructions>",
    "<environment_context>",
    "<environments>",
    "<user_instructions>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<apps_instructions>",
    "<plugins_instructions>",
    "<skill>",
    "<turn_aborted>",
    "<user_action>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<subagents>",
    "<recommended_plugins>",
    "<collaboration_mode>",
    "<multi_agent_mode>",
    "<model_switch>",
    "<personality_spec>",
    "<realtime_conversation>",
    "<token_budget",
    "<rollout_budget>",
    "<context_window",
    "<hook_prompt",
    "<goal_context>",
    "<codex_internal_context",
    "<extension_context>",
    "<application_context",
    "<external_",
    "the following is the codex agent history",
    "warning: the maximum number of unified exec processes you can keep open is",
    "warning: apply_patch was requested via ",
    "warning: your account was flagged for potentially high-risk cyber activity",
)
"""How text begins that Codex puts into user-role messages, lower case; compared without regard to case, as Codex does."""

_SUMMARY_PREFIXES = (
    "another language model started to solve this problem and produced a summary of its thinking process",
    "you were originally given instructions from a user over one or more turns. here were the user messages:",
)
"""How the summary begins that a compaction leaves in a user-role message (today, and in the first releases with compaction)."""

_NOT_TYPED = _INJECTED_PREFIXES + _SUMMARY_PREFIXES
_PREFIX_CHARACTERS = max(map(len, _NOT_TYPED))
_REQUEST_MARKER = "## My request for Codex:"
_REQUEST_LINE = "\n" + _REQUEST_MARKER
_TEXT_BLOCKS = frozenset({"input_text", "output_text", "text", "Text"})
_IMAGE_TAG_CHARACTERS = 512
_CWD_TAG = "<cwd>"
_CWD_SENTENCE = "Current working directory:"
_MAX_PATH_CHARACTERS = 4096
_AGENT_MAIL_KEYS = ('"author"', '"recipient"')
_AGENT_MAIL_CHARACTERS = 512


def is_injected(text: str) -> bool:
    """Whether Codex, not a person, wrote this user-role text."""
    return _begins_with(text, _INJECTED_PREFIXES)


def is_summary(text: str) -> bool:
    """Whether this user-role text is the summary a compaction left."""
    return _begins_with(text, _SUMMARY_PREFIXES)


def is_environment(text: str) -> bool:
    """Whether this is the block that tells the model where it runs."""
    return _begins_with(text, ("<environment_context>",))


def person_text(text: str) -> str:
    """What follows the first line that begins with the editor's request marker, or the whole text; empty when it is blank."""
    start = 0 if text.startswith(_REQUEST_MARKER) else text.find(_REQUEST_LINE)
    if start >= 0:
        text = text[text.index(":", start) + 1 :].strip()
    return "" if text.isspace() else text


def text_blocks(content: object) -> list[str]:
    """Texts of a message's content, which is a string or a list of blocks; images and unknown blocks are left out."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    texts: list[str] = []
    for block in cast("list[Any]", content):
        if not isinstance(block, dict):
            continue
        fields = cast("dict[str, Any]", block)
        text, kind = fields.get("text"), fields.get("type")
        if isinstance(text, str) and isinstance(kind, str) and kind in _TEXT_BLOCKS:
            texts.append(text)
    return texts


def person_text_of_item(texts: list[str]) -> str:
    """The person's part of a user-role message item: its text blocks without those Codex injected or wrapped around images."""
    kept = [text for text in texts if not (_begins_with(text, _NOT_TYPED) or _is_image_tag(text))]
    return person_text("\n".join(kept))


def working_directory(environment: str) -> str | None:
    """The working directory an environment block names: ``<cwd>…</cwd>`` or, before September 2025, a sentence."""
    start = environment.find(_CWD_TAG)
    if start >= 0:
        path = environment[start + len(_CWD_TAG) :][: _MAX_PATH_CHARACTERS + 1].split("</cwd>", 1)[0]
    else:
        start = environment.find(_CWD_SENTENCE)
        if start < 0:
            return None
        path = environment[start + len(_CWD_SENTENCE) :][: _MAX_PATH_CHARACTERS + 1].split("\n", 1)[0]
    path = path.strip()
    return path if 0 < len(path) <= _MAX_PATH_CHARACTERS else None


def is_agent_mail(text: str) -> bool:
    """Whether an assistant-role text is a message from one agent to another, which Codex stores as a JSON envelope."""
    if not text.startswith("{"):
        return False
    start = text[:_AGENT_MAIL_CHARACTERS]
    return all(key in start for key in _AGENT_MAIL_KEYS)


def _begins_with(text: str, prefixes: tuple[str, ...]) -> bool:
    start = text[:_PREFIX_CHARACTERS]
    if start[:1].isspace():
        start = text.lstrip()[:_PREFIX_CHARACTERS]
    return start.lower().startswith(prefixes)


def _is_image_tag(text: str) -> bool:
    """Codex puts ``<image name=…>`` and ``</image>`` blocks around an attached picture."""
    return text == "</image>" or (len(text) <= _IMAGE_TAG_CHARACTERS and text.startswith("<image") and text.endswith(">"))
