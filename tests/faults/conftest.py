"""A server in this process, for one test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rpc.served import Serve, Served, make_config, serving
from sessionref_server.domain.ports import ModelCatalogue, SessionSource


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """As for the tests over gRPC: ``async with serve({"dsh": folder}, prepare__max_references="2") as served``."""

    @asynccontextmanager
    async def start(
        roots: dict[str, Path] | None = None,
        *,
        sources: Sequence[SessionSource] | None = None,
        models: ModelCatalogue | None = None,
        **flags: str,
    ) -> AsyncGenerator[Served]:
        async with serving(make_config(tmp_path, roots or {}, **flags), sources=sources, models=models) as served:
            yield served

    return start
