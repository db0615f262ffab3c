"""What a worker process runs, and how its failure looks from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Job(Protocol):
    """A picklable piece of CPU work. Its module is imported in the worker and stays loaded, so what the module caches lives on
    between jobs of the same worker.
    """

    def run(self, is_cancelled: Callable[[], bool]) -> object:
        """Do the work and return something picklable. Calls ``is_cancelled`` between records (it costs about 0.1 us) and returns
        anything at all once that is true: nobody waits for the result any more.
        """
        ...


class WorkerFailedError(Exception):
    """The worker died, or what it had to say cannot travel. The message names types and signals, never text of a log."""
