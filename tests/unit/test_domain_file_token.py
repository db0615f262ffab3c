from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessionref_server.domain.file_token import ActiveToken, FileMention, active_at_token, format_file_mention
from sessionref_server.domain.javascript_text import WHITE_SPACE, find_any, find_last_any, find_other, utf16_prefix
from sessionref_server.domain.mention import parse_mentions

SPACE = "".join(WHITE_SPACE)
QUOTED = re.compile(rf'(?:^|[{SPACE}])(@"([^"]*))\Z')
PLAIN = re.compile(rf"(?:^|[{SPACE}])(@([^{SPACE}]*))\Z")
LINES = st.text(st.sampled_from('@" \t\n\u3000\ufeff\u0085ab/🚀é'), max_size=20)


def model_token(before: str) -> ActiveToken | None:
    for pattern, quoted in ((QUOTED, True), (PLAIN, False)):
        if match := pattern.search(before):
            return ActiveToken(prefix=match[1], query=match[2], quoted=quoted)
    return None


@given(LINES)
def test_the_token_at_the_end_is_what_the_grammar_says(line: str) -> None:
    assert active_at_token(line, 1_000) == model_token(line)


@pytest.mark.parametrize(("cursor", "expected"), [(-1, ""), (0, ""), (1, "a"), (2, "a"), (3, "a🚀"), (4, "a🚀b"), (99, "a🚀b")])
def test_a_column_counts_utf16_units_and_never_halves_a_character(cursor: int, expected: str) -> None:
    assert utf16_prefix("a🚀b", cursor) == expected


@given(st.text(st.sampled_from("ab "), max_size=700), st.integers(0, 800))
def test_searches_for_characters_agree_with_a_plain_loop(text: str, start: int) -> None:
    start = min(start, len(text))
    stops = frozenset(" ")
    blanks = [position for position, character in enumerate(text) if character == " "]
    others = [position for position, character in enumerate(text) if character != " "]

    assert find_any(text, stops, start) == next((at for at in blanks if at >= start), len(text))
    assert find_other(text, stops, start) == next((at for at in others if at >= start), len(text))
    assert find_last_any(text, stops) == (blanks[-1] if blanks else -1)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters='"'), min_size=1, max_size=40))
def test_a_formatted_file_mention_reads_back(path: str) -> None:
    mention = format_file_mention(path, is_directory=False, preserve_quote=True)

    line_breaks = {"\u2028", "\u2029"} & set(path)
    assert mention is not None
    assert line_breaks or parse_mentions(mention).files == (FileMention(path=path, quoted=True),)
