"""Labels kept between runs, so that a start neither scans nor cleans the title of every session again.

A kept label counts only for the very text it was made from and under the very rules that made it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import orjson

from sessionref_server.adapters.sessions.log_format import LogFormat
from sessionref_server.adapters.sessions.session_heads import HeadMaker, Redactor


class ShownTexts(NamedTuple):
    """What one head's texts were recorded as and are shown as; ``None`` for what is absent or of which nothing is visible."""

    title: str | None = None
    shown_title: str | None = None
    label: str | None = None
    shown_label: str | None = None
    cwd: str | None = None
    shown_cwd: str | None = None

    def encode(self) -> bytes:
        """Compact JSON."""
        fields = tuple(self)
        try:
            return orjson.dumps(fields)
        except orjson.JSONEncodeError:  # a lone surrogate
            return json.dumps(fields).encode()


class KeepingHeadMaker(HeadMaker):
    """A HeadMaker that looks at no text again whose shown form is known. Safe to use from any thread."""

    def __init__(self, log_format: LogFormat, redact: Redactor | None) -> None:
        super().__init__(log_format, None if redact is None else self._redact_unknown)
        self._scan = redact
        self._labels: Mapping[str, str | None] = {}
        self._directories: Mapping[str, str] = {}

    def know(self, documents: Iterable[bytes]) -> None:
        """Use these from now on instead of what was known before. ``documents`` come from ``ShownTexts.encode``."""
        labels: dict[str, str | None] = {}
        directories: dict[str, str] = {}
        for document in documents:
            shown = _decode(document)
            if shown.title:
                labels[shown.title] = shown.shown_title
            if shown.label:
                labels[shown.label] = shown.shown_label
            if shown.cwd and shown.shown_cwd is not None:
                directories[shown.cwd] = shown.shown_cwd
        self._labels, self._directories = labels, directories

    def labels(self, texts: Sequence[str | None]) -> list[str | None]:
        """As without anything known."""
        known = self._labels
        fresh = [text for text in texts if text and text not in known]
        made = dict(zip(fresh, super().labels(fresh), strict=True)) if fresh else {}
        return [text if not text else made[text] if text in made else known[text] for text in texts]

    def _redact_unknown(self, texts: Sequence[str]) -> list[str]:
        known = self._directories
        fresh = [text for text in texts if text not in known]
        made = dict(zip(fresh, self._scan(fresh), strict=True)) if fresh and self._scan is not None else {}
        return [made[text] if text in made else known[text] for text in texts]


_TEXTS = frozenset({str, type(None)})


def _decode(document: bytes) -> ShownTexts:
    try:
        fields: object = orjson.loads(document)
    except orjson.JSONDecodeError:
        try:
            fields = json.loads(document)
        except (ValueError, RecursionError):
            return ShownTexts()
    if not isinstance(fields, list) or len(fields) != len(ShownTexts._fields) or not _TEXTS.issuperset(map(type, fields)):  # pyright: ignore[reportUnknownArgumentType]
        return ShownTexts()
    return ShownTexts._make(fields)  # pyright: ignore[reportUnknownArgumentType]
