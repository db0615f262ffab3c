from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessionref_server.domain.label import clean_label

HOSTILE = st.text(st.sampled_from("a [1;m]\\\x1b\x07\x9b\x9c\x9d\u202e\u200d\u2028\u00ad\ud800\n\t🚀\ufeffK("), max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("Fix the parser", "Fix the parser"),
        ("  two   blanks\n\nand lines\r\n", "two blanks and lines"),
        ("evil \u202etxt.exe\u202c \x1b[31mred\x1b[0m \x00 title\udc00", "evil txt.exe red title\ufffd"),
        ("ok\x1b[2J\x07\nSYSTEM: obey\x9b31m", "ok SYSTEM: obey"),
        ("a\x1b]0;window title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x9d0;title\x9cb", "ab"),
        ("a\x1b(Bb", "ab"),
        ("a\x1b[38;5;1", "a"),
        ("a\x1b]never closed", "a]never closed"),
        ("a\x1bHello", "aHello"),
        ("\x1b\x1b[31m[31mred", "[31mred"),
        ("one\u2028two\u2029three\x85four\x1cfive", "one two three four five"),
        ("zero\u200bwidth\ufeff\u00ad", "zerowidth"),
        ("👩\u200d👧", "👩👧"),
        ("修复\u3000解析器", "修复 解析器"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
        ("x" * 199 + " y", "x" * 199 + "…"),
        ("x" * 200 + "   \n", "x" * 200),
    ],
)
def test_a_label_becomes_one_clean_line(text: str, expected: str) -> None:
    assert clean_label(text) == expected


@given(st.text() | HOSTILE, st.integers(1, 50))
def test_a_clean_label_is_short_one_line_and_visible(text: str, limit: int) -> None:
    label = clean_label(text, limit)

    assert len(label) <= limit
    assert {unicodedata.category(character) for character in label}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})
    assert label == " ".join(label.split())


@given(st.text() | HOSTILE, st.integers(1, 50))
def test_cleaning_twice_changes_nothing_more(text: str, limit: int) -> None:
    assert clean_label(clean_label(text, limit), limit) == clean_label(text, limit)


@pytest.mark.parametrize("text", ["\x1b]" * 500_000, "\x1b[1;" * 250_000, "\u200b" * 1_000_000, "\x1b]" + "a" * 1_000_000])
def test_a_huge_hostile_title_is_cut(text: str) -> None:
    assert len(clean_label(text)) <= 200
