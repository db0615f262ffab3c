from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fakes.shelf_session_source import ShelfSessionSource
from sessionref_server.domain.session import SessionHead, SessionId
from sessionref_server.service.session_catalog import SessionCatalog, SessionQuery

FOR_EVER_SECONDS = 3600.0


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[SessionCatalog]:
    source = ShelfSessionSource()
    source.fill([SessionHead(session_id=SessionId("s"), source="dsh", cwd=str(tmp_path))])
    catalog = SessionCatalog([source])
    running = asyncio.create_task(catalog.run())
    await asyncio.sleep(0)
    yield catalog
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def complete(catalog: SessionCatalog, query: SessionQuery) -> None:
    while not (result := catalog.search(query)).complete:
        await catalog.wait_change(result.better_within_seconds, result.state)


async def test_change_while_an_answer_was_under_way_is_not_waited_for_again(catalog: SessionCatalog, tmp_path: Path) -> None:
    query = SessionQuery(target_cwd=str(tmp_path))
    first = catalog.search(query)
    assert not first.complete
    await complete(catalog, query)
    await asyncio.wait_for(catalog.wait_change(FOR_EVER_SECONDS, first.state), 10)


async def test_complete_answer_needs_no_waiting(catalog: SessionCatalog) -> None:
    query = SessionQuery(target_cwd="/nowhere")
    await complete(catalog, query)
    assert catalog.search(query).state == ()
