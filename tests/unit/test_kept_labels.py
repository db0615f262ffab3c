from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from contract.session_source import Follower, following
from fakes.tiny_format import TITLES_FILE, TinyFormat
from sessionref_server.adapters.secrets.kingfisher import KingfisherDetector
from sessionref_server.adapters.sessions.kept_labels import KeepingHeadMaker, ShownTexts
from unit.log_directory_rig import LogDirectoryRig, wire_id

ONE = wire_id("one")


class Redactor:
    """Takes out a word, and keeps a list of what it was asked."""

    def __init__(self, word: str = "KEY") -> None:
        self.asked: list[str] = []
        self._word = word

    def __call__(self, texts: Sequence[str]) -> list[str]:
        self.asked += texts
        return [text.replace(self._word, "[redacted secret]") for text in texts]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LogDirectoryRig]:
    rig = LogDirectoryRig(tmp_path)
    yield rig
    for cache in rig.caches:
        await cache.close()


async def run(rig: LogDirectoryRig, redact: Redactor | None, rules: str) -> Follower:
    """One run from start to readiness, with what the runs before have kept."""
    source = rig.source(head_cache=rig.cache(), redact=redact, redaction_rules=rules)
    async with following(source) as follower:
        await follower.until(lambda: source.check().ready)
    await rig.caches[-1].close()
    return follower


async def test_a_start_with_kept_labels_scans_nothing_and_shows_the_same(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl", {"user": "Hello", "title": "a\nKEY b", "label": "KEY\u202e", "cwd": "/KEY/\u202ework"})
    rig.write("two.jsonl", {"user": "Hello", "title": "\u200b"})
    rig.write("three.jsonl", {"user": "Hello", "title": ""})
    first = await run(rig, Redactor(), "1")
    second = Redactor()
    assert ((await run(rig, second, "1")).heads, second.asked) == (first.heads, [])
    assert first.heads[ONE].title == "a [redacted secret] b"


async def test_labels_kept_under_other_rules_are_made_anew_and_kept_then(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl", {"user": "Hello", "title": "WORD", "cwd": "/WORD"})
    plain = await run(rig, None, "")
    assert plain.heads[ONE].title == "WORD"
    hidden = await run(rig, Redactor("WORD"), "1")
    assert hidden.heads[ONE].title == "[redacted secret]"
    again = Redactor("WORD")
    assert ((await run(rig, again, "1")).heads, again.asked) == (hidden.heads, [])
    assert (await run(rig, None, "")).heads == plain.heads


async def test_a_title_given_beside_the_logs_since_is_scanned(rig: LogDirectoryRig) -> None:
    rig.write("one.jsonl", {"user": "Hello", "title": "Own"})
    await run(rig, Redactor(), "1")
    (rig.root / TITLES_FILE).write_text('{"one": "Given KEY"}')
    redact = Redactor()
    assert (await run(rig, redact, "1")).heads[ONE].title == "Given [redacted secret]"
    assert redact.asked == ["Given KEY"]


@pytest.mark.parametrize("document", [b"", b"{", b"{}", b"null", b"[1]", b'["a","b","c","d","e","f","g"]', b"\xff"])
def test_bytes_that_are_no_kept_labels_make_nothing_known(document: bytes) -> None:
    redact = Redactor()
    maker = KeepingHeadMaker(TinyFormat(), redact)
    maker.know([document])
    assert (maker.labels(["a", None, ""]), redact.asked) == (["a", None, ""], ["a"])


def test_a_kept_label_with_a_lone_surrogate_is_known_again() -> None:
    redact = Redactor()
    maker = KeepingHeadMaker(TinyFormat(), redact)
    maker.know([ShownTexts(title="\ud800", shown_title="\ufffd").encode()])
    assert (maker.labels(["\ud800"]), redact.asked) == (["\ufffd"], [])


def test_what_a_scanner_works_by_has_the_same_short_name_every_time() -> None:
    names = {KingfisherDetector().rules for _ in range(2)}
    assert [len(name) for name in names] == [32]
