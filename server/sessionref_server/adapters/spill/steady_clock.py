"""A clock for expiry that neither jumps nor runs ahead."""

from __future__ import annotations

import time
from collections.abc import Callable


def _ticks_seconds() -> float:
    # Sleep of the machine counts; CLOCK_BOOTTIME is Linux's name for that, macOS counts it in CLOCK_MONOTONIC.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SteadyClock:
    """Wall time when it was made plus ticks since: setting the machine's clock while the service runs changes nothing.

    A machine whose clock was set forward while the service was down cannot be told from one that was off for so long.
    """

    def __init__(
        self, wall_seconds: Callable[[], float] = time.time, ticks_seconds: Callable[[], float] = _ticks_seconds
    ) -> None:
        self._ticks_seconds = ticks_seconds
        self._offset_seconds = wall_seconds() - ticks_seconds()

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return int((self._offset_seconds + self._ticks_seconds()) * 1_000_000_000)
