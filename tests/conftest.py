"""For all tests."""

from __future__ import annotations

from hypothesis import settings

# No test is timed: a machine may be busy with something else.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
