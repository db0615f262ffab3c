r"""Session mentions in text: ``@[label](dsh-session:…)`` and the bare URI.

The grammar, read from left to right, each match consumed before the next is looked for:

1. ``@[label](dsh-session:rest)``: label is a run of a backslash and one character that is no line terminator, or of any character
   but ``\`` and ``]``; rest is a run, maybe empty, without white space and ``)``.
2. ``dsh-session:`` and one or more of ``A-Za-z0-9_-``.

Read by hand in one pass: a regular expression for it is quadratic in texts such as ``@[@[@[…``. What keeps the pass linear is
that a label that is being read passes through every ``@[`` inside it in step with a label that starts there, since ``@`` is
never a backslash. So when one label fails at a position, all that start before that position fail there too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sessionref_server.domain.errors import InvalidReferenceError
from sessionref_server.domain.file_token import FileMention, find_file_mentions
from sessionref_server.domain.javascript_text import LINE_TERMINATORS, WHITE_SPACE, find_any, find_other
from sessionref_server.domain.limits import MAX_FILE_MENTIONS
from sessionref_server.domain.reference import SessionReference
from sessionref_server.domain.session import SessionId
from sessionref_server.domain.session_uri import SCHEME, decode_session_uri, encode_session_uri

_OPENING = "@["
_MIDDLE = "](" + SCHEME
_REST_STOPS = WHITE_SPACE | {")"}
_PAYLOAD_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedText:
    """A text with its mentions made readable."""

    text: str
    """The text with each session mention replaced by ``@label``."""
    references: tuple[SessionReference, ...]
    """Session mentions in order of appearance, repetitions included; the label is always present."""
    files: tuple[FileMention, ...]
    """File mentions by form, in order; they stay in the text as they are."""


def format_mention(session_id: str, label: str | None = None) -> str:
    r"""Write the canonical mention: ``\`` and ``]`` in the label get a backslash; an absent label is the id, an empty one stays.

    Raises InvalidReferenceError when the id is not valid Unicode.
    """
    shown = session_id if label is None else label
    escaped = shown.replace("\\", "\\\\").replace("]", "\\]")
    return f"@[{escaped}]({encode_session_uri(session_id)})"


def parse_mentions(
    text: str,
    *,
    label: Callable[[str], str] | None = None,
    field: str = "text",
    index: int | None = None,
    file_limit: int = MAX_FILE_MENTIONS,
) -> ParsedText:
    """Read all mentions of one text, in time linear in its length.

    Args:
        text: The text.
        label: Makes each label fit to be shown, for example one clean line; labels stay as written when absent.
        field: Name of the request field, for the error's metadata.
        index: Position of the text in that field, for the error's metadata.
        file_limit: Most file mentions to report.

    Raises:
        InvalidReferenceError: A match does not decode. Neither message nor metadata holds any of the text.
    """
    decode = _Decoder(field, index)
    pieces: list[str] = []
    references: list[SessionReference] = []
    spans: list[tuple[int, int]] = []
    copied = 0
    for match in _Scanner(text):
        session_id = decode(match.uri)
        shown = session_id if match.label is None else _unescape(match.label)
        shown = shown if label is None else label(shown)
        references.append(SessionReference(session_id, shown))
        spans.append((match.start, match.end))
        pieces += (text[copied : match.start], "@", shown)
        copied = match.end
    pieces.append(text[copied:])
    return ParsedText(text="".join(pieces), references=tuple(references), files=find_file_mentions(text, spans, file_limit))


class _Decoder:
    """Decodes the URIs of one text. A URI that occurs again is not decoded again."""

    def __init__(self, field: str, index: int | None) -> None:
        self._place: dict[str, str | int] = {"field": field} if index is None else {"field": field, "index": index}
        self._known: dict[str, SessionId] = {}

    def __call__(self, uri: str) -> SessionId:
        known = self._known.get(uri)
        if known is not None:
            return known
        try:
            session_id = decode_session_uri(uri)
        except InvalidReferenceError:
            raise InvalidReferenceError("a session mention does not decode", **self._place) from None
        self._known[uri] = session_id
        return session_id


def _unescape(label: str) -> str:
    r"""Take the backslash off each escaped character. Splitting at ``\\`` first keeps the pairs in step."""
    if "\\" not in label:
        return label
    return "\\".join(part.replace("\\", "") for part in label.split("\\\\"))


class _Match(NamedTuple):
    start: int
    end: int
    uri: str
    label: str | None
    """As written, escapes included; ``None`` for a bare URI."""


class _Scanner:
    """Yields the matches of one text. Positions that later starts would find again are remembered."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._last_closing = text.rfind(")")
        self._next_bracket = -1
        """First ``]`` at or after the last position asked for; -1 before the first question."""
        self._next_stop = -1
        """First white space or ``)`` likewise."""
        self._openings_from = 0
        """Every opening before it is known to lead nowhere, or was used."""

    def __iter__(self) -> Iterator[_Match]:
        text, position = self._text, 0
        # Both forms hold the scheme: without one ahead there is nothing left to find.
        while (scheme := text.find(SCHEME, position)) >= 0:
            match = self._mention_before(scheme, position) or self._bare_at(scheme)
            if match is None:
                position = scheme + len(SCHEME)
                continue
            yield match
            position = match.end

    def _mention_before(self, scheme: int, position: int) -> _Match | None:
        """The mention whose opening is the first one from ``position`` that leads to one, and stands before ``scheme``."""
        if self._last_closing < scheme:
            return None
        text = self._text
        opening = text.find(_OPENING, max(position, self._openings_from), scheme)
        while opening >= 0:
            label_start = opening + len(_OPENING)
            label_end = self._label_end(label_start)
            if text.startswith(_MIDDLE, label_end):
                uri_start = label_end + len(_MIDDLE) - len(SCHEME)
                uri_end = self._rest_end(uri_start + len(SCHEME))
                if text.startswith(")", uri_end):
                    return _Match(opening, uri_end + 1, text[uri_start:uri_end], text[label_start:label_end])
            self._openings_from = label_end
            opening = text.find(_OPENING, label_end, scheme)
        return None

    def _bare_at(self, scheme: int) -> _Match | None:
        payload = scheme + len(SCHEME)
        end = find_other(self._text, _PAYLOAD_CHARACTERS, payload)
        return _Match(scheme, end, self._text[scheme:end], None) if end > payload else None

    def _label_end(self, start: int) -> int:
        """Where a label stops: at the unescaped ``]``, or at a backslash or the text's end where it fails."""
        text = self._text
        bracket = self._bracket_from(start)
        if bracket == len(text):
            return bracket
        backslash = text.find("\\", start, bracket)
        while backslash >= 0:
            escaped = backslash + 1
            if text[escaped : escaped + 1] in LINE_TERMINATORS:
                return backslash
            if escaped == bracket:
                bracket = self._bracket_from(bracket + 1)
            backslash = text.find("\\", escaped + 1, bracket)
        return bracket

    def _bracket_from(self, position: int) -> int:
        if self._next_bracket < position:
            found = self._text.find("]", position)
            self._next_bracket = len(self._text) if found < 0 else found
        return self._next_bracket

    def _rest_end(self, position: int) -> int:
        if self._next_stop < position:
            self._next_stop = find_any(self._text, _REST_STOPS, position)
        return self._next_stop
