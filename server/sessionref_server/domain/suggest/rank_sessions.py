"""Ranks the sessions a person may refer to, at every keystroke, from heads in memory alone.

Tier 0 are the sessions of the target's workspace, tier 1 those without a recorded directory, tier 2 the others; inside a tier the
newest creation comes first, then the session id by code point. A query is a case-insensitive substring of session id, directory,
label or display title; both sides are folded by Unicode's lower case mapping and nothing else.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from sessionref_server.domain.limits import DEFAULT_SESSION_CANDIDATES, check_limit
from sessionref_server.domain.session import LISTED_STATUSES, SessionHead, SessionId
from sessionref_server.domain.suggest.directories import NO_DIRECTORY, Directories
from sessionref_server.domain.suggest.haystack import FIELD_END, folded
from sessionref_server.domain.suggest.id_shapes import IdShapes
from sessionref_server.domain.suggest.narrowing import Narrowing
from sessionref_server.domain.suggest.session_order import Admission, Needle, SessionOrder, order_key

_CACHED_WORKSPACES: Final = 64
_BULK_PART: Final = 8
"""More new sessions than an eighth of what is there are sorted in at once."""


class SubagentVisibility(Enum):
    """Whether sessions that another session's agent started are candidates."""

    BY_SOURCE = "by-source"
    """Each source decides."""
    INCLUDE = "include"
    EXCLUDE = "exclude"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    """One search."""

    target_id: SessionId
    """Never a candidate."""
    target_cwd: str | None = None
    text: str = ""
    limit: int = DEFAULT_SESSION_CANDIDATES
    sources: Collection[str] | None = None
    """Names of the sources to search; ``None`` for all."""
    subagents: SubagentVisibility = SubagentVisibility.BY_SOURCE
    same_directories: Collection[str] = ()
    """Other recorded directories that are the target's under another name (a link); see ``SessionIndex.directories``."""


class RankedSession(NamedTuple):
    """A candidate. A tuple, since fifty are made at every keystroke."""

    head: SessionHead
    same_workspace: bool


class SessionIndex:
    """The heads of all sessions, kept so that a search costs about what it returns, and a change next to nothing.

    Not safe to change from another thread while it is searched.
    """

    def __init__(self, sources_listing_subagents: Collection[str] = ()) -> None:
        self._sources_listing_subagents = frozenset(sources_listing_subagents)
        self._heads: dict[SessionId, SessionHead] = {}
        self._directories = Directories()
        self._shapes = IdShapes()
        self._placed = _Group(self._shapes)
        self._placeless = _Group(self._shapes)
        self._narrowing: Narrowing[tuple[bytes, RankedSession]] = Narrowing()
        self._workspaces: OrderedDict[frozenset[int], _Group] = OrderedDict()
        """The sessions of workspaces that were searched from lately, by the numbers of their directories."""

    def __len__(self) -> int:
        return len(self._heads)

    def __iter__(self) -> Iterator[SessionHead]:
        return iter(self._heads.values())

    def get(self, session_id: SessionId) -> SessionHead | None:
        """Head of one listed session."""
        return self._heads.get(session_id)

    def directories(self) -> Iterator[str]:
        """The distinct recorded directories of the sessions here."""
        return iter(self._directories)

    def replace(self, changed: Iterable[SessionHead] = (), removed: Iterable[SessionId] = ()) -> None:
        """Take in a step of the catalogue. A head whose status is not a listed one takes its session out."""
        for session_id in removed:
            self._remove(session_id)
        fresh: dict[SessionId, SessionHead] = {}
        for head in changed:
            fresh.pop(head.session_id, None)
            if head.status not in LISTED_STATUSES:
                self._remove(head.session_id)
            elif not self._swap(head):
                self._remove(head.session_id)
                fresh[head.session_id] = head
        if len(fresh) * _BULK_PART > len(self._heads):
            self._add_all(fresh.values())
        else:
            for head in fresh.values():
                self._add(head)

    def search(self, query: SessionQuery) -> list[RankedSession]:
        """The first ``query.limit`` candidates in order. Raises InvalidReferenceError for a limit that is not positive."""
        limit = min(check_limit(query.limit), len(self._heads))
        own, text = self._own_directories(query), folded(query.text)
        searcher = (query.target_id, own, query.sources, query.subagents)
        among = self._narrowing.among(searcher, text)
        if among is not None:
            return list(islice((session for texts, session in among if text in texts), limit))
        found = self._ranked(query, own, self._needle(text), limit)
        if len(found) < limit:
            self._narrowing.keep(searcher, text, [(_folded_texts(session.head), session) for session in found])
        return found

    def _ranked(self, query: SessionQuery, own: frozenset[int], needle: Needle, limit: int) -> list[RankedSession]:
        with_hidden = query.subagents is SubagentVisibility.INCLUDE
        anywhere, elsewhere = self._admission(query, frozenset()), self._admission(query, own)
        tiers: list[tuple[_Group, Admission]] = [(self._placeless, anywhere), (self._placed, elsewhere)]
        found: list[RankedSession] = []
        if own:
            heads = self._workspace(own).find(needle, anywhere, limit, with_hidden=with_hidden)
            found += [RankedSession(head, same_workspace=True) for head in heads]
        for group, admission in tiers:
            if len(found) < limit:
                heads = group.find(needle, admission, limit - len(found), with_hidden=with_hidden)
                found += [RankedSession(head, same_workspace=False) for head in heads]
        return found

    def _admission(self, query: SessionQuery, other_than: frozenset[int]) -> Admission:
        return Admission(
            target=self._heads.get(query.target_id),
            sources=query.sources,
            without_subagents=query.subagents is SubagentVisibility.EXCLUDE,
            other_than=other_than,
        )

    def _needle(self, text: bytes) -> Needle:
        if not text:
            return Needle(text=b"", in_ids=False, directories=frozenset())
        return Needle(text=text, in_ids=self._shapes.may_hold(text), directories=self._directories.matching(text))

    def _own_directories(self, query: SessionQuery) -> frozenset[int]:
        if query.target_cwd is None:
            return frozenset()
        return self._directories.same_as(query.target_cwd) | self._directories.numbers_of(query.same_directories)

    def _workspace(self, directories: frozenset[int]) -> _Group:
        """The sessions of some directories, gathered at the first search from there and kept up to date from then on."""
        group = self._workspaces.get(directories)
        if group is None:
            group = _Group(self._shapes)
            group.shown.fill(self._placed.shown.in_directories(directories))
            group.hidden.fill(self._placed.hidden.in_directories(directories))
            self._workspaces[directories] = group
            if len(self._workspaces) > _CACHED_WORKSPACES:
                self._workspaces.popitem(last=False)
        self._workspaces.move_to_end(directories)
        return group

    def _orders_of(self, head: SessionHead, directory: int) -> list[SessionOrder]:
        """Every order a session is in."""
        hidden = self._is_hidden(head)
        if directory == NO_DIRECTORY:
            return [self._placeless.order(hidden=hidden)]
        workspaces = (group for directories, group in self._workspaces.items() if directory in directories)
        return [group.order(hidden=hidden) for group in (self._placed, *workspaces)]

    def _is_hidden(self, head: SessionHead) -> bool:
        return head.is_subagent and head.source not in self._sources_listing_subagents

    def _swap(self, head: SessionHead) -> bool:
        """Replace a head when nothing that is searched or ranked by differs; False when it does or the session is new."""
        old = self._heads.get(head.session_id)
        if old is None or _searched_fields(old) != _searched_fields(head):
            return False
        for order in self._orders_of(head, self._directories.number(head.cwd)):
            order.swap(head)
        self._heads[head.session_id] = head
        self._narrowing.clear()
        return True

    def _add(self, head: SessionHead) -> None:
        directory = self._register(head)
        for order in self._orders_of(head, directory):
            order.add(head, directory)

    def _add_all(self, heads: Iterable[SessionHead]) -> None:
        """Add many new sessions at the cost of sorting everything once."""
        batches: dict[tuple[bool, bool], list[tuple[SessionHead, int]]] = defaultdict(list)
        for head in heads:
            directory = self._register(head)
            batches[directory != NO_DIRECTORY, self._is_hidden(head)].append((head, directory))
        for (placed, hidden), batch in batches.items():
            group = self._placed if placed else self._placeless
            group.order(hidden=hidden).fill(batch)
        self._workspaces.clear()

    def _register(self, head: SessionHead) -> int:
        """Note a new session; the number of its directory."""
        self._heads[head.session_id] = head
        self._narrowing.clear()
        self._shapes.learn(head.session_id)
        return self._directories.acquire(head.cwd)

    def _remove(self, session_id: SessionId) -> None:
        head = self._heads.pop(session_id, None)
        if head is None:
            return
        self._narrowing.clear()
        for order in self._orders_of(head, self._directories.number(head.cwd)):
            order.discard(head)
        self._directories.release(head.cwd)


class _Group:
    """Sessions, apart by whether their source lists them by default, so that hundreds of hidden ones cost a search nothing."""

    __slots__ = ("hidden", "shown")

    def __init__(self, shapes: IdShapes) -> None:
        self.shown = SessionOrder(shapes)
        self.hidden = SessionOrder(shapes)

    def order(self, *, hidden: bool) -> SessionOrder:
        return self.hidden if hidden else self.shown

    def find(self, needle: Needle, admission: Admission, limit: int, *, with_hidden: bool) -> list[SessionHead]:
        shown = self.shown.find(needle, admission, limit)
        if not with_hidden:
            return shown
        hidden = self.hidden.find(needle, admission, limit)
        return list(islice(merge(shown, hidden, key=order_key), limit))


def _folded_texts(head: SessionHead) -> bytes:
    """Everything of one session that a query is looked for in."""
    texts = (head.session_id, head.title, head.cwd, head.subagent_label)
    return FIELD_END.join([folded(text) for text in texts if text is not None])


def _searched_fields(head: SessionHead) -> tuple[object, ...]:
    return (head.created_at_ms, head.cwd, head.title, head.subagent_label, head.source, head.is_subagent)
