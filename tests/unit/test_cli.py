"""The command line without a server: arguments, help and exit codes."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from sessionref_server import cli

COMMANDS = ("serve", "search", "prepare", "read", "sources", "check-config")
ESC = "\x1b"


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration, address or server of the person who runs the tests."""
    for name in ("SESSIONREF_CONFIG", "SESSIONREF_ADDRESS", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_gives_examples_and_the_next_step(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"examples:\n  sessionref {command}" in text
    assert ("next: " in text) is (command != "read")


def test_help_imports_neither_grpc_nor_rich_nor_the_client() -> None:
    script = (
        "import sys; from sessionref_server import cli; cli.build_parser().format_help()\n"
        "print([name for name in ('grpc', 'google', 'rich', 'sessionref_client', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, "sessionref 0.1.0\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "sessionref: the following arguments are required: COMMAND; see `sessionref --help`"),
        (
            ["prepare", "text"],
            "sessionref prepare: the following arguments are required: --target; see `sessionref prepare --help`",
        ),
        (["read", "x"], "sessionref read: the following arguments are required: --owner; see `sessionref read --help`"),
        (
            ["search", "--limit", "0"],
            "sessionref search: argument --limit: must be a whole number from 1 to 2147483647; see `sessionref search --help`",
        ),
        (
            ["search", "--limit", "99999999999"],
            "sessionref search: argument --limit: must be a whole number from 1 to 2147483647; see `sessionref search --help`",
        ),
        (
            ["search", "\udcff"],
            "sessionref search: argument QUERY: is not valid UTF-8; see `sessionref search --help`",
        ),
        (
            ["search", "--timeout", "nan"],
            (
                "sessionref search: argument --timeout: must be a number of seconds, more than 0 and at most 3600; "
                "see `sessionref search --help`"
            ),
        ),
        (
            ["prepare", "--target", "t", "--json", "--context-only", "x"],
            "sessionref prepare: argument --context-only: not allowed with argument --json; see `sessionref prepare --help`",
        ),
        (
            ["serve", "--set", "log.level"],
            "sessionref serve: argument --set: 'log.level' lacks its =VALUE; see `sessionref serve --help`",
        ),
        (
            ["search", "a", f"b{ESC}[31m"],
            "sessionref: unrecognized arguments: b\\x1b[31m; see `sessionref --help`",
        ),
    ],
)
def test_bad_arguments_end_with_exit_code_2_and_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert (ended.value.code, capsys.readouterr().err) == (2, said + "\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["search", "--address", "nonsense"],
            2,
            (
                "sessionref: address 'nonsense' is not understood; write unix:/path, unix:///path or host:port; "
                "see `sessionref search --help`"
            ),
        ),
        (["prepare", "--target", "t"], 2, "sessionref: give a TEXT with mentions, or --ref ID; see `sessionref prepare --help`"),
        (
            ["check-config", "--set", "prepare.max_references=9"],
            2,
            (
                "sessionref: prepare.max_references (flag) must be a whole number from 1 to 3 "
                "(SESSION_REFERENCE_INVALID_CONFIG); `sessionref check-config` explains the keys"
            ),
        ),
        (
            ["serve", "--sources-root", "emacs=/tmp"],
            2,
            (
                "sessionref: --sources-root: there is no source 'emacs'; the sources are dsh, claude-code, codex; "
                "see `sessionref serve --help`"
            ),
        ),
        (
            ["serve", "--sources-root", "codex=/a,b"],
            2,
            (
                "sessionref: --sources-root: a folder with a comma in its name has to be set in the configuration file; "
                "see `sessionref serve --help`"
            ),
        ),
    ],
)
def test_arguments_that_make_no_sense_end_with_one_line(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (cli.main(arguments), capsys.readouterr().err) == (code, said + "\n")


@pytest.mark.parametrize(
    "arguments",
    [["search"], ["prepare", "--target", "t", "--ref", "x"], ["read", "x", "--owner", "t"], ["sources"]],
    ids=lambda arguments: arguments[0],
)
def test_without_a_server_a_command_fails_and_says_how_to_start_one(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"unix:{tmp_path}/none.sock"
    said = f"sessionref: no server answers at {address} (UNAVAILABLE); start one with `sessionref serve`\n"
    assert (cli.main([*arguments, "--address", address]), capsys.readouterr().err) == (1, said)


def test_standard_input_that_is_not_utf8_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert cli.main(["prepare", "--target", "t", "-"]) == 2
    assert capsys.readouterr().err == "sessionref: standard input is not UTF-8 text; see `sessionref prepare --help`\n"


def test_check_config_says_where_each_value_came_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[prepare]\nmax_references = 2\n[models]\nbig = 1000\n")
    monkeypatch.setenv("SESSIONREF_SEARCH_CANDIDATE_LIMIT", "7")
    code = cli.main(["check-config", "--config", str(file), "--set", "log.level=debug"])
    lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    origins = {line[0]: (line[1], line[2]) for line in lines if len(line) == 3}
    assert code == 0
    assert origins["prepare.max_references"][0] == "2"
    assert origins["prepare.max_references"][1].startswith("file my.toml")
    assert origins["search.candidate_limit"][1].startswith("variable SESSIONREF_SEARCH_CANDIDATE_LIMIT")
    assert origins["log.level"] == ("debug", origins["log.level"][1])
    assert origins["log.level"][1].startswith("flag")
    assert origins["models.big"][0] == "1000"
    assert origins["spill.enabled"][1].startswith("default")


def test_check_config_reads_the_file_in_the_configuration_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config" / "sessionref" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("log.level = 'loud'\n")
    assert cli.main(["check-config"]) == 2
    assert "log.level (file config.toml) must be one of debug, info, warning, error" in capsys.readouterr().err


def test_check_config_refuses_an_address_the_server_would_refuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check-config", "--set", "listen.addresses=0.0.0.0:1"]) == 2
    assert "listen.addresses: '0.0.0.0:1' is not a loopback address" in capsys.readouterr().err


def test_check_config_on_a_narrow_terminal_puts_the_meaning_under_the_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    cli.main(["check-config"])
    lines = capsys.readouterr().out.splitlines()
    where = lines.index("prepare.max_references = 3  (default)")
    assert lines[where + 1].strip() == "Most distinct references in one Prepare."
    assert max(map(len, lines)) <= 60
