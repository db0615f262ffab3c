"""The ``@path`` grammar: the token under a cursor, the mention of a chosen file, and the file mentions of a whole text.

A token starts at the start of the input or after white space, so an e-mail address opens none. A path with white space is in
quotes: ``@"docs/a b.md"``. Columns count UTF-16 code units, as editors and terminals in most languages do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sessionref_server.domain.javascript_text import WHITE_SPACE, find_any, find_last_any, utf16_prefix
from sessionref_server.domain.limits import MAX_FILE_MENTIONS, MAX_MENTIONED_PATH_CHARACTERS

_CONTROLS: Final = frozenset(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
_QUOTE: Final = '"'
_QUOTED_STOPS: Final = _CONTROLS | {_QUOTE, "\u2028", "\u2029"}
_BRACKETS: Final = {")": "(", "]": "[", "}": "{", ">": "<"}
_SENTENCE_ENDS: Final = frozenset(".,;:!?'`\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveToken:
    """The token a person is typing."""

    prefix: str
    """As typed, from ``@`` to the cursor; what an accepted candidate replaces."""
    query: str
    """What is searched for: the prefix without ``@`` and an opening quote."""
    quoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMention:
    """A mention of a file by its form. Whether such a file exists is for the host to find out; if not, it is plain text."""

    path: str
    """As written, without ``@``, quotes, and punctuation that ends the sentence."""
    quoted: bool


def active_at_token(line: str, cursor: int) -> ActiveToken | None:
    """Find the ``@path`` or open ``@"path with spaces`` token that ends at ``cursor``.

    Args:
        line: The line, or a whole text.
        cursor: Column in UTF-16 units; a larger one counts as the end, a negative one as the start.

    Returns:
        The token; ``None`` when there is none.
    """
    before = utf16_prefix(line, cursor)
    quote = before.rfind(_QUOTE)
    if quote > 0 and before[quote - 1] == "@" and _opens_token(before, quote - 1):
        return ActiveToken(prefix=before[quote - 1 :], query=before[quote + 1 :], quoted=True)
    start = find_last_any(before, WHITE_SPACE) + 1
    if not before.startswith("@", start):
        return None
    return ActiveToken(prefix=before[start:], query=before[start + 1 :], quoted=False)


def format_file_mention(path: str, *, is_directory: bool, preserve_quote: bool = False) -> str | None:
    """Write the text that replaces the token when a candidate is accepted.

    A directory gets a ``/`` at its end and, when quoted, leaves the quote open, so that typing goes on inside it.

    Args:
        path: Path of the candidate.
        is_directory: Whether it is a directory.
        preserve_quote: The person opened a quote; keep it even when the path needs none.

    Returns:
        The mention; ``None`` when the path holds control characters or a quote and cannot be written.
    """
    if not _CONTROLS.isdisjoint(path) or _QUOTE in path:
        return None
    ending = "/" if is_directory else ""
    if not preserve_quote and WHITE_SPACE.isdisjoint(path):
        return f"@{path}{ending}"
    return f'@"{path}{ending}' if is_directory else f'@"{path}"'


def find_file_mentions(
    text: str, session_mentions: Sequence[tuple[int, int]], limit: int = MAX_FILE_MENTIONS
) -> tuple[FileMention, ...]:
    """Read the file mentions of a text in one pass.

    Args:
        text: The text.
        session_mentions: Spans ``(start, end)`` of its session mentions, ascending. No file mention touches one.
        limit: Most mentions to return, the first ones.
    """
    mentions: list[FileMention] = []
    pending = deque([*session_mentions, (len(text), len(text))])
    start = text.find("@")
    while start >= 0 and len(mentions) < limit:
        if not _opens_token(text, start):
            start = text.find("@", start + 1)
            continue
        while pending[0][1] <= start:
            pending.popleft()
        session_start, session_end = pending[0]
        end = _token_end(text, start + 1) if start < session_start else session_end
        if end > session_start:
            end = session_end
        elif end > start + 1 and (mention := _mention(text[start + 1 : end])):
            mentions.append(mention)
        start = text.find("@", end)
    return tuple(mentions)


def _opens_token(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] in WHITE_SPACE


def _token_end(text: str, start: int) -> int:
    """Where the token whose path or quote begins at ``start`` ends; ``start`` itself when a quote is not closed on its line."""
    if not text.startswith(_QUOTE, start):
        return find_any(text, WHITE_SPACE, start)
    end = find_any(text, _QUOTED_STOPS, start + 1)
    return end + 1 if text.startswith(_QUOTE, end) else start


def _mention(token: str) -> FileMention | None:
    """The mention that a token without its ``@`` is, if any."""
    if len(token) > 2 * MAX_MENTIONED_PATH_CHARACTERS:
        return None
    quoted = token.startswith(_QUOTE)
    path = token[1:-1] if quoted else _without_punctuation(token)
    if not 0 < len(path) <= MAX_MENTIONED_PATH_CHARACTERS or not _CONTROLS.isdisjoint(path):
        return None
    return FileMention(path=path, quoted=quoted)


def _without_punctuation(path: str) -> str:
    """Cut what ends the sentence rather than the path: ``src/a.ts,`` and ``src/a.ts).`` but neither ``..`` nor ``[id]``."""
    end = len(path)
    unopened = {bracket: path.count(bracket) - path.count(_BRACKETS[bracket]) for bracket in _BRACKETS if bracket in path}
    while end and _ends_sentence(path, end, unopened):
        if path[end - 1] in unopened:
            unopened[path[end - 1]] -= 1
        end -= 1
    return path[:end]


def _ends_sentence(path: str, end: int, unopened: Mapping[str, int]) -> bool:
    """Whether the character before ``end`` does; ``unopened`` counts the closing brackets up to there that nothing opens."""
    last = path[end - 1]
    if last in unopened:
        return unopened[last] > 0
    return last in _SENTENCE_ENDS and path[max(0, end - 2) : end] not in {"..", "/."} and (end > 1 or last != ".")
