"""Every case of vectors/paths.json."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from sessionref_server.adapters.sessions.formats.dsh.names import (
    EmptySegmentError,
    decode_segment,
    encode_segment,
    project_key,
)

SHARED = os.environ.get("SESSIONREF_FIXTURES")
VECTORS = Path(SHARED) / "vectors" if SHARED else Path(__file__).parents[1] / "vectors"
CASES = json.loads((VECTORS / "paths.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[str(number) for number in range(len(CASES))])
def test_name_is_as_pinned(case: dict[str, Any]) -> None:
    given = case["input"]
    if case.get("error_code") == "EMPTY":
        with pytest.raises(EmptySegmentError):
            encode_segment(given["raw"])
    elif given["op"] == "encodeSegment":
        assert case["output"] == encode_segment(given["raw"])
    else:
        assert case["output"] == project_key(given["cwd"])


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["input"]["op"] == "encodeSegment" and "output" in case], ids=lambda case: case["name"]
)
def test_directory_name_decodes_to_the_id_it_was_made_of(case: dict[str, Any]) -> None:
    assert case["input"]["raw"] == decode_segment(case["output"])
