"""The shape of the code, held by machine."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from statistics import median

import pytest
from sessionref_server.adapters.sessions.formats import log_formats
from sessionref_server.config import SOURCE_NAMES

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "server" / "sessionref_server"
CLIENT = ROOT / "clients" / "python" / "sessionref_client"
MODULES = sorted(chain(SERVER.rglob("*.py"), CLIENT.rglob("*.py")))
EVERYTHING = sorted(
    path
    for path in chain(MODULES, (ROOT / "tests").rglob("*.py"), (ROOT / "clients" / "python" / "tests").rglob("*.py"))
    if "__pycache__" not in path.parts
)
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 40
MAX_MEDIAN_FUNCTION_LINES = 10
MEANINGLESS_NAMES = {"utils", "util", "common", "helpers", "helper", "core", "manager", "base", "misc", "tools", "shared"}
ADAPTERS = "sessionref_server.adapters"
MAY_NAME_ADAPTERS = {SERVER / "bootstrap.py"}


def in_project(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    with tokenize.open(path) as file:
        return ast.parse(file.read())


def imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def function_lines(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{in_project(path)}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_import_contracts_hold() -> None:
    roots = os.pathsep.join(str(ROOT / folder) for folder in ("server", "clients/python", "clients/python/gen"))
    checked = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": roots},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {in_project(path): len(path.read_text(encoding="utf-8").splitlines()) for path in EVERYTHING}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_no_function_is_longer_than_a_screen_and_most_are_short() -> None:
    lengths = dict(chain.from_iterable(function_lines(path) for path in MODULES))
    assert {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES} == {}
    assert median(lengths.values()) < MAX_MEDIAN_FUNCTION_LINES


def test_no_module_has_a_name_that_says_nothing() -> None:
    named = {in_project(path): {path.stem, path.parent.name} for path in EVERYTHING}
    assert {path for path, names in named.items() if names & MEANINGLESS_NAMES} == set()


def test_only_the_wiring_names_concrete_adapters() -> None:
    outside = [path for path in SERVER.rglob("*.py") if SERVER / "adapters" not in path.parents]
    naming = {path for path in outside if any(name.startswith(ADAPTERS) for name in imported_names(path))}
    assert naming == MAY_NAME_ADAPTERS


def test_every_log_format_is_a_source_that_can_be_configured() -> None:
    assert list(log_formats()) == list(SOURCE_NAMES)


@pytest.mark.parametrize("name", list(log_formats()))
def test_log_format_carries_the_name_it_is_found_by(name: str) -> None:
    assert log_formats()[name].name == name
