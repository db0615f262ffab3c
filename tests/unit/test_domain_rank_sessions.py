from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from sessionref_server.domain.errors import InvalidReferenceError
from sessionref_server.domain.session import LISTED_STATUSES, SessionHead, SessionId, SessionStatus
from sessionref_server.domain.suggest import session_order
from sessionref_server.domain.suggest.directories import Directories
from sessionref_server.domain.suggest.rank_sessions import SessionIndex, SessionQuery, SubagentVisibility
from sessionref_server.domain.workspace import same_workspace

WORDS = st.sampled_from(["", "Fix", "fix the parser", "İstanbul", "STRASSE straße", "修复", "k\u212a", "ab12", "x\x00y", "ff-0"])
CWDS = st.sampled_from([None, "", "/w", "/w/", "/W", "/other", "C:\\App", "c:/app", "/修"])
IDS = st.sampled_from(["s1", "S1", "s2", "claude-code:ab12-ff", "claude-code:AB12-fe", "codex:zz9", "odd id", "ff-0", "修", "me"])
HEADS = st.builds(
    SessionHead,
    session_id=IDS.map(SessionId),
    source=st.sampled_from(["dsh", "claude-code"]),
    title=st.none() | WORDS,
    subagent_label=st.none() | WORDS,
    cwd=CWDS,
    created_at_ms=st.integers(0, 3),
    updated_at_ms=st.integers(0, 3),
    is_subagent=st.booleans(),
    status=st.sampled_from(SessionStatus),
)
QUERIES = st.builds(
    SessionQuery,
    target_id=st.sampled_from(["me", "s1"]).map(SessionId),
    target_cwd=CWDS,
    text=WORDS | st.sampled_from(["f", "F", "/", "w", "\xff", "\x00", "ab12-f", "code:ab", "de:", "app", "İ", "i̇", "ß", "ss"]),
    limit=st.integers(1, 12),
    sources=st.none() | st.sampled_from([("dsh",), ("claude-code",), ()]),
    subagents=st.sampled_from(SubagentVisibility),
    same_directories=st.sampled_from([(), ("/other",), ("/gone", "/other")]),
)


def is_offered(head: SessionHead, query: SessionQuery) -> bool:
    if head.status not in LISTED_STATUSES or head.session_id == query.target_id:
        return False
    if query.sources is not None and head.source not in query.sources:
        return False
    if head.is_subagent and query.subagents is SubagentVisibility.EXCLUDE:
        return False
    if head.is_subagent and query.subagents is SubagentVisibility.BY_SOURCE and head.source != "dsh":
        return False
    texts = (head.session_id, head.cwd or "", head.label, head.display_title)
    return any(query.text.lower() in text.lower() for text in texts)


def is_own(head: SessionHead, query: SessionQuery) -> bool:
    linked = query.target_cwd is not None and head.cwd in query.same_directories
    return linked or same_workspace(head.cwd, query.target_cwd)


def naive_search(heads: list[SessionHead], query: SessionQuery) -> list[tuple[SessionHead, bool]]:
    offered = [(head, is_own(head, query)) for head in heads if is_offered(head, query)]

    def rank(candidate: tuple[SessionHead, bool]) -> tuple[int, int, str]:
        head, own = candidate
        tier = 0 if own else 1 if head.cwd is None else 2
        return tier, -head.created_at_ms, head.session_id

    return sorted(offered, key=rank)[: query.limit]


def found(index: SessionIndex, query: SessionQuery) -> list[tuple[SessionHead, bool]]:
    return [(ranked.head, ranked.same_workspace) for ranked in index.search(query)]


class ChangingCatalogue(RuleBasedStateMachine):
    """An index that is changed in every way between searches answers as one that looks at every head each time."""

    @initialize()
    def start(self) -> None:
        self.index = SessionIndex(sources_listing_subagents=["dsh"])
        self.heads: dict[SessionId, SessionHead] = {}

    @rule(changed=st.lists(HEADS, max_size=12), removed=st.lists(IDS.map(SessionId), max_size=3))
    def replace(self, changed: list[SessionHead], removed: list[SessionId]) -> None:
        self.index.replace(changed, removed)
        for session_id in removed:
            self.heads.pop(session_id, None)
        self.heads.update({head.session_id: head for head in changed})

    @rule(query=QUERIES)
    def search(self, query: SessionQuery) -> None:
        assert found(self.index, query) == naive_search(list(self.heads.values()), query)

    @rule()
    def count(self) -> None:
        listed = [head for head in self.heads.values() if head.status in LISTED_STATUSES]
        assert len(self.index) == len(listed)
        assert set(self.index.directories()) == {head.cwd for head in listed if head.cwd is not None}


TestChangingCatalogue = ChangingCatalogue.TestCase


def numbered(number: int, **fields: object) -> SessionHead:
    defaults = {"source": "dsh", "title": f"title {number}", "cwd": f"/w/{number % 7}", "created_at_ms": number % 50}
    return SessionHead(session_id=SessionId(f"s-{number:04d}"), **{**defaults, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [1, 100, 2_000])
def test_many_sessions_in_steps_of_any_size_are_found_in_order(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_order, "BLOCK_SESSIONS", 16)
    heads = [numbered(number) for number in range(2_000)]
    index = SessionIndex()
    for start in range(0, len(heads), step):
        index.replace(heads[start : start + step])
    index.replace(removed=[head.session_id for head in heads[::3]])
    kept = [head for number, head in enumerate(heads) if number % 3]

    for text in ("", "title 19", "s-01", "/w/3", "no such"):
        query = SessionQuery(target_id=SessionId("me"), target_cwd="/w/3", text=text, limit=500)
        assert found(index, query) == naive_search(kept, query)


def test_removing_everything_leaves_an_index_that_works() -> None:
    index = SessionIndex()
    index.replace([numbered(1), numbered(2)])
    index.replace(removed=[SessionId("s-0001"), SessionId("s-0002"), SessionId("unknown")])
    index.replace([numbered(3)])

    query = SessionQuery(target_id=SessionId("me"))
    assert found(index, query) == [(numbered(3), False)]


def test_a_head_that_only_grew_is_returned_as_it_is_now() -> None:
    index = SessionIndex()
    index.replace([numbered(1), numbered(2)])
    query = SessionQuery(target_id=SessionId("me"), target_cwd="/w/1")
    index.search(query)
    grown = replace(numbered(1), updated_at_ms=77)

    index.replace([grown])

    assert found(index, query) == [(grown, True), (numbered(2), False)]
    assert index.get(SessionId("s-0001")) is grown


def test_hidden_subagents_do_not_bury_the_others() -> None:
    index = SessionIndex(sources_listing_subagents=["dsh"])
    index.replace([numbered(number, is_subagent=True, source="claude-code", created_at_ms=100) for number in range(2_000)])
    real = [numbered(number) for number in (2_001, 2_002, 2_003)]
    index.replace(real)

    assert {head.session_id for head, _ in found(index, SessionQuery(target_id=SessionId("me")))} == {
        head.session_id for head in real
    }


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_is_not_positive_is_refused_even_of_an_empty_index(limit: int) -> None:
    with pytest.raises(InvalidReferenceError):
        SessionIndex().search(SessionQuery(target_id=SessionId("me"), limit=limit))


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3_000), max_size=60), st.sampled_from([b"d1", b"9", b"d", b"none"]))
def test_directories_in_use_are_found_by_any_part(used: list[int], needle: bytes) -> None:
    directories = Directories()
    numbers = {f"D{number}": directories.acquire(f"D{number}") for number in range(3_000)}
    for number in range(3_000):
        if number not in used:
            directories.release(f"D{number}")

    expected = {numbers[f"D{number}"] for number in used if number < 3_000 and needle.decode() in f"d{number}"}
    assert directories.matching(needle) == expected
    assert set(directories) == {f"D{number}" for number in used if number < 3_000}
