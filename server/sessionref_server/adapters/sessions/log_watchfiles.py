"""Notifications through the ``watchfiles`` package, for systems other than Linux."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Collection, Iterator, Sequence

from watchfiles import Change, watch

from sessionref_server.adapters.sessions.log_change import ChangeKind, LogChange

DEBOUNCE_MS = 80
STEP_MS = 40
SETTLE_MS = 400
"""How long the package may take to say that it is watching."""

_KINDS = {Change.added: ChangeKind.ADDED, Change.modified: ChangeKind.MODIFIED, Change.deleted: ChangeKind.DELETED}

logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it logs the paths it sees


class WatchfilesWatch:
    """One run of watching."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self._stop = threading.Event()
        self._real_roots = [(os.path.realpath(root), root) for root in roots]

    def stop(self) -> None:
        """End ``changes`` soon; from any thread."""
        self._stop.set()

    def changes(self) -> Iterator[Collection[LogChange] | None]:
        """First ``None`` when watching has begun, then what changed. Raises whatever the package raises."""
        notifications = watch(
            *self._roots,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=self._stop,
            rust_timeout=SETTLE_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )
        for number, found in enumerate(notifications):
            if number == 0:
                yield None
            if found:
                yield [(_KINDS[kind], self._as_given(path)) for kind, path in found]

    def _as_given(self, path: str) -> str:
        """The path below the root as it was given; some systems report the one behind links."""
        for real, given in self._real_roots:
            if real != given and path.startswith(real + os.sep):
                return given + path[len(real) :]
        return path
