"""How many bytes the preview of one source may take."""

from __future__ import annotations

import math

from sessionref_server.domain.limits import BYTES_PER_TOKEN, REFERENCE_FLOOR_BYTES


def reference_budget_bytes(max_reference_bytes: int | None, fraction: float, context_window_tokens: int | None) -> int:
    """Budget per source in bytes.

    Args:
        max_reference_bytes: Fixed by configuration; taken exactly when present.
        fraction: Share of the context window one source may fill, 0 to 1.
        context_window_tokens: Window of the target's model; ``None`` or not positive when unknown.

    Returns:
        The fixed size, else the share of the window at four bytes per token, never under 65,536.
    """
    if max_reference_bytes is not None:
        return max_reference_bytes
    if context_window_tokens is None or context_window_tokens <= 0:
        return REFERENCE_FLOOR_BYTES
    return max(REFERENCE_FLOOR_BYTES, math.floor(context_window_tokens * BYTES_PER_TOKEN * fraction))
