"""For all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

# No test is timed: a machine may be busy with something else.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write the golden texts anew from what the code does now")
