"""Golden cases: an input and its right output, from the shared fixtures when they are there, else the project's own copies."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

_OWN_VECTORS = Path(__file__).parents[1] / "vectors"


def load_vectors(name: str) -> list[dict[str, Any]]:
    fixtures = os.environ.get("SESSIONREF_FIXTURES")
    folder = Path(fixtures) / "vectors" if fixtures else _OWN_VECTORS
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def each_case(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    """Run a test once per case, named after it."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases])
