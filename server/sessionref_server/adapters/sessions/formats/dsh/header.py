"""The first row of a log."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sessionref_server.adapters.sessions.formats.dsh.vocabulary import HEADER, NEWEST_VERSION, LogFault
from sessionref_server.adapters.sessions.json_line import parse_json_line

_MAX_SAFE_INTEGER = 2**53 - 1
_NEGATIVE_ZERO = re.compile(rb'"(?:createdAt|delegationDepth|seedLength|version)"\s*:\s*-0(?:\.0*)?(?:[eE][+-]?[0-9]+)?\s*[,}]')
_WINDOWS_ABSOLUTE = re.compile(r"(?:[A-Za-z]:[\\/]|\\\\)")
_KEYS_SINCE_2 = frozenset(
    {
        "type",
        "version",
        "id",
        "createdAt",
        "delegationDepth",
        "cwd",
        "parentSession",
        "origin",
        "agentPreset",
        "isSeeded",
    }
)
_RETIRED_KEYS = frozenset({"sandboxMode", "approvalPolicy"})
_OPTIONAL_STRINGS = ("cwd", "parentSession", "agentPreset")
_FIRST_SEEDED_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a header tells, as far as it can be used. ``raw`` is the row itself."""

    raw: dict[str, Any]
    version: int
    native_id: str | None
    cwd: str | None
    created_at_ms: int | None
    parent_native_id: str | None
    is_subagent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderReading:
    """A header row, judged. ``header`` is there whenever anything of it can be used, even when ``fault`` is set."""

    header: Header | None
    fault: LogFault | None = None
    detail: str = ""


def read_header(line: bytes, file_version: int) -> HeaderReading:
    """Judge a header row by the rules of its version. ``file_version`` is the one the file name tells."""
    raw = parse_json_line(line)
    header = usable_header(raw) if raw is not None else None
    if file_version > NEWEST_VERSION or (header is not None and header.version > NEWEST_VERSION):
        version = max(file_version, header.version if header else 0)
        return HeaderReading(header=header, fault=LogFault.UNSUPPORTED, detail=str(version))
    if raw is None or header is None:
        return HeaderReading(header=None, fault=LogFault.CORRUPT, detail="the first row is no header")
    if not _well_formed(raw) or _NEGATIVE_ZERO.search(line):
        return HeaderReading(header=header, fault=LogFault.CORRUPT, detail="the header is malformed")
    if header.version != file_version:
        detail = f"the header says version {header.version}, the file name {file_version}"
        return HeaderReading(header=header, fault=LogFault.CORRUPT, detail=detail)
    return HeaderReading(header=header)


def usable_header(raw: dict[str, Any]) -> Header | None:
    """Everything of a header that has the right type; ``None`` when the row is no header at all."""
    version = whole_number(raw.get("version", 0))
    if raw.get("type") != HEADER or version is None:
        return None
    return Header(
        raw=raw,
        version=version,
        native_id=_text(raw.get("id")) or None,
        cwd=_text(raw.get("cwd")),
        created_at_ms=whole_number(raw.get("createdAt")),
        parent_native_id=_text(raw.get("parentSession")),
        is_subagent=raw.get("origin") == "subagent",
    )


def whole_number(value: object) -> int | None:
    """A non-negative integer that a double holds exactly, however it was spelled."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MAX_SAFE_INTEGER else None


def _well_formed(raw: dict[str, Any]) -> bool:
    if not _text(raw.get("id")) or not _RETIRED_KEYS.isdisjoint(raw) or type(raw.get("version")) is bool:
        return False
    if any(whole_number(raw.get(key)) is None for key in ("version", "createdAt", "delegationDepth")):
        return False
    if any(key in raw and _text(raw[key]) is None for key in _OPTIONAL_STRINGS) or raw.get("origin", "subagent") != "subagent":
        return False
    if raw["version"] < _FIRST_SEEDED_VERSION:
        return "seedLength" not in raw or whole_number(raw["seedLength"]) is not None
    return type(raw.get("isSeeded")) is bool and _KEYS_SINCE_2.issuperset(raw) and _absolute(raw.get("cwd"))


def _absolute(cwd: str | None) -> bool:
    return cwd is None or cwd.startswith("/") or _WINDOWS_ABSOLUTE.match(cwd) is not None


def _text(value: object) -> str | None:
    return value if type(value) is str else None
