"""Rules of the surface, by version."""

from __future__ import annotations

from typing import Any, cast

from sessionref_server.adapters.sessions.formats.dsh.header import whole_number
from sessionref_server.adapters.sessions.formats.dsh.projection import Shown
from sessionref_server.adapters.sessions.formats.dsh.rows import SourceSeqs
from sessionref_server.adapters.sessions.formats.dsh.surface import InvalidSurfaceError, SurfaceNodes
from sessionref_server.adapters.sessions.formats.dsh.tolerant import TolerantReplacer
from sessionref_server.adapters.sessions.formats.dsh.vocabulary import ASSISTANT_MESSAGE

_OLD_KEYS = ("start", "end")
_NEW_KEYS = ("startSeq", "endSeq")
_NEW_KEYS_SINCE = 3
_NO_ASSISTANT_SOURCES_SINCE = 2
_NO_SOURCES = SourceSeqs([], [])


class StrictSurface:
    """Applies surface rows; sequence numbers are the nodes."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._keys = _NEW_KEYS if version >= _NEW_KEYS_SINCE else _OLD_KEYS
        self._op_keys = {"op", *self._keys}
        self._replacer = TolerantReplacer()
        self.nodes = SurfaceNodes()
        self.tolerant = False
        """Set once rows are known to be missing: a replacement then takes what is left of its range."""

    def place(self, row: dict[str, Any], shown: Shown, sources: SourceSeqs | None) -> None:
        """Apply a surface row. Raises InvalidSurfaceError."""
        seq, kind, operation = row["seq"], row["type"], row.get("surfaceOp")
        self._check_sources(kind, sources, seq)
        if operation == "append":
            self.nodes.append(seq, kind, shown)
            return
        bounds = self._bounds(operation)
        removed = self._replacer.removed(self.nodes, bounds, ()) if self.tolerant else self._removed(kind, bounds, sources)
        self.nodes.replace(removed, seq, kind, shown)

    def _removed(self, kind: str, bounds: tuple[int, int], sources: SourceSeqs | None) -> list[int]:
        if bounds[0] not in self.nodes or bounds[1] not in self.nodes:
            raise InvalidSurfaceError("a replacement names what is not on the surface")
        removed, in_order = self.nodes.span(*bounds)
        if not in_order:
            raise InvalidSurfaceError("a replaced range ends before it starts")
        if not (sources or _NO_SOURCES).covers(removed):
            raise InvalidSurfaceError("a replacement does not name what it replaces")
        self.nodes.check_replacement(removed, kind, guards_system=self._version >= _NEW_KEYS_SINCE)
        return removed

    def _check_sources(self, kind: str, sources: SourceSeqs | None, seq: int) -> None:
        if sources is None:
            return
        old_assistant = kind == ASSISTANT_MESSAGE and self._version < _NO_ASSISTANT_SOURCES_SINCE
        if kind == ASSISTANT_MESSAGE and not old_assistant:
            raise InvalidSurfaceError("an assistant message names sources")
        if not sources.unique or sources.highest >= seq or (not sources.count and not old_assistant):
            raise InvalidSurfaceError("a row names sources that cannot be")

    def _bounds(self, operation: object) -> tuple[int, int]:
        if type(operation) is not dict:
            raise InvalidSurfaceError("a row of the surface does not say where it goes")
        fields = cast("dict[str, Any]", operation)
        if fields.get("op") != "replace" or fields.keys() != self._op_keys:
            raise InvalidSurfaceError("a row of the surface does not say where it goes")
        start, end = (whole_number(fields[key]) for key in self._keys)
        if start is None or end is None:
            raise InvalidSurfaceError("a replaced range has no number")
        return start, end
