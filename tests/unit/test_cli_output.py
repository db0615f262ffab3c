"""What reaches a terminal, a pipe and a program: escapes, tables, JSON."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import pytest
from rich.console import Console
from sessionref_client import (
    Domain,
    SavedSnapshot,
    SearchBatch,
    SessionCandidate,
    SnapshotUnavailable,
    SourceStatus,
    TextBlock,
)
from sessionref_server import cli
from sessionref_server.bootstrap import ServerStarted
from sessionref_server.commands import output, search
from sessionref_server.commands.plain_text import visible, visible_json
from sessionref_server.commands.serve import Announcer, try_it
from sessionref_server.commands.sources import source_table
from sessionref_server.domain.ports import SourceCheck

ESC = "\x1b"


class Terminal(io.TextIOWrapper):
    """A standard output that says it is a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


@pytest.mark.parametrize(
    ("text", "one_line", "many_lines"),
    [
        ("plain é 日本", "plain é 日本", "plain é 日本"),
        ("a\x1b[31mb", "a\\x1b[31mb", "a\\x1b[31mb"),
        ("a\x9b31mb\x7f\x00", "a\\x9b31mb\\x7f\\x00", "a\\x9b31mb\\x7f\\x00"),
        ("a\n\tb\r", "a\\x0a\\x09b\\x0d", "a\n\tb\\x0d"),
        ("a\u202eb\u2066\u200f\u061c", "a\\u202eb\\u2066\\u200f\\u061c", "a\\u202eb\\u2066\\u200f\\u061c"),
        ("a\u2028b", "a\\u2028b", "a\\u2028b"),
        ("a\udcffb", "a\\udcffb", "a\\udcffb"),
    ],
)
def test_control_characters_become_visible_escapes(text: str, one_line: str, many_lines: str) -> None:
    assert (visible(text), visible(text, keep_lines=True)) == (one_line, many_lines)


def test_json_with_controls_escaped_keeps_its_value() -> None:
    value = ["".join(map(chr, range(0x100))), "\u202e\u2066\u2028"]
    document = visible_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(document) == value
    assert visible(document) == document


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (3_599, "59 min ago"),
        (7_200, "2 h ago"),
        (86_400, "1 day ago"),
        (6 * 86_400, "6 days ago"),
        (7 * 86_400, "1 week ago"),
        (70 * 86_400, "10 weeks ago"),
        (-5, "in the future"),
    ],
)
def test_a_time_is_said_as_how_long_ago(seconds: int, said: str) -> None:
    now_ms = 1_790_000_000_000
    assert output.how_long_ago(now_ms - seconds * 1000, now_ms) == said


def test_an_unknown_time_is_a_dash() -> None:
    assert output.how_long_ago(0, 1_790_000_000_000) == "-"


@pytest.mark.parametrize(
    ("folder", "said"),
    [(None, "-"), ("/home/me", "~"), ("/home/me/x", "~/x"), ("/home/mean", "/home/mean"), ("C:\\x", "C:\\x")],
)
def test_the_home_folder_is_shown_as_a_tilde(folder: str | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert output.short_folder(folder) == said


def test_text_on_a_terminal_has_its_controls_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    output.write_text(f"a{ESC}]0;x\x07\nb")
    assert terminal.shown() == "a\\x1b]0;x\\x07\nb\n"


def test_text_in_a_pipe_stays_as_it_is(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    output.write_text(f"a{ESC}]0;x\x07é\n")
    assert capsysbinary.readouterr().out == "a\x1b]0;x\x07é\n".encode()


def test_json_on_a_terminal_has_its_controls_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    output.write_json({"title": f"a{ESC}[31m\x9b\u202e"})
    assert terminal.shown() == '{\n  "title": "a\\u001b[31m\\u009b\\u202e"\n}\n'


def test_values_of_the_client_become_json_that_says_which_choice_it_is() -> None:
    values = [
        TextBlock("hello"),
        SavedSnapshot(locator="l", size_bytes=3, retrieval_hint="h"),
        SnapshotUnavailable.SAVE_FAILED,
        None,
        b"\x00",
    ]
    assert output.json_form(values) == [
        {"type": "text", "text": "hello"},
        {"status": "saved", "locator": "l", "size_bytes": 3, "retrieval_hint": "h"},
        {"status": "unavailable", "reason": "save-failed"},
        None,
        "AA==",
    ]


def test_a_value_without_json_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no JSON form"):
        output.json_form(object())


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [("/a/b", 4, "/a/b"), ("/abc/def", 5, "…/def"), ("/日本/日本", 6, "…/日本"), ("日本", 1, "…")],
)
def test_a_folder_that_does_not_fit_keeps_its_end(text: str, columns: int, said: str) -> None:
    assert output.from_the_end(text, columns) == said


class OneAnswer:
    """A client that finds the same sessions whatever is asked."""

    def __init__(self, *sessions: SessionCandidate) -> None:
        self._sessions = sessions

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @contextmanager
    def search(self, _query: str, **_options: object) -> Iterator[Iterator[SearchBatch]]:
        yield iter(
            [
                SearchBatch(
                    domain=Domain.SESSIONS,
                    sessions=self._sessions,
                    files=(),
                    partial=False,
                    truncated=False,
                    source_statuses=(_status(unreadable_sessions=1),),
                    error=None,
                )
            ]
        )


def _candidate(**changed: object) -> SessionCandidate:
    values: dict[str, object] = {
        "session_id": "codex:019f9a00-1111-7222-8333-444455556666",
        "label": "",
        "display_title": "Retry",
        "cwd": "/work/shop",
        "same_workspace": False,
        "created_at_ms": 0,
        "mention": "",
        "source": "codex",
        "updated_at_ms": None,
    }
    return SessionCandidate(**(values | changed))  # pyright: ignore[reportArgumentType]


def _searched(monkeypatch: pytest.MonkeyPatch, columns: int, *sessions: SessionCandidate) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(search, "open_client", lambda _: OneAnswer(*sessions))
    assert cli.main(["search"]) == 0


def test_search_in_a_wide_window_is_a_table_whose_ids_are_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = _candidate(display_title=f"a{ESC}[31m\n" + "long " * 30, cwd="/very/long/folder/" * 9, same_workspace=True)
    _searched(monkeypatch, 120, hostile, _candidate(cwd=None))
    shown = capsys.readouterr()
    assert [re.split(" {2,}", line) for line in shown.out.splitlines()] == [
        ["", "title", "source", "started", "folder", "id"],
        ["*", "a\\x1b[31m\\x0along long long long long…", "codex", "-", "…ry/long/folder/", hostile.session_id],
        ["", "Retry", "codex", "-", "-", hostile.session_id],
    ]
    assert shown.err == "codex: 1 log could not be read (1 no session)\n"


def test_search_in_a_narrow_window_puts_the_id_on_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _searched(monkeypatch, 30, _candidate(display_title="A title that does not fit here", same_workspace=True))
    assert capsys.readouterr().out.splitlines() == [
        "* A title that does not fit h…",
        "  codex  -  /work/shop",
        "  codex:019f9a00-1111-7222-8333-444455556666",
    ]


@pytest.mark.parametrize(("spoken", "lines"), [(True, 4), (False, 0)])
def test_what_the_server_found_is_said_unless_the_log_is_for_programs(
    spoken: bool,  # noqa: FBT001 - a case of the table
    lines: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = SourceCheck(name="dsh", ready=True, listed=1)
    Announcer(spoken=spoken).announce(ServerStarted(addresses=("127.0.0.1:1",), sources=(found,)))
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", lines)


def test_the_first_command_to_try_names_an_address_that_is_not_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONREF_ADDRESS", "127.0.0.1:1")
    assert try_it(["127.0.0.1:1"]) == "sessionref search"
    assert try_it(["127.0.0.1:2"]) == "sessionref search --address 127.0.0.1:2"


def _status(**changed: object) -> SourceStatus:
    values: dict[str, object] = {
        "source": "codex",
        "ready": True,
        "listed_sessions": 1,
        "unreadable_sessions": 0,
        "empty_sessions": 0,
        "failure": "",
    }
    return SourceStatus(**(values | changed))  # pyright: ignore[reportArgumentType]


def test_only_sources_that_are_not_whole_are_noted() -> None:
    statuses = [
        _status(),
        _status(source="a", ready=False),
        _status(source="b", unreadable_sessions=1, damaged_sessions=1),
        _status(source="c", ready=False, unreadable_sessions=4, damaged_sessions=1, too_new_sessions=2),
        _status(source="d", ready=False, failure=f"locked{ESC}"),
    ]
    assert output.status_notes(statuses) == [
        "a: still being read, more may come",
        "b: 1 log could not be read (1 damaged)",
        "c: still being read, more may come; 4 logs could not be read (1 damaged, 2 of a newer version, 1 no session)",
        "d: locked\\x1b",
    ]


def test_the_table_of_sources_says_state_and_folders() -> None:
    checks = [
        SourceCheck(name="dsh", ready=True, places=("/logs",), listed=1234),
        SourceCheck(name="claude-code", ready=True, places=("/a", "/b"), listed=3, unreadable=1, empty=2),
        SourceCheck(name="codex", ready=False, failure="the folder cannot be read"),
        SourceCheck(name="other", ready=True),
    ]
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as capture:
        console.print(source_table(checks))
    unreadable = "1 log could not be read (1 no session); 2 empty sessions left out"
    assert [re.split(" {2,}", line.strip()) for line in capture.get().splitlines()] == [
        ["source", "sessions", "state", "folders"],
        ["dsh", "1,234", "ready", "/logs"],
        ["claude-code", "3", unreadable, "/a, /b"],
        ["codex", "0", "the folder cannot be read"],
        ["other", "0", "ready, nothing found"],
    ]
