"""The page a person sees. A session whose agent started hundreds of others is not buried under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import merge
from typing import Final

from sessionref_server.domain.suggest.rank_sessions import RankedSession, SessionIndex, SessionQuery, SubagentVisibility
from sessionref_server.domain.suggest.session_order import OrderKey, order_key

FLOODED_PAGE: Final = 20
"""Candidates from which on a request is for a page to choose from; a shorter one is for the very first ones."""


def first_page(index: SessionIndex, query: SessionQuery) -> Sequence[RankedSession]:
    """The first ``query.limit`` candidates. On a page, sessions of subagents take at most half as long as there are others.

    Raises InvalidReferenceError for a limit that is not positive.
    """
    ranked = index.search(query)
    at_most = query.limit // 2
    if query.limit < FLOODED_PAGE or len(ranked) <= at_most:
        return ranked
    subagents = [session for session in ranked if session.head.is_subagent]
    if len(subagents) <= at_most:
        return ranked
    others = index.search(replace(query, subagents=SubagentVisibility.EXCLUDE))
    kept = subagents[: max(at_most, query.limit - len(others))]
    return [*merge(others[: query.limit - len(kept)], kept, key=_place)]


def _place(session: RankedSession) -> tuple[int, OrderKey]:
    """Tier and place in it, as the index ranks."""
    tier = 0 if session.same_workspace else 1 if session.head.cwd is None else 2
    return tier, order_key(session.head)
