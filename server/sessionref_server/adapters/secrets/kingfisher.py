"""Secrets found by Kingfisher (MongoDB's scanner): its catalogue of some 490 kinds, and a few rules of our own.

Scanning releases the interpreter's lock. Text is scanned in windows, because some patterns of the catalogue take quadratic time
on text made for it; windows overlap by more than any secret is long.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sessionref_server.adapters.secrets.likeness import MAX_EXAMINED_CHARACTERS, is_placeholder, looks_chosen, looks_random
from sessionref_server.domain.errors import InvalidConfigError

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

WINDOW_BYTES = 64 * 1024
OVERLAP_BYTES = 8 * 1024
RULES_FILE = Path(__file__).with_name("rules.yml")

_PACKAGE = "kingfisher_sdk"
_OWN = "custom.sessionref."


def _is_random_value(value: str) -> bool:
    return not is_placeholder(value) and looks_random(value)


def _is_assigned_value(value: str) -> bool:
    return not is_placeholder(value) and (looks_random(value) or looks_chosen(value))


_SECOND_LOOK: dict[str, Callable[[str], bool]] = {
    _OWN + "assignment": _is_assigned_value,
    _OWN + "option": _is_random_value,
    _OWN + "authorization": _is_random_value,
    _OWN + "prefixed": _is_random_value,
    _OWN + "url-password": lambda value: not is_placeholder(value),
    _OWN + "aws-key-id": lambda value: not is_placeholder(value),
    "betterleaks.generic-credential-uri": lambda value: not is_placeholder(value),
    # It takes all text from any BEGIN to any END. Ours takes the key.
    "betterleaks.private-key": lambda _: False,
}
_OPEN_ENDED = frozenset({_OWN + "assignment", _OWN + "option", _OWN + "authorization", _OWN + "prefixed"})
_DELIMITER = re.compile(rb"[\s\"'`,;<>(){}\[\]\\&|]")


class KingfisherDetector:
    """A SecretDetector. Safe to use from several threads."""

    def __init__(self, cache_folder: Path | None = None) -> None:
        """Load nothing yet.

        Args:
            cache_folder: private folder for the compiled rules, which makes loading ten times faster the second time (about
                0.3 s instead of 3 s); ``None`` to keep nothing.
        """
        self._cache_folder = cache_folder
        self._lock = threading.Lock()
        self._scanner: Scanner | None = None

    async def start(self) -> None:
        """Load in a thread. Raises InvalidConfigError when that fails: a service that is to hide secrets must not start."""
        await asyncio.to_thread(self.load)

    @cached_property
    def rules(self) -> str:
        """A short text that is another one when other rules, or another scanner, may find something else. Loads nothing."""
        own = [path.read_bytes() for path in sorted(RULES_FILE.parent.glob("[!_]*.*")) if path.suffix in {".py", ".yml"}]
        return hashlib.sha256(bytes(1).join([*own, _installed().encode()])).hexdigest()[:32]

    def load(self) -> None:
        """Load the rules and try them, unless that is done. Blocks; raises InvalidConfigError."""
        with self._lock:
            if self._scanner is not None:
                return
            try:
                scanner = _compile(self._cache_folder)
            except Exception as error:  # noqa: BLE001 - a native module may raise anything
                raise InvalidConfigError(
                    f"the secret scanner cannot be loaded ({type(error).__name__})", key="redact_secrets"
                ) from None
            if not _finds_what_it_must(scanner):
                raise InvalidConfigError("the secret scanner does not find what it must", key="redact_secrets")
            self._scanner = scanner

    def find(self, text: bytes) -> list[tuple[int, int]]:
        """Byte ranges of secrets, ascending and not overlapping. Loads first when need be; text is never passed unseen."""
        if self._scanner is None:
            self.load()
        scanner = self._scanner
        if scanner is None:
            raise InvalidConfigError("the secret scanner is not loaded", key="redact_secrets")
        ranges: list[tuple[int, int]] = []
        for start, window in _windows(text):
            ranges.extend(_ranges(scanner, window, start))
        return _merge(ranges)


def _installed() -> str:
    """Which build of the scanner is installed. Not by its version: what reads that takes longer to import than the scanner."""
    spec = find_spec(_PACKAGE)
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    files = sorted(path for folder in folders for path in Path(folder).iterdir() if path.is_file())
    return repr([(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files])


def _compile(cache_folder: Path | None) -> Scanner:
    from kingfisher_sdk import Rules, Scanner

    rules = Rules([RULES_FILE], confidence="medium", cache=cache_folder is not None, cache_dir=cache_folder)
    return Scanner(rules, base64=False)


def _finds_what_it_must(scanner: Scanner) -> bool:
    """One secret of the catalogue and one of our rules, put together here so that no scanner stumbles over this file."""
    catalogue, own = "ghp_" + "a8Kd0Zt3Qw" * 3 + "Pm5Xr2", "AKIA" + "Q3EGRZLY7WKT2XNB"
    return _ranges(scanner, f"{catalogue} {own}".encode(), 0) == [(0, len(catalogue)), (len(catalogue) + 1, len(catalogue) + 21)]


def _windows(text: bytes) -> Iterator[tuple[int, bytes]]:
    start = 0
    while True:
        end = start + WINDOW_BYTES
        if end >= len(text):
            yield start, text[start:]
            return
        # Between two lines a cut makes nothing look like what it is not.
        line_end = text.rfind(b"\n", end - OVERLAP_BYTES // 2, end) + 1
        end = line_end or end
        yield start, text[start:end]
        start = end - OVERLAP_BYTES


def _ranges(scanner: Scanner, window: bytes, start: int) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    values = _Values(window)
    for finding in sorted(scanner.scan(window), key=lambda finding: finding.location["start_offset"]):
        first, last = finding.location["start_offset"], finding.location["end_offset"]
        if not finding.visible or (ranges and last <= ranges[-1][1] - start):
            continue  # a helper of a composite rule, or hidden already
        if finding.rule_id in _OPEN_ENDED:
            last = values.end(last)
        second_look = _SECOND_LOOK.get(finding.rule_id)
        if second_look is None or second_look(
            window[first : min(last, first + MAX_EXAMINED_CHARACTERS)].decode(errors="replace")
        ):
            ranges.append((start + first, start + last))
    return ranges


class _Values:
    """Where values end. Our patterns stop early, since a scanner pays for each place where a match may end."""

    def __init__(self, window: bytes) -> None:
        self._window = window
        self._known = (0, 0)

    def end(self, position: int) -> int:
        """The next delimiter from ``position``, or the end of the window. Looks at no byte twice when positions ascend."""
        since, end = self._known
        if not since <= position <= end:
            found = _DELIMITER.search(self._window, position)
            end = found.start() if found else len(self._window)
            self._known = position, end
        return end


def _merge(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged
