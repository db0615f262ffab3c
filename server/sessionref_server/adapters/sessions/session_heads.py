"""From what a log says of a session to what the catalogue shows of it: wire ids, clean and redacted labels."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sessionref_server.adapters.sessions.log_format import LogFile, LogFormat, NativeHead
from sessionref_server.domain.label import clean_label
from sessionref_server.domain.limits import MAX_LABEL_CHARACTERS
from sessionref_server.domain.session import ModelRoute, SessionHead, SessionId

MAX_SESSION_ID_BYTES = 512
"""Longest wire id. A longer one is no id that any agent makes, and every mention would carry it."""

MAX_SHARED_ROUTES = 1024
MAX_KNOWN_DIRECTORIES = 16_384
"""Recorded directories whose shown form is remembered."""

_LOOKED_AT_CHARACTERS = 8 * MAX_LABEL_CHARACTERS
"""Of a cleaned label when secrets are looked for, so that the cut does not run through one."""

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

Redactor = Callable[[Sequence[str]], list[str]]
"""Replaces key-shaped strings in texts; one call for many texts."""


class HeadMaker:
    """Makes session heads for one source. Safe to use from any thread."""

    def __init__(self, log_format: LogFormat, redact: Redactor | None) -> None:
        self._source = log_format.name
        self._prefix = f"{log_format.name}:" if log_format.prefixed_ids else ""
        self._redact = redact
        self._routes: dict[ModelRoute, ModelRoute] = {}
        self._shown_directories: dict[str, str | None] = {}

    def native_id(self, session_id: SessionId) -> str | None:
        """The source's own id for a wire id; ``None`` when the wire id is another source's."""
        return session_id.removeprefix(self._prefix) if session_id.startswith(self._prefix) else None

    def session_id(self, native_id: str) -> SessionId | None:
        """The wire id; ``None`` when it cannot travel: empty, too long, or with a control character or a lone surrogate."""
        if not native_id or (not native_id.isprintable() and _CONTROLS.search(native_id)):
            return None
        session_id = self._prefix + native_id
        try:
            size_bytes = len(session_id.encode())
        except UnicodeEncodeError:
            return None
        return SessionId(session_id) if size_bytes <= MAX_SESSION_ID_BYTES else None

    def heads(self, natives: Sequence[tuple[LogFile, NativeHead]], titles: Mapping[str, str]) -> list[SessionHead | None]:
        """One head each; ``None`` where the id cannot travel. ``titles`` by native id go before the log's own."""
        raw_titles = [titles.get(native.native_id, native.title) for _, native in natives]
        labels = self.labels([*raw_titles, *(native.subagent_label for _, native in natives)])
        heads = [
            self._head(file, native, title, label)
            for (file, native), title, label in zip(natives, labels, labels[len(natives) :], strict=False)
        ]
        shown = self._shown({head.cwd for head in heads if head is not None and head.cwd})
        return [replace(head, shown_cwd=shown[head.cwd]) if head and head.cwd and shown[head.cwd] else head for head in heads]

    def labels(self, texts: Sequence[str | None]) -> list[str | None]:
        """Redact, then clean. A text of which nothing visible is left counts as absent; an empty one stays empty."""
        shown = iter(self._clean([text for text in texts if text]))
        return [(next(shown) or None) if text else text for text in texts]

    def _clean(self, texts: Sequence[str]) -> list[str]:
        if self._redact is None:
            return [clean_label(text) for text in texts]
        redacted = self._redact(texts)
        # A secret may lie hidden between invisible characters: what appears once they are gone is looked at again.
        uncovered = {text: clean_label(text, _LOOKED_AT_CHARACTERS) for text in redacted if not text.isprintable()}
        again = dict(zip(uncovered, self._redact(list(uncovered.values())), strict=True)) if uncovered else uncovered
        return [clean_label(again.get(text, text)) for text in redacted]

    def _head(self, file: LogFile, native: NativeHead, title: str | None, label: str | None) -> SessionHead | None:
        session_id = self.session_id(native.native_id)
        if session_id is None:
            return None
        parent = native.parent_native_id or file.parent_native_id
        cwd = valid_text(native.cwd)
        return SessionHead(
            session_id=session_id,
            source=self._source,
            title=title,
            subagent_label=label,
            cwd=None if cwd is None else sys.intern(cwd),  # hundreds of sessions share a few folders
            created_at_ms=native.created_at_ms if native.created_at_ms is not None else native.updated_at_ms or 0,
            updated_at_ms=native.updated_at_ms,
            parent_id=self.session_id(parent) if parent else None,
            is_subagent=native.is_subagent or file.is_subagent,
            archived=file.archived,
            route=self._shared_route(native.route),
            status=native.status,
            status_detail=native.status_detail,
        )

    def _shown(self, directories: set[str]) -> dict[str, str | None]:
        """How directories are shown that are not to be shown as recorded; ``None`` for the others."""
        known = self._shown_directories
        fresh = [path for path in directories if path not in known]
        for path, text in zip(fresh, self._redact(fresh) if self._redact is not None else fresh, strict=True):
            clean = text if text.isprintable() else _CONTROLS.sub("\ufffd", text)
            known[path] = None if clean == path else clean
        shown = {path: known[path] for path in directories}
        if len(known) > MAX_KNOWN_DIRECTORIES:
            self._shown_directories = {}
        return shown

    def _shared_route(self, route: ModelRoute | None) -> ModelRoute | None:
        """One object for all sessions with the same route, of which there are a few dozen."""
        if route is None or len(self._routes) >= MAX_SHARED_ROUTES:
            return route
        return self._routes.setdefault(route, route)


def valid_text(text: str | None) -> str | None:
    """The text, or ``None`` when it holds a lone surrogate and so cannot travel."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text
