"""Most session ids are a short word and hexadecimal digits. Almost no query can be part of one, and then no id is looked at."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Final

_TAIL: Final = "0123456789abcdef-"
_LONGEST_PREFIX: Final = 24
_MOST_PREFIXES: Final = 64


class IdShapes:
    """Knows which pairs of neighbouring bytes occur in ids of the form ``<prefix><hexadecimal digits and dashes>``."""

    def __init__(self) -> None:
        self._prefixes: set[str] = set()
        tail = _TAIL.encode()
        self._bytes = set(tail)
        self._pairs = set(product(tail, tail))

    def learn(self, session_id: str) -> None:
        """Remember the form of an id. Past 64 prefixes no new ones are remembered."""
        prefix = session_id.lower().rstrip(_TAIL)
        if prefix not in self._prefixes and len(prefix) <= _LONGEST_PREFIX and len(self._prefixes) < _MOST_PREFIXES:
            self._remember(prefix)

    def admits(self, folded_id: str) -> bool:
        """Whether an id, in lower case, has a remembered form."""
        return folded_id.rstrip(_TAIL) in self._prefixes

    def may_hold(self, needle: bytes) -> bool:
        """Whether a needle may be part of an admitted id. False is certain."""
        if len(needle) == 1:
            return needle[0] in self._bytes
        return self._pairs.issuperset(pairwise(needle))

    def _remember(self, prefix: str) -> None:
        self._prefixes.add(prefix)
        encoded = prefix.encode("utf-8", "surrogatepass")
        self._bytes.update(encoded)
        self._pairs.update(pairwise(encoded))
        self._pairs.update(product(encoded[-1:], _TAIL.encode()))
