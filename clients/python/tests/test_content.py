"""Content goes through unchanged, whatever is in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from sessionref.v1 import reference_pb2 as reference_message
from sessionref.v1 import session_reference_service_pb2 as service_message
from sessionref_client import ImageBlock, OpaqueBlock, PackedMessage, Prepared, Target, TextBlock, UnknownBlock

if TYPE_CHECKING:
    from conftest import Caller, ScriptedService
    from sessionref_client import ContentBlock

TARGET = Target(session_id="me")
# Fields 100 of a newer contract: a varint, inside a block and beside it.
NEWER_FIELD = b"\xa0\x06\x2a"
NEWER_BLOCK = b"\xa2\x06\x02hi"


async def echoed(caller: Caller, service: ScriptedService, *blocks: ContentBlock) -> tuple[ContentBlock, ...]:
    """What comes back when the server returns the content it received."""
    service.answers = [service_message.PrepareResponse()]
    await caller.answer("prepare", blocks, target=TARGET)
    service.answers = [service_message.PrepareResponse(content=service.requests[-1].content)]
    prepared: Prepared = await caller.answer("prepare", blocks, target=TARGET)
    return prepared.content


@pytest.mark.parametrize(
    "block",
    [
        TextBlock(""),
        TextBlock("\u202e\x00 <tag> 🙂"),
        ImageBlock(media_type="image/png", source=b"\x89PNG\x00\xff"),
        ImageBlock(media_type="image/png", source=b""),
        ImageBlock(media_type="image/png", source="https://example.org/a.png"),
        ImageBlock(media_type="", source=None),
        OpaqueBlock(type="resource", value=b"\x00\xff"),
        OpaqueBlock(type="resource", value={}),
        OpaqueBlock(type="resource", value={"a": [None, True, 1.5, "x", {"b": []}]}),
        OpaqueBlock(type="resource", value={"a": float("inf")}),
        OpaqueBlock(type="resource", value=PackedMessage(type_url="example.org/A", value=NEWER_FIELD)),
        OpaqueBlock(type="resource", value=PackedMessage(type_url="", value=b"")),
        OpaqueBlock(type="", value=None),
        UnknownBlock(),
    ],
    ids=repr,
)
async def test_block_sent_and_returned_is_the_same(caller: Caller, service: ScriptedService, block: ContentBlock) -> None:
    assert await echoed(caller, service, block) == (block,)


@pytest.mark.parametrize(
    "known",
    [
        reference_message.ContentBlock(text=reference_message.TextBlock(text="t")),
        reference_message.ContentBlock(image=reference_message.ImageBlock(media_type="image/png", data=b"i")),
        reference_message.ContentBlock(opaque=reference_message.OpaqueBlock(type="resource", data=b"o")),
        reference_message.ContentBlock(),
    ],
    ids=["text", "image", "opaque", "unknown kind"],
)
async def test_fields_of_a_newer_contract_survive_the_way_through_a_host(
    caller: Caller, service: ScriptedService, known: reference_message.ContentBlock
) -> None:
    received = reference_message.ContentBlock.FromString(known.SerializeToString() + NEWER_FIELD + NEWER_BLOCK)
    kind = known.WhichOneof("block")
    if kind is not None:
        getattr(received, kind).MergeFromString(NEWER_FIELD)
    service.answers = [service_message.PrepareResponse(content=[received])]

    prepared = await caller.answer("prepare", "", target=TARGET)
    await caller.answer("prepare", prepared.content, target=TARGET)

    (sent,) = service.requests[-1].content
    assert sent.SerializeToString() == received.SerializeToString()


async def test_text_changed_by_a_host_keeps_the_fields_of_a_newer_contract(caller: Caller, service: ScriptedService) -> None:
    received = reference_message.ContentBlock(text=reference_message.TextBlock(text="old"))
    received.text.MergeFromString(NEWER_FIELD)
    service.answers = [service_message.PrepareResponse(content=[received])]

    prepared = await caller.answer("prepare", "", target=TARGET)
    await caller.answer("prepare", [replace(prepared.content[0], text="")], target=TARGET)

    (sent,) = service.requests[-1].content
    unknown = UnknownFieldSet(sent.text)
    assert (sent.text.text, [(field.field_number, field.data) for field in unknown]) == ("", [(100, 42)])


async def test_content_of_five_megabytes_goes_both_ways(caller: Caller, service: ScriptedService) -> None:
    block = ImageBlock(media_type="image/png", source=bytes(5_000_000))

    assert await echoed(caller, service, block) == (block,)
