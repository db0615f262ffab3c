"""A server for one test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from rpc.served import Serve, Served, make_config, serving
from rpc.vector_rig import VectorRig, running_rig
from sessionref_server.config import Config
from sessionref_server.domain.ports import ModelCatalogue, SessionSource


@pytest.fixture
def config_for(tmp_path: Path) -> Callable[..., Config]:
    """A configuration in which only the named sources are read, from the given folders, and all is kept in tmp_path."""
    return lambda roots, **flags: make_config(tmp_path, roots, **flags)


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serve folders: ``async with serve({"dsh": folder}, prepare__max_references="2") as served``.

    ``sources`` and ``models`` stand in for the configured ones.
    """

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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[VectorRig]:
    """One server for all cases of a module; its tests carry the mark ``in_module_loop``."""
    async with running_rig(tmp_path_factory.mktemp("rig")) as rig:
        yield rig
