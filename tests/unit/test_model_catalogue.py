"""Context windows by the names agents record."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest
from sessionref_server.adapters.models import models_dev
from sessionref_server.adapters.models.models_dev import ModelsDevCatalogue
from sessionref_server.adapters.models.spelling import model_keys
from sessionref_server.domain.errors import ModelMetadataError
from sessionref_server.domain.session import ModelRoute

ENTRIES = [
    ("anthropic", "claude-sonnet-4-5", 200_000),
    ("anthropic", "claude-sonnet-4-5-20250929", 200_000),
    ("anthropic", "claude-3-5-sonnet-20240620", 100_000),
    ("anthropic", "claude-3-5-sonnet-20241022", 200_000),
    ("openrouter", "anthropic/claude-sonnet-4.5", 1_000_000),
    ("openrouter", "acme/solo-1", 50_000),
    ("github-copilot", "claude-sonnet-4.5", 144_000),
    ("amazon-bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_001),
    ("google-vertex-anthropic", "claude-sonnet-4-5@20250929", 200_002),
    ("openai", "gpt-4o", 128_000),
    ("openai", "gpt-4o-2024-08-06", 128_000),
    ("openai", "gpt-image", 0),
    ("azure", "gpt-4o", 127_000),
    ("deepseek", "deepseek-v4-pro", 1_000_000),
    ("ollama-cloud", "deepseek-v4-pro", 1_048_576),
    ("google", "gemini-3-pro-preview", 1_048_576),
    ("moonshotai", "kimi-k2", 262_144),
    ("togetherai", "shared-7b", 32_768),
    ("deepinfra", "shared-7b", 32_768),
    ("togetherai", "disputed-7b", 32_768),
    ("deepinfra", "disputed-7b", 8_192),
]


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> None:
    def made_up() -> Iterator[tuple[str, str, int]]:
        for provider, model, tokens in ENTRIES:
            if tokens > 0:
                yield provider, model, tokens

    monkeypatch.setattr(models_dev, "_catalogue_entries", made_up)


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize(
    ("provider", "model", "tokens"),
    [
        ("anthropic", "claude-sonnet-4-5", 200_000),
        ("Anthropic", " Claude-Sonnet-4-5 ", 200_000),
        ("anthropic", "claude-sonnet-4-5-20250929", 200_000),
        ("anthropic", "claude-sonnet-4-5-20991231", 200_000),
        ("anthropic", "claude-sonnet-4-5-latest", 200_000),
        ("anthropic", "anthropic/claude-sonnet-4.5", 200_000),
        ("anthropic", "claude-sonnet-4-5[1m]", 1_000_000),
        ("anthropic", "claude-3-5-sonnet", 100_000),
        ("claude-code", "claude-sonnet-4-5", 200_000),
        ("github-copilot", "claude-sonnet-4.5", 144_000),
        ("copilot", "claude-sonnet-4.5", 144_000),
        ("openrouter", "anthropic/claude-sonnet-4.5", 1_000_000),
        ("openrouter", "anthropic/claude-sonnet-4.5:thinking", 1_000_000),
        ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_001),
        ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", 200_001),
        ("google-vertex-anthropic", "claude-sonnet-4-5@20250929", 200_002),
        ("openai", "gpt-4o-2024-11-20", 128_000),
        ("azure_openai", "gpt-4o", 127_000),
        ("gemini", "gemini-3-pro", 1_048_576),
        ("kimi", "moonshot-ai/kimi-k2", 262_144),
        ("deepseek-official", "deepseek-v4-pro", 1_000_000),
        # no provider, or one with a name of its own: the maker's entry, else what all agree on
        (None, "claude-sonnet-4-5", 200_000),
        ("my-gateway", "claude-sonnet-4.5", 200_000),
        (None, "anthropic/claude-sonnet-4.5", 200_000),
        (None, "ollama-cloud/deepseek-v4-pro:0813", 1_048_576),
        (None, "openrouter/anthropic/claude-sonnet-4.5", 1_000_000),
        (None, "gpt-4o", 128_000),
        (None, "shared-7b", 32_768),
        (None, "solo-1", 50_000),
        # unknown
        (None, "disputed-7b", None),
        ("openai", "claude-sonnet-4-5", None),
        ("openai", "gpt-image", None),
        ("openai", "gpt-9", None),
        ("openai", None, None),
        ("openai", "", None),
        (None, None, None),
        (None, "<synthetic>", None),
        (None, "/", None),
        (None, "claude-sonnet-4-5[1m]", 1_000_000),
        (None, "nothing[1m]", None),
    ],
)
async def test_a_route_has_the_window_of_the_model_it_names(provider: str | None, model: str | None, tokens: int | None) -> None:
    assert await ModelsDevCatalogue().context_window_tokens(ModelRoute(provider=provider, model=model)) == tokens


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize(
    ("provider", "model", "tokens"),
    [
        ("openai", "gpt-4o", 11),
        ("OpenAI", "GPT-4o-2024-08-06", 11),
        ("azure", "gpt-4o", 127_000),
        ("home", "Llama.Local", 22),
        ("elsewhere", "llama-local", 22),
        (None, "anthropic/claude-sonnet-4.5", 33),
        ("anthropic", "claude-sonnet-4-5", 200_000),
    ],
)
async def test_what_is_configured_wins(provider: str | None, model: str, tokens: int) -> None:
    catalogue = ModelsDevCatalogue({"openai/gpt-4o": 11, "llama-local": 22, "openrouter/anthropic/claude-sonnet-4.5": 44})
    if tokens == 33:
        catalogue = ModelsDevCatalogue({"claude-sonnet-4-5": 33})
    assert await catalogue.context_window_tokens(ModelRoute(provider=provider, model=model)) == tokens


async def test_the_packaged_list_knows_models_of_long_standing() -> None:
    catalogue = ModelsDevCatalogue()
    routes = [("openai", "gpt-4o"), ("anthropic", "claude-sonnet-4-5-20250929"), ("google", "gemini-2.5-pro")]
    windows = [await catalogue.context_window_tokens(ModelRoute(provider=provider, model=model)) for provider, model in routes]
    assert windows == [128_000, 200_000, 1_048_576]


async def test_many_first_questions_at_once_read_the_list_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    def counted() -> Iterator[tuple[str, str, int]]:
        reads.append(1)
        yield "openai", "gpt-4o", 128_000

    monkeypatch.setattr(models_dev, "_catalogue_entries", counted)
    catalogue = ModelsDevCatalogue()
    route = ModelRoute(provider="openai", model="gpt-4o")
    assert await asyncio.gather(*(catalogue.context_window_tokens(route) for _ in range(20))) == [128_000] * 20
    assert reads == [1]


async def test_a_list_that_cannot_be_read_is_an_error_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[tuple[str, str, int]]:
        raise OSError("/a/path/of/ours")
        yield "", "", 0

    catalogue = ModelsDevCatalogue({"stated": 5})
    route = ModelRoute(provider="openai", model="gpt-4o")
    with monkeypatch.context() as patch:
        patch.setattr(models_dev, "_catalogue_entries", broken)
        with pytest.raises(ModelMetadataError) as caught:
            await catalogue.context_window_tokens(route)
        assert await catalogue.context_window_tokens(ModelRoute(model="stated")) == 5
    assert str(caught.value) == "the model catalogue cannot be read (OSError)"
    assert caught.value.metadata == {"provider": "openai", "model": "gpt-4o"}
    assert await catalogue.context_window_tokens(route) == 128_000


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize("model", ["-" * 100_000, "/" * 100_000, ".a" * 50_000, "-20250101" * 10_000, "x[" * 50_000, "\ud800"])
async def test_a_hostile_model_name_is_unknown(model: str) -> None:
    assert await ModelsDevCatalogue().context_window_tokens(ModelRoute(provider=model, model=model)) is None


def test_the_most_exact_key_comes_first() -> None:
    keys = model_keys("Anthropic/Claude-Sonnet-4.5-20250929:free")
    assert keys == [
        "anthropic/claude-sonnet-4-5-20250929:free",
        "anthropic/claude-sonnet-4-5-20250929",
        "anthropic/claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929:free",
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-5",
    ]


def test_nothing_is_read_before_the_first_question_and_grpc_never_is() -> None:
    program = (
        "import sys; from sessionref_server.adapters.models.models_dev import ModelsDevCatalogue; ModelsDevCatalogue();"
        "print(sorted({'models_dev', 'grpc', 'google'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"
