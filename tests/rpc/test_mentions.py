"""Mentions as people type them, and texts that only look like some."""

from __future__ import annotations

import pytest
from rpc.vector_rig import VectorRig, in_module_loop
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import ParsedText, ParseMentionsRequest, PrepareRequest

MEGABYTE = 2**20


async def parsed(rig: VectorRig, text: str) -> ParsedText:
    return (await rig.served.stub.ParseMentions(ParseMentionsRequest(texts=[text]), timeout=20)).texts[0]


@in_module_loop
@pytest.mark.parametrize(
    ("text", "files"),
    [
        ('read @"docs/a b.md" now', [("docs/a b.md", True)]),
        ('@"a b" and @"c d/"', [("a b", True), ("c d/", True)]),
        ("see @src/main.ts and @README.md", [("src/main.ts", False), ("README.md", False)]),
        ("write to ops@example.test" + "x" * 300, []),
        ("mail a@b.c, d@e.f", []),
        ("`@acme/theme`", []),
        ("", []),
        ("@", []),
        ("a@@b", []),
    ],
)
async def test_file_mentions_are_told_by_form_and_stay_in_the_text(
    rig: VectorRig, text: str, files: list[tuple[str, bool]]
) -> None:
    answer = await parsed(rig, text)
    assert [(file.path, file.quoted) for file in answer.files] == files
    assert (answer.text, list(answer.references)) == (text, [])


@in_module_loop
@pytest.mark.parametrize(
    "text",
    [
        "import from @acme/ui and `@acme/theme`",
        "write to ops@example.test" + "x" * 300,
        '@"never closed',
        "@/etc/passwd @../../x @~/y @C:\\z",
        "@[label](dsh-sessio:InMxIg)",
        "dsh-session:",
        "dsh-sessions:InMxIg",
    ],
)
async def test_text_without_a_session_mention_is_prepared_unchanged(rig: VectorRig, text: str) -> None:
    rig.source.fill([])
    request = PrepareRequest(
        target=reference_pb2.Target(session_id="me"),
        content=[reference_pb2.ContentBlock(text=reference_pb2.TextBlock(text=text))],
        parse_mentions=True,
    )
    response = await rig.served.stub.Prepare(request, timeout=10)
    assert list(response.content) == list(request.content)
    assert not response.HasField("additional_context")


@in_module_loop
@pytest.mark.parametrize(
    "piece",
    [
        "@[",
        "@[x",
        "@[\\",
        "@[x](",
        "@[x](dsh-session:",
        "](dsh-session:",
        "[@]",
        "dsh-session: ",
        "@\\[",
        '@"',
        " @a",
        "\\",
        "@[\n",
        "(",
        ")",
        "@[]( ",
        "@[a](dsh-session: )",
    ],
)
async def test_megabyte_of_anything_is_read_in_one_pass(rig: VectorRig, piece: str) -> None:
    text = piece * (MEGABYTE // len(piece))
    answer = await parsed(rig, text + " ")
    assert (answer.text, list(answer.references)) == (text + " ", [])


@in_module_loop
async def test_ten_thousand_mentions_in_a_text_are_found(rig: VectorRig) -> None:
    answer = await parsed(rig, "@[One](dsh-session:InMxIg) dsh-session:InMyIg " * 10_000)
    assert answer.text == "@One @s2 " * 10_000
    assert [(reference.session_id, reference.label) for reference in answer.references] == [("s1", "One"), ("s2", "s2")] * 10_000


@in_module_loop
async def test_blocks_of_every_kind_travel_untouched(rig: VectorRig) -> None:
    rig.source.fill([])
    opaque = reference_pb2.OpaqueBlock(type="resource", data=b"\x00\xff@[x](dsh-session:%)")
    json_block = reference_pb2.OpaqueBlock(type="json")
    json_block.json.update({"text": "@[x](dsh-session:%)", "n": 1.5, "nested": {"list": [None, True]}})
    packed = reference_pb2.OpaqueBlock(type="any")
    packed.message.Pack(reference_pb2.TextBlock(text="@[x](dsh-session:%)"))
    request = PrepareRequest(
        target=reference_pb2.Target(session_id="me"),
        content=[
            reference_pb2.ContentBlock(image=reference_pb2.ImageBlock(media_type="image/png", data=b"\x89PNG" * 1000)),
            reference_pb2.ContentBlock(image=reference_pb2.ImageBlock(media_type="image/png", uri="dsh-session:%")),
            *(reference_pb2.ContentBlock(opaque=block) for block in (opaque, json_block, packed)),
            reference_pb2.ContentBlock(text=reference_pb2.TextBlock(text="")),
        ],
        parse_mentions=True,
    )
    response = await rig.served.stub.Prepare(request, timeout=10)
    assert list(response.content) == list(request.content)


@in_module_loop
async def test_block_of_a_kind_of_a_later_release_travels_untouched(rig: VectorRig) -> None:
    unknown = b"\x9a\x06\x05hello"  # field 99, a string
    block = reference_pb2.ContentBlock.FromString(unknown)
    request = PrepareRequest(target=reference_pb2.Target(session_id="me"), content=[block], parse_mentions=True)
    response = await rig.served.stub.Prepare(request, timeout=10)
    assert response.content[0].SerializeToString() == unknown
