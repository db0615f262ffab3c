"""A ModelCatalogue with windows to order."""

from __future__ import annotations

from collections.abc import Mapping

from sessionref_server.domain.errors import ModelMetadataError
from sessionref_server.domain.session import ModelRoute


class WindowCatalogue:
    def __init__(self, windows: Mapping[tuple[str, str], int] | None = None) -> None:
        self.windows = dict(windows or {})
        """Context windows in tokens by provider and model."""
        self.failing = False
        self.asked: list[ModelRoute] = []

    async def context_window_tokens(self, route: ModelRoute) -> int | None:
        self.asked.append(route)
        if self.failing:
            raise ModelMetadataError("the model catalogue failed", provider=route.provider or "", model=route.model or "")
        if route.provider is None or route.model is None:
            return None
        return self.windows.get((route.provider, route.model))
