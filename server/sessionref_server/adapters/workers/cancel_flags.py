"""One page of memory shared with all workers: a byte per worker that says whether its job is still wanted."""

from __future__ import annotations

import mmap
import os
import sys

PAGE_BYTES = 4096
MAX_WORKERS = PAGE_BYTES


class CancelFlags:
    """The page, and the descriptor through which a child process maps the same one."""

    def __init__(self, descriptor: int) -> None:
        """Map ``descriptor`` and own it from now on."""
        self.descriptor = descriptor
        self._page = mmap.mmap(descriptor, PAGE_BYTES)

    @classmethod
    def create(cls) -> CancelFlags:
        """A fresh page with every flag down. It has no name: nothing is left behind however the process ends."""
        descriptor = os.memfd_create("cancel-flags") if sys.platform == "linux" else _unlinked_file()
        os.ftruncate(descriptor, PAGE_BYTES)
        return cls(descriptor)

    def raise_flag(self, worker_index: int) -> None:
        """Tell the worker that its job is not wanted any more."""
        self._page[worker_index] = 1

    def lower_flag(self, worker_index: int) -> None:
        """Get ready for the worker's next job."""
        self._page[worker_index] = 0

    def is_raised(self, worker_index: int) -> bool:
        """Whether the worker's job is to stop."""
        return self._page[worker_index] != 0

    def close(self) -> None:
        """Unmap and close. Children keep their own mapping."""
        self._page.close()
        os.close(self.descriptor)


def _unlinked_file() -> int:
    import tempfile
    from pathlib import Path

    # Imported here, since a worker starts 10 ms sooner without them where there is memfd_create.
    descriptor, path = tempfile.mkstemp(prefix="cancel-flags-")
    Path(path).unlink()
    return descriptor
