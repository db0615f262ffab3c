"""One model has many names: what agents write down, and how it is looked up.

Agents record what they were configured with: a provider's own id, the id of a gateway (``anthropic/claude-sonnet-4.5``), a
cloud's (``us.anthropic.claude-sonnet-4-5-20250929-v1:0``), with a date, a tag or a variant behind it. Everything here is plain
string work.
"""

from __future__ import annotations

from collections.abc import Iterator

MAX_NAME_CHARACTERS = 200
_DATE_DIGITS = 8
_DASHED_DATE_CHARACTERS = len("2025-09-29")
_SUFFIXES = ("-latest", "-v1", "-v2", "-preview")

PROVIDER_ALIASES = {
    "anthropic-api": "anthropic",
    "aws": "amazon-bedrock",
    "aws-bedrock": "amazon-bedrock",
    "azure-openai": "azure",
    "bedrock": "amazon-bedrock",
    "chatgpt": "openai",
    "claude": "anthropic",
    "claude-code": "anthropic",
    "codex": "openai",
    "copilot": "github-copilot",
    "dashscope": "alibaba",
    "deepseek-official": "deepseek",
    "fireworks": "fireworks-ai",
    "gemini": "google",
    "gemini-cli": "google",
    "google-ai": "google",
    "google-ai-studio": "google",
    "google-gemini-cli": "google",
    "google-genai": "google",
    "google-generative-ai": "google",
    "grok": "xai",
    "kimi": "moonshotai",
    "kimi-code": "kimi-for-coding",
    "meta": "llama",
    "mistralai": "mistral",
    "moonshot": "moonshotai",
    "moonshot-ai": "moonshotai",
    "openai-chat": "openai",
    "openai-codex": "openai",
    "openai-responses": "openai",
    "opencode-zen": "opencode",
    "qwen": "alibaba",
    "together": "togetherai",
    "vercel-ai-gateway": "vercel",
    "vertex": "google-vertex",
    "vertex-ai": "google-vertex",
    "vertexai": "google-vertex",
    "x-ai": "xai",
    "z-ai": "zai",
    "z.ai": "zai",
    "zhipu": "zhipuai",
}
"""Names agents use for providers whose id in the catalogue is another."""

VENDORS = (
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("codex", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "google"),
    ("deepseek", "deepseek"),
    ("kimi", "moonshotai"),
    ("glm", "zai"),
    ("grok", "xai"),
    ("qwen", "alibaba"),
    ("qwq", "alibaba"),
    ("mistral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("magistral", "mistral"),
    ("minimax", "minimax"),
    ("mimo", "xiaomi"),
    ("command", "cohere"),
    ("sonar", "perplexity"),
)
"""Who makes the models whose names begin so; their own entry counts when providers disagree."""


def provider_key(provider: str) -> str:
    """A provider's id in the catalogue, as far as names go."""
    key = provider.strip().lower().replace("_", "-").replace(" ", "-")
    return PROVIDER_ALIASES.get(key, key)


def model_key(model: str) -> str:
    """A model's id without what spelling varies in: case, and the sign between numbers."""
    return model.strip().lower().replace(".", "-").replace("_", "-").replace("@", "-").replace(" ", "-")


def vendor_of(key: str) -> str | None:
    """The provider that makes the model with this key; ``None`` when its name does not tell."""
    return next((provider for start, provider in VENDORS if key.startswith(start)), None)


def model_keys(model: str) -> list[str]:
    """Keys under which a model may be known, the most exact first."""
    keys: dict[str, None] = {}
    for name in _without_prefixes(model[:MAX_NAME_CHARACTERS]):
        for key in _without_suffixes(name):
            keys[key] = None
    return list(keys)


def _without_prefixes(model: str) -> Iterator[str]:
    """``a/b/c``, ``b/c``, ``c``; then, for the dotted ids of Bedrock, what follows the maker's name."""
    rest = model.strip()
    yield rest
    while "/" in rest:
        rest = rest.partition("/")[2]
        yield rest
    for _ in range(2):
        head, dot, tail = rest.partition(".")
        if not dot or not head.isalpha():
            return
        rest = tail
        yield rest


def _without_suffixes(name: str) -> Iterator[str]:
    key = model_key(name)
    yield key
    if "[" in key:  # a variant in brackets, for example [1m]
        key = key.partition("[")[0]
        yield key
    if ":" in key:  # a tag, for example :free or :0
        key = key.partition(":")[0]
        yield key
    while True:
        shorter = _without_date(key)
        for suffix in _SUFFIXES:
            shorter = shorter.removesuffix(suffix)
        if shorter == key or not shorter:
            return
        key = shorter
        yield key


def _without_date(key: str) -> str:
    head, dash, tail = key.rpartition("-")
    if dash and len(tail) == _DATE_DIGITS and tail.isdigit():
        return head
    tail = key[-_DASHED_DATE_CHARACTERS:]
    year, *rest = tail.split("-")
    is_date = len(year) == 4 and [len(part) for part in rest] == [2, 2] and tail.replace("-", "").isdigit()  # noqa: PLR2004
    return key[: -_DASHED_DATE_CHARACTERS - 1] if is_date else key
