from __future__ import annotations

import pytest
from sessionref_server.domain.session import SessionHead, SessionId
from sessionref_server.domain.suggest.first_page import first_page
from sessionref_server.domain.suggest.rank_sessions import SessionIndex, SessionQuery, SubagentVisibility


def head(name: str, created_at_ms: int, *, cwd: str | None = "/w", subagent: bool = False) -> SessionHead:
    return SessionHead(session_id=SessionId(name), source="dsh", cwd=cwd, created_at_ms=created_at_ms, is_subagent=subagent)


def page(heads: list[SessionHead], limit: int, **fields: object) -> list[str]:
    index = SessionIndex(sources_listing_subagents=["dsh"])
    index.replace(heads)
    query = SessionQuery(target_id=SessionId("me"), target_cwd="/w", limit=limit, **fields)  # type: ignore[arg-type]
    return [session.head.session_id for session in first_page(index, query)]


HELPERS = [head(f"helper-{number:03d}", 1000 + number, subagent=True) for number in range(200)]
OLD = [head(f"real-{number}", number) for number in range(3)]


def test_sessions_older_than_hundreds_of_subagents_are_on_the_page() -> None:
    found = page([*HELPERS, *OLD], 50)
    assert (len(found), found[:2], found[-3:]) == (50, ["helper-199", "helper-198"], ["real-2", "real-1", "real-0"])


def test_subagents_take_half_of_the_page_when_there_are_enough_others() -> None:
    found = page([*HELPERS, *(head(f"real-{number:03d}", number) for number in range(100))], 50)
    assert [name.partition("-")[0] for name in found] == ["helper"] * 25 + ["real"] * 25


def test_order_of_the_tiers_holds_on_a_flooded_page() -> None:
    others = [head("elsewhere", 1, cwd="/x"), head("nowhere", 2, cwd=None), head("here", 3)]
    assert page([*HELPERS, *others], 20)[-3:] == ["here", "nowhere", "elsewhere"]


@pytest.mark.parametrize("limit", [1, 5, 19])
def test_the_very_first_candidates_are_the_index_s(limit: int) -> None:
    assert page([*HELPERS, *OLD], limit) == [f"helper-{number}" for number in range(199, 199 - limit, -1)]


@pytest.mark.parametrize("limit", [20, 203, 1000])
def test_page_without_a_flood_is_the_index_s(limit: int) -> None:
    index = SessionIndex(sources_listing_subagents=["dsh"])
    index.replace([*OLD, *HELPERS[:5]])
    query = SessionQuery(target_id=SessionId("me"), limit=limit)
    assert first_page(index, query) == index.search(query)


def test_page_without_subagents_is_asked_for_as_before() -> None:
    assert page([*HELPERS, *OLD], 50, subagents=SubagentVisibility.EXCLUDE) == ["real-2", "real-1", "real-0"]


def test_page_of_subagents_only_is_full() -> None:
    assert len(page(HELPERS, 50)) == 50
