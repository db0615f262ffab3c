from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.memory_session_source import MemorySessionSource
from sessionref_server.domain.errors import (
    DamagedSessionError,
    InvalidReferenceError,
    InvalidRequestError,
    SourceUnavailableError,
    UnknownSessionError,
)
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.session import SessionHead, SessionId, SessionStatus
from sessionref_server.service import session_catalog
from sessionref_server.service.session_catalog import SearchResult, SessionCatalog, SessionQuery

PATIENCE_SECONDS = 10.0


def head(session_id: str, source: str = "memory", **fields: object) -> SessionHead:
    return replace(SessionHead(session_id=SessionId(session_id), source=source), **fields)  # pyright: ignore[reportArgumentType]


def source_of(name: str, *heads: SessionHead) -> MemorySessionSource:
    source = MemorySessionSource(name)
    for each in heads:
        source.put(each, [Message(Role.USER, f"text of {each.session_id}")])
    return source


@asynccontextmanager
async def running(*sources: MemorySessionSource, listing_subagents: tuple[str, ...] = ()) -> AsyncGenerator[SessionCatalog]:
    catalog = SessionCatalog(sources, listing_subagents)
    task = asyncio.create_task(catalog.run())
    await catalog.wait_change(PATIENCE_SECONDS)
    try:
        yield catalog
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def complete_search(catalog: SessionCatalog, query: SessionQuery) -> SearchResult:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (result := catalog.search(query)).complete:
            await catalog.wait_change(PATIENCE_SECONDS)
        return result


def ids(result: SearchResult) -> list[str]:
    return [found.session_id for found, _ in result.found]


async def test_sessions_of_all_sources_are_searched_together() -> None:
    async with running(
        source_of("dsh", head("d", "dsh", created_at_ms=2)), source_of("codex", head("codex:c", "codex", created_at_ms=1))
    ) as catalog:
        result = catalog.search(SessionQuery())
    assert ids(result) == ["d", "codex:c"]
    assert [check.name for check in result.checks] == ["dsh", "codex"]


async def test_only_the_sources_asked_for_are_searched() -> None:
    async with running(source_of("dsh", head("d", "dsh")), source_of("codex", head("codex:c", "codex"))) as catalog:
        result = catalog.search(SessionQuery(sources=["codex"]))
    assert ids(result) == ["codex:c"]
    assert [check.name for check in result.checks] == ["codex"]


async def test_an_unknown_source_is_an_invalid_request() -> None:
    async with running(source_of("dsh")) as catalog:
        with pytest.raises(InvalidRequestError) as refused:
            catalog.search(SessionQuery(sources=["nothing"]))
    assert refused.value.metadata == {"field": "sources"}


async def test_a_limit_of_zero_is_an_invalid_reference() -> None:
    async with running(source_of("dsh")) as catalog:
        with pytest.raises(InvalidReferenceError):
            catalog.search(SessionQuery(limit=0))


async def test_the_target_is_no_candidate() -> None:
    async with running(source_of("dsh", head("d", "dsh"), head("e", "dsh"))) as catalog:
        assert ids(catalog.search(SessionQuery(target_id="d"))) == ["e"]


async def test_subagents_are_listed_as_their_source_or_the_search_says() -> None:
    child, other = head("d", "dsh", is_subagent=True), head("codex:c", "codex", is_subagent=True)
    async with running(source_of("dsh", child), source_of("codex", other), listing_subagents=("dsh",)) as catalog:
        assert ids(catalog.search(SessionQuery())) == ["d"]
        assert set(ids(catalog.search(SessionQuery(subagents=True)))) == {"d", "codex:c"}
        assert ids(catalog.search(SessionQuery(subagents=False))) == []
        assert (await catalog.read_surface(SessionId("codex:c"))).session_id == "codex:c"


async def test_a_search_is_incomplete_until_every_source_searched_is_ready() -> None:
    slow = source_of("codex")
    slow.ready = False
    async with running(source_of("dsh", head("d", "dsh")), slow) as catalog:
        assert (ids(catalog.search(SessionQuery())), catalog.search(SessionQuery()).complete) == (["d"], False)
        assert catalog.search(SessionQuery(sources=["dsh"])).complete
        slow.ready = True
        await asyncio.wait_for(catalog.wait_ready(), PATIENCE_SECONDS)
        assert catalog.search(SessionQuery()).complete


async def test_waiting_ends_with_a_change_or_with_its_time() -> None:
    source = source_of("dsh")
    async with running(source) as catalog:
        await catalog.wait_change(0.01)
        waiting = asyncio.create_task(catalog.wait_change(PATIENCE_SECONDS))
        await asyncio.sleep(0)
        source.put(head("d", "dsh"))
        await asyncio.wait_for(waiting, PATIENCE_SECONDS)
        assert ids(catalog.search(SessionQuery())) == ["d"]


async def test_a_source_that_crashes_is_followed_again_and_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_catalog, "RESTART_SECONDS", 0.0)
    crashing = source_of("codex", head("codex:c", "codex"))
    crashing.crashes = 3
    async with running(source_of("dsh", head("d", "dsh")), crashing) as catalog:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(catalog) < 2:
                await catalog.wait_change(PATIENCE_SECONDS)


async def test_a_source_that_fails_is_reported_beside_the_results() -> None:
    failing = source_of("codex")
    failing.failure = "folder cannot be read"
    async with running(source_of("dsh", head("d", "dsh")), failing) as catalog:
        result = catalog.search(SessionQuery())
    assert (ids(result), [check.failure for check in result.checks]) == (["d"], ["", "folder cannot be read"])


async def test_a_removed_session_is_found_no_more() -> None:
    source = source_of("dsh", head("d", "dsh"))
    async with running(source) as catalog:
        source.remove(SessionId("d"))
        assert (ids(catalog.search(SessionQuery())), catalog.head(SessionId("d"))) == ([], None)


async def test_a_session_is_read_from_the_source_that_listed_it() -> None:
    dsh, codex = source_of("dsh", head("d", "dsh")), source_of("codex")
    async with running(codex, dsh) as catalog:
        capture = await catalog.read_surface(SessionId("d"))
    assert ([message.text for message in capture.conversation], codex.reads, dsh.reads) == (["text of d"], [], ["d"])


async def test_an_id_that_is_not_listed_is_asked_of_the_source_it_names() -> None:
    dsh, codex = source_of("dsh"), source_of("codex")
    async with running(dsh, codex) as catalog:
        with pytest.raises(UnknownSessionError):
            await catalog.read_surface(SessionId("codex:x"))
    assert (dsh.reads, codex.reads) == ([], ["codex:x"])


async def test_an_id_that_names_no_source_is_asked_of_all() -> None:
    dsh, codex = source_of("dsh"), source_of("codex", head("unlisted", "codex", status=SessionStatus.NOT_A_SESSION))
    async with running(dsh, codex) as catalog:
        assert (await catalog.read_surface(SessionId("unlisted"))).session_id == "unlisted"
        with pytest.raises(UnknownSessionError) as refused:
            await catalog.read_surface(SessionId("nobody's"))
    assert refused.value.metadata == {"session_id": "nobody's"}


async def test_a_source_that_cannot_be_reached_is_told_rather_than_an_unknown_id() -> None:
    dsh, codex = source_of("dsh"), source_of("codex")
    dsh.failure = "out of order"
    async with running(dsh, codex) as catalog:
        with pytest.raises(SourceUnavailableError):
            await catalog.read_surface(SessionId("perhaps"))


async def test_the_reason_of_a_refusal_passes() -> None:
    async with running(source_of("dsh", head("d", "dsh", status=SessionStatus.DAMAGED))) as catalog:
        with pytest.raises(DamagedSessionError):
            await catalog.read_surface(SessionId("d"))


async def test_no_source_takes_an_id_that_names_another() -> None:
    async with running(source_of("dsh", head("codex:c", "dsh"), head("dsh:d", "dsh")), source_of("codex")) as catalog:
        assert ids(catalog.search(SessionQuery())) == ["dsh:d"]


async def test_no_source_takes_back_the_session_of_another() -> None:
    one, two = source_of("one", head("same", "one")), source_of("two", head("same", "two"))
    async with running(one, two) as catalog:
        one.remove(SessionId("same"))
        assert catalog.search(SessionQuery()).found == [(head("same", "two"), False)]


async def test_equal_directories_are_one_workspace_though_they_do_not_exist() -> None:
    async with running(source_of("dsh", head("d", "dsh", cwd="/no/such/place"))) as catalog:
        result = await complete_search(catalog, SessionQuery(target_cwd="/no/such/place"))
    assert [same for _, same in result.found] == [True]


async def test_a_directory_reached_through_a_link_is_the_same_workspace(tmp_path: Path) -> None:
    real, link, other = tmp_path / "srv", tmp_path / "link", tmp_path / "other"
    real.mkdir()
    other.mkdir()
    link.symlink_to(real)
    sessions = source_of(
        "dsh",
        head("elsewhere", "dsh", cwd=str(other), created_at_ms=9),
        head("here", "dsh", cwd=str(real), created_at_ms=1),
        head("bad", "dsh", cwd="/nul\0in/path", created_at_ms=0),
    )
    async with running(sessions) as catalog:
        result = await complete_search(catalog, SessionQuery(target_cwd=str(link)))
    assert [(found.session_id, same) for found, same in result.found] == [("here", True), ("elsewhere", False), ("bad", False)]


async def test_a_recorded_link_is_the_workspace_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    async with running(source_of("dsh", head("d", "dsh", cwd=str(tmp_path / "link")))) as catalog:
        result = await complete_search(catalog, SessionQuery(target_cwd=str(tmp_path)))
    assert [same for _, same in result.found] == [True]


async def test_a_directory_that_does_not_answer_holds_up_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessionref_server.service.same_directories.PATIENCE_SECONDS", 0.0)
    catalog = SessionCatalog([source_of("dsh")])
    monkeypatch.setattr(catalog._directories, "_ask", lambda *_: asyncio.sleep(3600))
    catalog.search(SessionQuery(target_cwd="/hangs"))
    await asyncio.sleep(0)
    assert catalog.search(SessionQuery(target_cwd="/hangs")).complete
    catalog._directories.close()
