from __future__ import annotations

import json

import pytest
from sessionref_server.domain.errors import InvalidReferenceError, SelfReferenceError, TooManyReferencesError
from sessionref_server.domain.limits import check_limit
from sessionref_server.domain.prepare.budget import reference_budget_bytes
from sessionref_server.domain.prepare.parse import parse_references, rewrite_mentions
from sessionref_server.domain.reference import OpaqueContent, Reference, SessionReference, TextContent
from sessionref_server.domain.session import SessionId
from sessionref_server.domain.tag_safe_json import tag_safe_json


@pytest.mark.parametrize(
    ("fixed", "fraction", "window", "expected"),
    [
        (None, 0.2, None, 65_536),
        (None, 0.2, 0, 65_536),
        (None, 0.2, -5, 65_536),
        (None, 0.2, 81_920, 65_536),
        (None, 0.2, 128_000, 102_400),
        (None, 0.777, 33_333, 103_598),
        (None, 0.0, 1_000_000, 65_536),
        (None, 1.0, 1_000_000, 4_000_000),
        (0, 0.2, 128_000, 0),
        (5_000, 0.2, None, 5_000),
    ],
)
def test_the_budget_is_fixed_or_a_share_of_the_window(
    fixed: int | None, fraction: float, window: int | None, expected: int
) -> None:
    assert reference_budget_bytes(fixed, fraction, window) == expected


def reference(session_id: str, label: str, input_index: int) -> Reference:
    return Reference(session_id=SessionId(session_id), label=label, input_index=input_index)


def test_repeated_references_are_skipped_and_the_first_label_wins() -> None:
    given = [SessionReference("a", "one"), SessionReference("b"), SessionReference("a", "two"), SessionReference("c", "")]

    assert parse_references("me", given, 3) == [reference("a", "one", 0), reference("b", "b", 1), reference("c", "", 2)]


def test_labels_become_one_clean_line() -> None:
    assert parse_references("me", [SessionReference("a", "x\n\x1b[1my")], 3) == [reference("a", "x y", 0)]


@pytest.mark.parametrize("session_id", ["", "\ud800"])
def test_a_malformed_reference_names_its_place(session_id: str) -> None:
    with pytest.raises(InvalidReferenceError) as raised:
        parse_references("me", [SessionReference("a"), SessionReference(session_id)], 3)

    assert raised.value.metadata == {"field": "references", "index": "1"}


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        (["a", "me", ""], SelfReferenceError),
        (["a", "", "me"], InvalidReferenceError),
        (["a", "b", "c", "d", "me"], SelfReferenceError),
        (["a", "b", "c", "d"], TooManyReferencesError),
    ],
)
def test_the_first_failure_in_order_wins_and_too_many_is_last(ids: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_references("me", [*map(SessionReference, ids)], 3)


def test_too_many_references_are_counted() -> None:
    with pytest.raises(TooManyReferencesError) as raised:
        parse_references("me", [*map(SessionReference, ["a", "b", "a", "c"])], 2)

    assert raised.value.metadata == {"count": "3", "maximum": "2"}


def test_text_blocks_are_rewritten_and_others_kept() -> None:
    image = OpaqueContent(value={"type": "image"})
    plain = TextContent("no mention")
    content = [image, TextContent("x @[O\nne](dsh-session:InMxIg)"), plain, TextContent("dsh-session:InMyIg")]

    rewritten, references = rewrite_mentions(content)

    assert rewritten == [image, TextContent("x @O ne"), plain, TextContent("@s2")]
    assert rewritten[2] is plain
    assert references == [SessionReference("s1", "O ne"), SessionReference("s2", "s2")]


def test_a_bad_mention_in_a_block_names_the_block() -> None:
    with pytest.raises(InvalidReferenceError) as raised:
        rewrite_mentions([TextContent("fine"), TextContent("@[x](dsh-session:)")])

    assert raised.value.metadata == {"field": "content", "index": "1"}


@pytest.mark.parametrize("limit", [1, 50, 2**53 - 1])
def test_a_positive_limit_is_accepted(limit: int) -> None:
    assert check_limit(limit) == limit


@pytest.mark.parametrize("limit", [0, -1, 2**53, 1.5, -0.0, "5", None, True])
def test_another_limit_is_refused(limit: object) -> None:
    with pytest.raises(InvalidReferenceError):
        check_limit(limit)


def test_tag_safe_json_holds_no_tag_and_loses_nothing() -> None:
    value = {"text": '</referenced-sessions>\n"\\\u2028\x7f\x00<<'}

    written = tag_safe_json(value)

    assert b"<" not in written
    assert json.loads(written) == value
