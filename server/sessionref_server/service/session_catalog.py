"""The sessions of all sources in one index: searched at every keystroke, read by id, kept up to date in the background."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.errors import InvalidRequestError, SourceUnavailableError, UnknownSessionError
from sessionref_server.domain.limits import DEFAULT_SESSION_CANDIDATES
from sessionref_server.domain.ports import HeadChanges, SessionSource, SourceCheck
from sessionref_server.domain.session import SessionHead, SessionId
from sessionref_server.domain.suggest import rank_sessions
from sessionref_server.domain.suggest.first_page import first_page
from sessionref_server.domain.suggest.rank_sessions import RankedSession, SessionIndex, SubagentVisibility
from sessionref_server.service.same_directories import PATIENCE_SECONDS, SameDirectories

RESTART_SECONDS = 2.0
"""Pause before a source that failed altogether is followed again."""
DIRECTORIES_SECONDS = 15.0
"""How often recorded directories are looked at again, for links that were made or moved."""
FIRST_TICK_SECONDS = 0.005
TICK_SECONDS = 0.05
"""Changes within this time are told together to whoever waits for one."""

_VISIBILITY = {
    None: SubagentVisibility.BY_SOURCE,
    True: SubagentVisibility.INCLUDE,
    False: SubagentVisibility.EXCLUDE,
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    """One search."""

    target_id: str = ""
    """Never a candidate."""
    target_cwd: str | None = None
    text: str = ""
    limit: int = DEFAULT_SESSION_CANDIDATES
    sources: Collection[str] = ()
    """Names of the sources to search; empty for all."""
    subagents: bool | None = None
    """Whether subagent sessions are offered; ``None`` leaves it to each source."""


CatalogState = tuple[object, ...]
"""Differs when a search may give something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What is known now."""

    found: Sequence[RankedSession]
    """Candidates, best first, each with whether it is of the target's workspace."""
    checks: Sequence[SourceCheck]
    """State of each source searched."""
    complete: bool
    """No better answer is coming by itself: all first scans are over, and the target's directory is known."""
    better_within_seconds: float = 0.0
    """By when the answer is complete, as far as it can be told."""
    state: CatalogState = ()
    """What it was made from, for ``wait_change``; empty when it is complete."""


class SessionCatalog:
    """All sources. ``run`` must be running for anything to be found."""

    def __init__(self, sources: Sequence[SessionSource], sources_listing_subagents: Collection[str] = ()) -> None:
        """``sources_listing_subagents``: names of sources whose subagent sessions are offered unless a search says otherwise."""
        self._sources = {source.name: source for source in sources}
        self._index = SessionIndex(sources_listing_subagents)
        self._directories = SameDirectories()
        self._generation = 0
        self._directories_due = asyncio.Event()

    def __len__(self) -> int:
        return len(self._index)

    async def run(self) -> None:
        """Follow all sources until cancelled. A source that fails is followed again and never ends the others."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for source in self._sources.values():
                    tasks.create_task(self._follow(source))
                tasks.create_task(self._keep_directories())
        finally:
            self._directories.close()

    def checks(self) -> list[SourceCheck]:
        """State of every source."""
        return [source.check() for source in self._sources.values()]

    def check_names(self, sources: Collection[str]) -> None:
        """Raises InvalidRequestError when a source is not known."""
        for name in sources:
            self._source(name)

    def head(self, session_id: SessionId) -> SessionHead | None:
        """Head of a listed session."""
        return self._index.get(session_id)

    def search(self, query: SessionQuery) -> SearchResult:
        """Rank what is known now. Never waits, never touches a disk.

        Raises:
            InvalidReferenceError: the limit is not a positive integer.
            InvalidRequestError: a source is not known.
        """
        checks = [self._source(name).check() for name in query.sources or self._sources]
        cwd = query.target_cwd
        others = self._directories.others(cwd) if cwd is not None else ()
        ranked = first_page(
            self._index,
            rank_sessions.SessionQuery(
                target_id=SessionId(query.target_id),
                target_cwd=cwd,
                text=query.text,
                limit=query.limit,
                sources=frozenset(query.sources) or None,
                subagents=_VISIBILITY[query.subagents],
                same_directories=others,
            ),
        )
        is_settled = cwd is None or self._directories.is_settled(cwd)
        are_ready = all(check.ready for check in checks)
        is_complete = is_settled and are_ready
        return SearchResult(
            found=ranked,
            checks=checks,
            complete=is_complete,
            better_within_seconds=PATIENCE_SECONDS if are_ready else math.inf,
            state=() if is_complete else self._state(),
        )

    async def wait_change(self, timeout_seconds: float, since: CatalogState = ()) -> None:
        """Wait until a search may give something else than before, or until the time is over.

        ``since``: the state of the search before; what changed while that was being answered counts too.
        """
        before, pause_seconds = since or self._state(), FIRST_TICK_SECONDS
        while self._state() == before and timeout_seconds > 0:
            pause_seconds = min(pause_seconds, timeout_seconds)
            await asyncio.sleep(pause_seconds)
            timeout_seconds -= pause_seconds
            pause_seconds = min(2 * pause_seconds, TICK_SECONDS)

    async def wait_ready(self) -> None:
        """Wait until the first scan of every source is over."""
        while not all(check.ready for check in self.checks()):
            await self.wait_change(RESTART_SECONDS)

    async def read_surface(self, session_id: SessionId) -> Capture:
        """Read one session, listed or not, as its model sees it now. Raises a subclass of ReadFailedError."""
        unknown: UnknownSessionError | None = None
        unavailable: SourceUnavailableError | None = None
        for source in self._candidate_sources(session_id):
            try:
                return await source.read_surface(session_id)
            except UnknownSessionError as error:
                unknown = error
            except SourceUnavailableError as error:
                unavailable = unavailable or error
        raise unavailable or unknown or UnknownSessionError("no session has this id", session_id=session_id)

    def _candidate_sources(self, session_id: SessionId) -> Sequence[SessionSource]:
        """The source that listed the session, else the one whose name the id begins with, else all in turn."""
        head = self._index.get(session_id)
        name = head.source if head is not None else self._prefix_source(session_id)
        return list(self._sources.values()) if name is None else [self._sources[name]]

    def _prefix_source(self, session_id: SessionId) -> str | None:
        name, separator, _ = session_id.partition(":")
        return name if separator and name in self._sources else None

    def _source(self, name: str) -> SessionSource:
        source = self._sources.get(name)
        if source is None:
            raise InvalidRequestError("sources names a source that is not configured", field="sources")
        return source

    def _state(self) -> CatalogState:
        return self._generation, self._directories.answers, *(check.ready for check in self.checks())

    async def _follow(self, source: SessionSource) -> None:
        while True:
            try:
                await source.follow_heads(partial(self._take, source.name))
            except Exception as error:  # noqa: BLE001 - one source in trouble is no trouble of the others
                _log.warning("source %s failed and is followed again: %s", source.name, type(error).__name__)
            await asyncio.sleep(RESTART_SECONDS)

    def _take(self, name: str, changes: HeadChanges) -> None:
        """Take in a step. No source speaks for another: neither by an id with another's prefix, nor by a removal."""
        self._index.replace(
            [head for head in changes.changed if self._prefix_source(head.session_id) in {None, name}],
            [session_id for session_id in changes.removed if self._owner(session_id) == name],
        )
        self._generation += 1
        if self._directories.expect(head.cwd for head in changes.changed):
            self._directories_due.set()

    def _owner(self, session_id: SessionId) -> str | None:
        head = self._index.get(session_id)
        return None if head is None else head.source

    async def _keep_directories(self) -> None:
        while True:
            self._directories_due.clear()
            await self._directories.look_at_expected()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._directories_due.wait(), DIRECTORIES_SECONDS)
                await asyncio.sleep(TICK_SECONDS)
                continue
            await self._directories.look_at_recorded(list(self._index.directories()))
