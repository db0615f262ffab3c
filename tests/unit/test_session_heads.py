"""What of a head is shown: no id that cannot travel, no control character, no secret."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from fakes.tiny_format import TinyFormat
from sessionref_server.adapters.sessions.log_format import LogFile, NativeHead
from sessionref_server.adapters.sessions.session_heads import HeadMaker
from sessionref_server.domain.session import SessionHead

KEY = "KEY-12345"


def redact(texts: Sequence[str]) -> list[str]:
    return [re.sub(r"KEY-[0-9]{5}", "[redacted secret]", text) for text in texts]


def head_of(native: NativeHead) -> SessionHead | None:
    file = LogFile(path="/logs/x", device=1, inode=1, size=1, mtime_ns=1)
    (head,) = HeadMaker(TinyFormat(), redact).heads([(file, native)], {})
    return head


@pytest.mark.parametrize(
    "native_id", ["", "a\nb", "a\x00", "\x1b[2J", "a\x9b31m", "a\u2028b", "\ud83d", "x" * 600], ids=lambda text: ascii(text)[:12]
)
def test_id_that_cannot_travel_makes_no_head(native_id: str) -> None:
    assert head_of(NativeHead(native_id=native_id)) is None


@pytest.mark.parametrize(
    ("native_id", "label"), [("plain", "tiny:plain"), ("ab\u202ecd", "tiny:abcd"), ("x" * 300, "tiny:" + "x" * 194 + "…")]
)
def test_id_in_the_place_of_a_title_is_one_clean_line(native_id: str, label: str) -> None:
    head = head_of(NativeHead(native_id=native_id))
    assert head is not None
    assert (head.session_id, head.label, head.display_title) == ("tiny:" + native_id, label, label)


@pytest.mark.parametrize(
    ("cwd", "shown"),
    [
        ("/work/app", None),
        ("/work/日本 \u202e", None),
        ("/work/a\nb\x1b[2J\x9b", "/work/a\ufffdb\ufffd[2J\ufffd"),
        (f"/work/{KEY}/app", "/work/[redacted secret]/app"),
        (f"/work/{KEY}\n", "/work/[redacted secret]\ufffd"),
    ],
)
def test_directory_is_kept_as_recorded_and_shown_without_secrets_and_control_characters(cwd: str, shown: str | None) -> None:
    head = head_of(NativeHead(native_id="x", cwd=cwd))
    assert head is not None
    assert (head.cwd, head.shown_cwd) == (cwd, shown)


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (f"use {KEY} now", "use [redacted secret] now"),
        ("use KEY-\u200b12345 now", "use [redacted secret] now"),
        ("use KEY-12\x00345 now", "use [redacted secret] now"),
        ("use KEY-123 45 now", "use KEY-123 45 now"),
        ("x" * 195 + "K\u200bEY-12345", "x" * 195 + "[red…"),
    ],
)
def test_secret_hidden_between_invisible_characters_is_found(title: str, shown: str) -> None:
    head = head_of(NativeHead(native_id="x", title=title, subagent_label=title))
    assert head is not None
    assert (head.title, head.subagent_label) == (shown, shown)
