"""No text of a caller or a log meets a regular expression that could take more than linear time."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sessionref_server

SERVER = Path(sessionref_server.__file__).parent
MODULES = sorted(SERVER.rglob("*.py"))
MADE_BY_US = {
    # The branches of a format's marker, which is itself a fixed pattern.
    ("adapters/sessions/marker_search.py", "fullmatch"),
}


def uses_of_re(path: Path) -> Iterator[tuple[str, bool]]:
    """Functions of ``re`` a module calls, each with whether it is done once, at import."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_import = {id(node) for statement in tree.body if isinstance(statement, ast.Assign) for node in ast.walk(statement)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)):
                yield name, id(node) in at_import
            case _:
                pass


def fixed_patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    for path in MODULES:
        if "re." not in path.read_text(encoding="utf-8"):
            continue
        name = ".".join(path.relative_to(SERVER.parent).with_suffix("").parts).removesuffix(".__init__")
        for attribute, value in vars(importlib.import_module(name)).items():
            if isinstance(value, re.Pattern):
                yield f"{name}.{attribute}", value


def unbounded_repeats(parsed: Iterable[tuple[Any, Any]], depth: int = 0) -> Iterator[int]:
    """How deep in other unbounded repetitions each unbounded repetition lies."""
    for operator, argument in parsed:
        match str(operator), argument:
            case ("MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT", (_, most, body)):
                is_unbounded = str(most) == "MAXREPEAT"
                if is_unbounded:
                    yield depth
                yield from unbounded_repeats(body, depth + is_unbounded)
            case ("SUBPATTERN", (*_, body)):
                yield from unbounded_repeats(body, depth)
            case ("BRANCH", (_, branches)):
                for branch in branches:
                    yield from unbounded_repeats(branch, depth)
            case ("ASSERT" | "ASSERT_NOT", (_, body)):
                yield from unbounded_repeats(body, depth)
            case _:
                pass


def test_patterns_are_made_once_at_import_from_text_of_our_own() -> None:
    found = {
        (str(path.relative_to(SERVER)), name)
        for path in MODULES
        for name, at_import in uses_of_re(path)
        if not (name == "compile" and at_import)
    }
    assert found == MADE_BY_US


@pytest.mark.parametrize("name", sorted(dict(fixed_patterns())))
def test_no_repetition_of_a_pattern_lies_in_another(name: str) -> None:
    pattern = dict(fixed_patterns())[name]
    assert [depth for depth in unbounded_repeats(re._parser.parse(pattern.pattern, pattern.flags)) if depth > 0] == []  # type: ignore[attr-defined]
