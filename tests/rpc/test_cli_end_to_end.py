"""The command line against a real server in a process of its own, over the sample sessions."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SESSIONS = PROJECT / "examples" / "sessions"
SHOP = "/home/dev/shop"
DOUBLE_CHARGE = "session-3f0c2b1e-8d4a-4b57-9a10-5d2f6c7e8a91"
RETRY = "codex:019f9a00-1111-7222-8333-444455556666"
GUESTS = "claude-code:7c1e4a52-93b0-4d6e-8f27-1a2b3c4d5e6f"
AGENTS = ("dsh", "claude-code", "codex")
# Without redaction, whose rules take seconds to compile in each fresh cache.
SOURCES = [
    part for agent in AGENTS for part in (f"--sources-root={agent}={SESSIONS / agent}", f"--set=sources.{agent}.redact=no")
]
PROGRAM = (sys.executable, "-m", "sessionref_server.cli")


def run(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], input=text, capture_output=True, encoding="utf-8", env=surroundings(), check=False
    )


def surroundings() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SESSIONREF_")}
    return kept | {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server: how to reach it, and what it said when it was ready."""

    address: str
    said: list[str]
    process: subprocess.Popen[str]

    def run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return run(*arguments, "--address", self.address, text=text)

    def json(self, *arguments: str, text: str | None = None) -> Any:
        done = self.run(*arguments, "--json", text=text)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)


def start(folder: Path, *arguments: str) -> Served:
    address = f"unix:{folder / 's.sock'}"
    storage = [f"--set=spill.folder={folder / 'spill'}", f"--set=cache.folder={folder / 'cache'}", "--set=log.level=error"]
    command = [*PROGRAM, "serve", f"--listen={address}", *SOURCES, *storage, *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", env=surroundings())
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line.rstrip("\n"))
        if line.startswith("try it:"):
            return Served(address=address, said=said, process=process)
    raise AssertionError("the server did not start:\n" + "\n".join(said))


def stop(served: Served) -> int:
    served.process.send_signal(signal.SIGTERM)
    code = served.process.wait()
    assert served.process.stderr is not None
    served.process.stderr.close()
    return code


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = start(tmp_path_factory.mktemp("served"), "--set=prepare.max_reference_bytes=800")
    yield server
    stop(server)


def test_serve_says_what_it_found_where_it_listens_and_how_to_try_it(served: Served) -> None:
    rows = [re.split(" {2,}", line.strip()) for line in served.said]
    counts = {row[0]: row[1] for row in rows if row[0] in AGENTS}
    folders = {row[0]: row[-1] for row in rows if row[0] in counts}
    assert counts == {"dsh": "4", "claude-code": "3", "codex": "2"}
    assert folders["codex"] == str(SESSIONS / "codex")
    assert served.said[-2:] == [f"listening on {served.address}", f"try it: sessionref search --address {served.address}"]


def test_serve_ends_with_exit_code_0_when_it_is_asked_to_stop(tmp_path: Path) -> None:
    assert stop(start(tmp_path)) == 0


def test_serve_on_a_taken_address_ends_with_exit_code_2_naming_the_key(served: Served) -> None:
    done = run("serve", f"--listen={served.address}")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("sessionref: listen.addresses: a server already listens on ")


def test_search_lists_the_sessions_of_the_folder_first(served: Served) -> None:
    done = served.run("search", "--cwd", SHOP)
    lines = done.stdout.splitlines()
    marked = [line.startswith("*") for line in lines[1:]]
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0].split() == ["title", "source", "started", "folder", "id"]
    assert marked == [True] * 7 + [False] * 2
    assert re.split(" {2,}", lines[1].strip("* "))[0] == "Add a retry with backoff to the upload client."


def test_search_as_json_gives_the_candidates_and_the_state_of_each_source(served: Served) -> None:
    answer = served.json("search", "TIMEOUT", "--cwd", SHOP)
    assert list(answer) == ["query", "candidates", "partial", "truncated", "sources"]
    assert [answer["query"], answer["partial"], answer["truncated"]] == ["TIMEOUT", False, False]
    assert [candidate["session_id"] for candidate in answer["candidates"]] == [DOUBLE_CHARGE]
    assert answer["candidates"][0]["display_title"] == "Double charge after a gateway timeout"
    assert answer["candidates"][0]["same_workspace"] is True
    assert answer["candidates"][0]["mention"].startswith("@[Double charge after a gateway timeout](dsh-session:")
    assert {source["source"]: source["listed_sessions"] for source in answer["sources"]} == {
        "dsh": 4,
        "claude-code": 3,
        "codex": 2,
    }


def test_search_options_reach_the_server(served: Served) -> None:
    only = served.json("search", "--source", "dsh", "--subagents", "exclude", "--limit", "2", "--cwd", SHOP)
    without = served.json("search", "gateway", "--target", DOUBLE_CHARGE)
    assert [candidate["source"] for candidate in only["candidates"]] == ["dsh", "dsh"]
    assert "Search: prices without currency" not in [candidate["display_title"] for candidate in only["candidates"]]
    assert without["candidates"] == []


def test_search_that_finds_nothing_succeeds_and_says_so(served: Served) -> None:
    done = served.run("search", "no such session")
    assert (done.returncode, done.stdout) == (0, "no session matches 'no such session'\n")


def test_output_that_nobody_reads_ends_the_command_quietly(served: Served) -> None:
    command = [*PROGRAM, "search", "--json", "--address", served.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 1)


def test_search_in_an_unknown_source_fails_with_the_reason(served: Served) -> None:
    done = served.run("search", "--source", "emacs")
    assert (done.returncode, done.stdout) == (1, "")
    assert "(INVALID_REQUEST); see `sessionref search --help`" in done.stderr


def test_prepare_prints_facts_context_and_message(served: Served) -> None:
    mention = served.json("search", "timeout")["candidates"][0]["mention"]
    done = served.run("prepare", "--target", "t", "--cwd", SHOP, "--ref", f"{GUESTS}=Guests", f"Go on with {mention}")
    assert done.returncode == 0
    assert "context for the model, before the message (untrusted):" in done.stdout
    assert "<referenced-sessions>" in done.stdout
    assert done.stdout.endswith("message:\nGo on with @Double charge after a gateway timeout\n")
    assert re.search(r"^Guests +\d of 4 ", done.stdout, re.MULTILINE)


def test_prepare_as_json_is_the_whole_response(served: Served) -> None:
    answer = served.json("prepare", "--target", "t", "--ref", DOUBLE_CHARGE, "--ref", RETRY, "-", text="Hello\n")
    context = answer["additional_context"]
    facts = {reference["session_id"]: reference for reference in context["source"]["references"]}
    assert answer["content"] == [{"type": "text", "text": "Hello\n"}]
    assert list(facts) == [DOUBLE_CHARGE, RETRY]
    assert [facts[DOUBLE_CHARGE]["truncated"], facts[RETRY]["truncated"]] == [True, False]
    assert [omission["session_id"] for omission in context["omissions"]] == [DOUBLE_CHARGE]
    assert context["omissions"][0]["full_snapshot"]["status"] == "saved"
    assert context["trust"] == "untrusted"


def test_prepare_with_context_only_prints_just_the_text(served: Served) -> None:
    done = served.run("prepare", "--target", "t", "--ref", RETRY, "--context-only")
    context = served.json("prepare", "--target", "t", "--ref", RETRY)["additional_context"]
    assert done.returncode == 0
    assert done.stdout.rstrip("\n") == context["content"][0]["text"].rstrip("\n")


def test_prepare_of_a_text_without_references_says_that_there_is_no_context(served: Served) -> None:
    done = served.run("prepare", "--target", "t", "plain text", "--context-only")
    said = "nothing is referred to: there is no context; name a session with --ref or a mention\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", RETRY, "--ref", RETRY], "(SESSION_REFERENCE_SELF_REFERENCE); leave out the reference to the target itself"),
        (
            ["--target", "t", "--ref", "nobody"],
            "(SESSION_REFERENCE_READ_FAILED); `sessionref search` lists the sessions there are",
        ),
        (
            ["--target", "t", "--ref", "a", "--ref", "b", "--ref", "c", "--ref", "d"],
            "(SESSION_REFERENCE_TOO_MANY); refer to fewer sessions",
        ),
        (["--target", "t", "see dsh-session:AAAA"], "(SESSION_REFERENCE_INVALID_REFERENCE); take ids and mentions as"),
    ],
)
def test_prepare_that_fails_gives_exit_code_1_and_the_reason(served: Served, arguments: list[str], said: str) -> None:
    done = served.run("prepare", *arguments)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert said in done.stderr


def test_read_prints_the_saved_transcript_and_parts_of_it(served: Served) -> None:
    prepared = served.json("prepare", "--target", "owner", "--ref", DOUBLE_CHARGE)
    saved = prepared["additional_context"]["omissions"][0]["full_snapshot"]
    whole = served.run("read", saved["locator"], "--owner", "owner")
    part = served.run("read", saved["locator"], "--owner", "owner", "--offset", "2", "--limit", "7")
    document = served.json("read", saved["locator"], "--owner", "owner", "--offset", "2", "--limit", "7")
    foreign = served.run("read", saved["locator"], "--owner", "another")
    assert len(whole.stdout.encode()) == saved["size_bytes"]
    assert "### Message 1: user" in whole.stdout
    assert part.stdout.encode() == whole.stdout.encode()[2:9]
    assert [document["offset_bytes"], document["total_bytes"], document["text"]] == [2, saved["size_bytes"], part.stdout]
    assert (foreign.returncode, foreign.stdout) == (1, "")
    assert "a locator works for its own --owner only" in foreign.stderr


def test_sources_gives_the_state_of_each_source(served: Served) -> None:
    done = served.run("sources")
    answer = served.json("sources")
    assert [re.split(" {2,}", line) for line in done.stdout.splitlines()[1:4]] == [
        ["dsh", "4", "ready"],
        ["claude-code", "3", "ready"],
        ["codex", "2", "ready"],
    ]
    assert list(answer) == ["version", "limits", "sources"]
    assert answer["limits"]["maximum_reference_bytes"] == 800
    assert [source["ready"] for source in answer["sources"]] == [True, True, True]


def test_sources_looks_at_this_machine_without_a_server(tmp_path: Path) -> None:
    done = run("sources", "--local", "--json", f"--set=cache.folder={tmp_path}", *SOURCES)
    assert done.returncode == 0
    assert {each["source"]: each["listed_sessions"] for each in json.loads(done.stdout)["sources"]} == {
        "dsh": 4,
        "claude-code": 3,
        "codex": 2,
    }


def test_the_demo_runs_from_start_to_end() -> None:
    done = subprocess.run(
        [sys.executable, str(PROJECT / "examples" / "demo.py")],
        capture_output=True,
        encoding="utf-8",
        env=surroundings(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "  -> Double charge after a gateway timeout  (dsh)" in done.stdout
    assert "  -> Add a retry with backoff to the upload client.  (codex)" in done.stdout
    assert "<referenced-sessions>" in done.stdout
    assert "### Message 1: user" in done.stdout
