"""What every SpillStore must do. A store's test runs each check of ``SPILL_STORE_CONTRACT`` on a fresh store."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
from sessionref_server.domain.errors import UnknownSessionError
from sessionref_server.domain.ports import SpillStore
from sessionref_server.domain.session import SessionId

Check: TypeAlias = Callable[[SpillStore], Awaitable[None]]

OWNER = SessionId("dsh-target")
OTHER = SessionId("claude-code:another")
EVERYTHING = 1 << 30


async def what_is_saved_is_read_back_whole(store: SpillStore) -> None:
    content = secrets.token_bytes(300_000)
    ticket = await store.save(OWNER, content)
    assert ticket.size_bytes == 300_000
    assert await store.read(ticket.locator, OWNER, 0, EVERYTHING) == (content, 300_000)


async def the_same_content_again_is_not_fresh(store: SpillStore) -> None:
    first = await store.save(OWNER, b"same")
    second = await store.save(OWNER, b"same")
    assert (first.fresh, second.fresh, second.locator) == (True, False, first.locator)


async def a_ticket_is_renewed_until_it_is_discarded(store: SpillStore) -> None:
    ticket = await store.save(OWNER, b"short-lived")
    assert await store.renew(OWNER, ticket)
    assert not await store.renew(OTHER, ticket)
    store.discard(OWNER, ticket)
    assert not await store.renew(OWNER, ticket)
    assert await store.renew(OWNER, await store.save(OWNER, b"another"))


async def content_discarded_is_saved_anew_under_another_locator(store: SpillStore) -> None:
    given_up = await store.save(OWNER, b"again")
    store.discard(OWNER, given_up)
    again = await store.save(OWNER, b"again")
    assert again.fresh
    assert again.locator != given_up.locator
    assert await store.read(again.locator, OWNER, 0, EVERYTHING) == (b"again", 5)


async def pages_join_to_the_whole(store: SpillStore) -> None:
    content = secrets.token_bytes(1000)
    locator = (await store.save(OWNER, content)).locator
    pages = [await store.read(locator, OWNER, offset, 64) for offset in range(0, 1000, 64)]
    assert b"".join(page for page, _ in pages) == content
    assert {total for _, total in pages} == {1000}


async def a_page_beyond_the_end_is_empty(store: SpillStore) -> None:
    locator = (await store.save(OWNER, b"abc")).locator
    assert await store.read(locator, OWNER, 3, 10) == (b"", 3)
    assert await store.read(locator, OWNER, 99, 10) == (b"", 3)
    assert await store.read(locator, OWNER, 2**63 - 1, 1_048_576) == (b"", 3)


async def empty_content_is_content(store: SpillStore) -> None:
    ticket = await store.save(OWNER, b"")
    assert await store.read(ticket.locator, OWNER, 0, 10) == (b"", 0)


async def another_owner_gets_the_same_answer_as_for_a_missing_locator(store: SpillStore) -> None:
    locator = (await store.save(OWNER, b"private")).locator
    with pytest.raises(UnknownSessionError) as refused:
        await store.read(locator, OTHER, 0, 10)
    with pytest.raises(UnknownSessionError) as missing:
        await store.read(locator[:-32] + secrets.token_hex(16), OTHER, 0, 10)
    assert (str(refused.value), refused.value.metadata) == (str(missing.value), missing.value.metadata)


async def a_thousand_forged_locators_are_unknown(store: SpillStore) -> None:
    locator = (await store.save(OWNER, b"private")).locator
    forged = [
        "",
        "spill:",
        locator[:-1],
        locator + "0",
        locator.upper(),
        "../" + locator,
        f"spill:../{locator[6:]}",
        "spill:\x00",
        "spill:é",
    ]
    forged += [f"spill:{secrets.token_hex(32)}" for _ in range(991)]
    for text in forged:
        with pytest.raises(UnknownSessionError):
            await store.read(text, OWNER, 0, 10)


async def a_locator_says_nothing_of_owner_or_place(store: SpillStore) -> None:
    locator = (await store.save(OWNER, b"x")).locator
    assert OWNER not in locator
    assert set(locator.removeprefix("spill:")) <= set("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-")


async def other_content_never_replaces_what_was_saved(store: SpillStore) -> None:
    first = await store.save(OWNER, b"one")
    second = await store.save(OWNER, b"two")
    assert first.locator != second.locator
    assert await store.read(first.locator, OWNER, 0, 10) == (b"one", 3)


async def the_same_content_of_two_owners_is_kept_apart(store: SpillStore) -> None:
    mine = await store.save(OWNER, b"shared")
    theirs = await store.save(OTHER, b"shared")
    assert mine.locator != theirs.locator
    assert await store.read(theirs.locator, OTHER, 0, 10) == (b"shared", 6)


async def an_owner_may_have_any_id(store: SpillStore) -> None:
    for owner in ("", "..", "../../etc", "a/b", "\x00", "x" * 5000, "\ud800", "é", "é"):
        locator = (await store.save(SessionId(owner), b"any")).locator
        assert await store.read(locator, SessionId(owner), 0, 10) == (b"any", 3)


async def many_saves_at_once_are_all_kept(store: SpillStore) -> None:
    contents = [f"content {n}".encode() for n in range(50)]
    tickets = await asyncio.gather(*(store.save(OWNER, content) for content in contents))
    assert len({ticket.locator for ticket in tickets}) == 50
    assert [(await store.read(ticket.locator, OWNER, 0, 100))[0] for ticket in tickets] == contents


SPILL_STORE_CONTRACT: list[Check] = [
    the_same_content_again_is_not_fresh,
    a_ticket_is_renewed_until_it_is_discarded,
    content_discarded_is_saved_anew_under_another_locator,
    what_is_saved_is_read_back_whole,
    pages_join_to_the_whole,
    a_page_beyond_the_end_is_empty,
    empty_content_is_content,
    another_owner_gets_the_same_answer_as_for_a_missing_locator,
    a_thousand_forged_locators_are_unknown,
    a_locator_says_nothing_of_owner_or_place,
    other_content_never_replaces_what_was_saved,
    the_same_content_of_two_owners_is_kept_apart,
    an_owner_may_have_any_id,
    many_saves_at_once_are_all_kept,
]
