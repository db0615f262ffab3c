"""What every SessionSource must do. A source's test runs each check of ``SESSION_SOURCE_CONTRACT`` on a fresh rig."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pytest
from sessionref_server.domain.errors import (
    DamagedSessionError,
    SourceUnavailableError,
    UnknownSessionError,
    UnsupportedVersionError,
)
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.session import LISTED_STATUSES, SessionHead, SessionId, SessionStatus

if TYPE_CHECKING:
    from sessionref_server.domain.ports import HeadChanges, SessionSource

PATIENCE_SECONDS = 10.0


class SourceRig(Protocol):
    """A source, and hands on what it reads."""

    @property
    def source(self) -> SessionSource:
        """The source."""
        ...

    def session_id(self, native_id: str) -> SessionId:
        """Wire id of a session."""
        ...

    def put(self, native_id: str, texts: Sequence[str], *, title: str | None = None, status: SessionStatus | None = None) -> None:
        """Write a session of user messages, or write it anew; ``status`` makes it look so to a reader."""
        ...

    def remove(self, native_id: str) -> None:
        """Delete a session."""
        ...

    def make_unavailable(self) -> None:
        """Make the source's store fail."""
        ...


Check: TypeAlias = Callable[[SourceRig], Awaitable[None]]


class Follower:
    """Keeps what a source publishes, and waits for it."""

    def __init__(self) -> None:
        self.heads: dict[SessionId, SessionHead] = {}
        self.order: list[SessionId] = []
        self._changed = asyncio.Event()

    def publish(self, changes: HeadChanges) -> None:
        for session_id in changes.removed:
            self.heads.pop(session_id, None)
        for head in changes.changed:
            self.heads[head.session_id] = head
            self.order.append(head.session_id)
        self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds on what was published."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def until_listed(self, *session_ids: SessionId) -> None:
        await self.until(lambda: self.heads.keys() == set(session_ids))


@asynccontextmanager
async def following(source: SessionSource) -> AsyncGenerator[Follower]:
    """A follower of a source while the block runs."""
    follower = Follower()
    task = asyncio.create_task(source.follow_heads(follower.publish))
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def texts_of(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


async def sessions_that_exist_are_published(rig: SourceRig) -> None:
    rig.put("one", ["Hello"], title="First")
    rig.put("two", ["Hello again"])
    async with following(rig.source) as follower:
        await follower.until_listed(rig.session_id("one"), rig.session_id("two"))
    head = follower.heads[rig.session_id("one")]
    assert (head.session_id, head.source, head.title) == (rig.session_id("one"), rig.source.name, "First")
    assert all(head.status in LISTED_STATUSES for head in follower.heads.values())


async def a_new_session_is_published(rig: SourceRig) -> None:
    async with following(rig.source) as follower:
        await follower.until(lambda: rig.source.check().ready or bool(follower.heads))
        rig.put("late", ["Hello"])
        await follower.until_listed(rig.session_id("late"))


async def a_renamed_session_is_published_again(rig: SourceRig) -> None:
    rig.put("one", ["Hello"], title="Before")
    async with following(rig.source) as follower:
        await follower.until_listed(rig.session_id("one"))
        rig.put("one", ["Hello"], title="After")
        await follower.until(lambda: follower.heads[rig.session_id("one")].title == "After")


async def a_deleted_session_is_taken_back(rig: SourceRig) -> None:
    rig.put("one", ["Hello"])
    async with following(rig.source) as follower:
        await follower.until_listed(rig.session_id("one"))
        rig.remove("one")
        await follower.until_listed()
        with pytest.raises(UnknownSessionError):
            await rig.source.read_surface(rig.session_id("one"))


async def a_second_follower_gets_everything_again(rig: SourceRig) -> None:
    rig.put("one", ["Hello"])
    async with following(rig.source) as first:
        await first.until_listed(rig.session_id("one"))
    async with following(rig.source) as second:
        await second.until_listed(rig.session_id("one"))


async def an_unreadable_session_is_listed_and_refused_with_its_reason(rig: SourceRig) -> None:
    rig.put("damaged", ["Hello"], status=SessionStatus.DAMAGED)
    rig.put("new", ["Hello"], status=SessionStatus.TOO_NEW)
    async with following(rig.source) as follower:
        await follower.until_listed(rig.session_id("damaged"), rig.session_id("new"))
        assert rig.source.check().unreadable == 2
        with pytest.raises(DamagedSessionError):
            await rig.source.read_surface(rig.session_id("damaged"))
        with pytest.raises(UnsupportedVersionError) as refused:
            await rig.source.read_surface(rig.session_id("new"))
    assert refused.value.metadata == {"session_id": rig.session_id("new"), "source": rig.source.name, "version": "99"}


async def an_empty_session_is_counted_and_not_listed(rig: SourceRig) -> None:
    rig.put("empty", [], status=SessionStatus.EMPTY)
    rig.put("one", ["Hello"])
    async with following(rig.source) as follower:
        await follower.until_listed(rig.session_id("one"))
        await follower.until(lambda: rig.source.check().ready)
        assert (rig.source.check().listed, rig.source.check().empty) == (1, 1)
        with pytest.raises(UnknownSessionError):
            await rig.source.read_surface(rig.session_id("empty"))


async def a_surface_is_read_in_order(rig: SourceRig) -> None:
    rig.put("one", ["First", "Second"])
    async with following(rig.source) as follower:
        await follower.until_listed(rig.session_id("one"))
        capture = await rig.source.read_surface(rig.session_id("one"))
    assert capture.session_id == rig.session_id("one")
    assert list(capture.conversation) == [Message(Role.USER, "First"), Message(Role.USER, "Second")]


async def an_unchanged_session_gives_the_same_capture_again(rig: SourceRig) -> None:
    rig.put("one", ["First"])
    async with following(rig.source) as follower:
        await follower.until_listed(rig.session_id("one"))
        first = await rig.source.read_surface(rig.session_id("one"))
        assert await rig.source.read_surface(rig.session_id("one")) is first


async def a_changed_session_gives_a_new_capture_and_leaves_the_old_one(rig: SourceRig) -> None:
    rig.put("one", ["First"])
    async with following(rig.source) as follower:
        await follower.until_listed(rig.session_id("one"))
        before = await rig.source.read_surface(rig.session_id("one"))
        rig.put("one", ["First", "Second"])
        after = await rig.source.read_surface(rig.session_id("one"))
    assert texts_of(before.conversation) == ["First"]
    assert texts_of(after.conversation) == ["First", "Second"]


async def an_unknown_session_is_refused_by_its_id(rig: SourceRig) -> None:
    rig.put("one", ["Hello"])
    async with following(rig.source) as follower:
        await follower.until_listed(rig.session_id("one"))
        with pytest.raises(UnknownSessionError) as refused:
            await rig.source.read_surface(rig.session_id("no-such"))
    assert refused.value.metadata == {"session_id": rig.session_id("no-such")}


async def a_cancelled_read_leaves_the_others_alone(rig: SourceRig) -> None:
    rig.put("one", ["Hello"])
    async with following(rig.source) as follower:
        await follower.until_listed(rig.session_id("one"))
        reads = [asyncio.create_task(rig.source.read_surface(rig.session_id("one"))) for _ in range(3)]
        await asyncio.sleep(0)
        reads[0].cancel()
        results = await asyncio.gather(*reads, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert [texts_of(result.conversation) for result in results[1:] if not isinstance(result, BaseException)] == [["Hello"]] * 2


async def a_store_that_fails_is_reported_and_never_raised(rig: SourceRig) -> None:
    rig.put("one", ["Hello"])
    rig.make_unavailable()
    async with following(rig.source) as follower:
        await follower.until(lambda: bool(rig.source.check().failure))
        with pytest.raises(SourceUnavailableError):
            await rig.source.read_surface(rig.session_id("one"))


SESSION_SOURCE_CONTRACT: tuple[Check, ...] = (
    sessions_that_exist_are_published,
    a_new_session_is_published,
    a_renamed_session_is_published_again,
    a_deleted_session_is_taken_back,
    a_second_follower_gets_everything_again,
    an_unreadable_session_is_listed_and_refused_with_its_reason,
    an_empty_session_is_counted_and_not_listed,
    a_surface_is_read_in_order,
    an_unchanged_session_gives_the_same_capture_again,
    a_changed_session_gives_a_new_capture_and_leaves_the_old_one,
    an_unknown_session_is_refused_by_its_id,
    a_cancelled_read_leaves_the_others_alone,
    a_store_that_fails_is_reported_and_never_raised,
)
