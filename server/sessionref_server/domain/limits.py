"""The numbers of the contract, each with its unit. Configuration may change some; these are the defaults and the hard bounds."""

from __future__ import annotations

from typing import Final

from sessionref_server.domain.errors import InvalidReferenceError

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""Largest integer every client language can hold exactly."""

DEFAULT_SESSION_CANDIDATES: Final = 50
MAX_CANDIDATES: Final = 1_000
"""Most candidates of one domain in one batch, whatever a request asks for: a picker shows fewer, and a batch stays small."""
MAX_QUERY_BYTES: Final = 1024
"""Longest search text accepted, as UTF-8. No title, path or id is found by a longer one."""

MAX_LABEL_CHARACTERS: Final = 200
"""Longest label or title shown, in code points."""

MIN_REFERENCES: Final = 1
MAX_REFERENCES: Final = 3
"""Most distinct references in one Prepare; also the default."""

REFERENCE_FLOOR_BYTES: Final = 65_536
"""Byte budget of one source when the model's capacity is unknown or small."""
BYTES_PER_TOKEN: Final = 4
DEFAULT_REFERENCE_CONTEXT_FRACTION: Final = 0.2

TRANSCRIPT_FRAGMENT_CODE_POINTS: Final = 64
"""Longest piece of text on one line of a saved transcript, so that tools that cut long lines lose nothing."""
SNAPSHOT_CHUNK_BYTES: Final = 65_536
"""Default size of one chunk of a saved transcript on the wire."""
MAX_SNAPSHOT_CHUNK_BYTES: Final = 1_048_576
DEFAULT_SNAPSHOT_LIFETIME_DAYS: Final = 30

MAX_REQUEST_BYTES: Final = 4_194_304
"""Largest request message: content blocks may carry images."""
MAX_TEXTS: Final = 1_000
"""Most texts in one ParseMentions."""

MAX_CONTENT_BLOCKS: Final = 1_000
"""Most content blocks in one Prepare. Nobody's message has a thousand."""
MAX_LISTED_REFERENCES: Final = 1_000
"""Most references listed in one Prepare, repetitions included; far fewer distinct ones are allowed."""
MAX_NAMED_SOURCES: Final = 100
"""Most sources or domains one search may name, repetitions included."""

MAX_FILE_MENTIONS: Final = 1_000
"""File mentions reported for one text. They are hints by form only, and nobody types a thousand."""
MAX_FILE_MENTIONS_AT_ONCE: Final = 10_000
"""File mentions reported for all texts of one call."""
MAX_MENTIONED_PATH_CHARACTERS: Final = 4_096
"""A longer run of characters after ``@`` is no path on any system."""


def check_limit(limit: object) -> int:
    """Return ``limit`` when it is a positive integer of at most 2^53 - 1, else raise InvalidReferenceError."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= MAX_SAFE_INTEGER:
        raise InvalidReferenceError("limit must be a positive integer", field="limit")
    return limit
