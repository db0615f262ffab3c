from __future__ import annotations

import pytest
from sessionref_server.adapters.sessions.log_catalogue import sweep_pause_seconds


@pytest.mark.parametrize(("sweep_seconds", "pause_seconds"), [(0.0, 0.0), (0.1, 0.3), (0.2, 0.4), (20.0, 0.4)])
def test_pause_after_a_sweep_keeps_its_share_of_time_and_is_bounded(sweep_seconds: float, pause_seconds: float) -> None:
    assert sweep_pause_seconds(sweep_seconds) == pytest.approx(pause_seconds)
