"""Names on disk: ``<root>/<project>/<session>/session[.vN].jsonl[.zstd]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_CANONICAL = re.compile(r"session(?:\.v([1-9][0-9]{0,8}))?\.jsonl(\.zstd)?")
_LITERAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_SEPARATORS = frozenset("/\\:")
_ESCAPED_UNIT = re.compile(r"~([0-9A-F]{4})")
_MAX_SLUG_CHARACTERS = 251
_FLAT_SUFFIXES = (".jsonl", ".jsonl.zstd")


class EmptySegmentError(ValueError):
    """A session id without a character has no directory name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogName:
    """What a canonical file name says."""

    version: int
    compressed: bool


def parse_log_name(file_name: str) -> LogName | None:
    """Read a canonical name; ``None`` for every other: ``.v0``, leading zeros, ``.zst``, staging files, locks."""
    match = _CANONICAL.fullmatch(file_name)
    return LogName(version=int(match[1] or 0), compressed=match[2] is not None) if match else None


def is_flat_log_name(file_name: str) -> bool:
    """Whether a file directly in the root may be a log that something else than the agent put there."""
    return file_name.endswith(_FLAT_SUFFIXES) and not file_name.startswith(".")


def encode_segment(raw: str) -> str:
    """Directory name of a session id: unsafe UTF-16 units as ``~XXXX``, and no name that means a directory itself."""
    if not raw:
        raise EmptySegmentError
    if raw in {".", ".."}:
        return "~002E" * len(raw)
    return "".join(character if character in _LITERAL else _escape(character) for character in raw)


def decode_segment(segment: str) -> str:
    """The id a directory name stands for; escapes that are no valid UTF-16 become U+FFFD."""
    text = _ESCAPED_UNIT.sub(lambda match: chr(int(match[1], 16)), segment)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def project_key(cwd: str) -> str:
    """Readable directory name of a working directory. Lossy: several directories may share one."""
    slug: list[str] = []
    for character in cwd:
        if character not in _SEPARATORS:
            slug.append(character if character in _LITERAL else _escape(character))
        elif not slug or slug[-1] != "/":
            # A slash stands for one run of separators here, since no other unit leaves one.
            slug.append("/")
    text = "".join(slug).replace("/", "-").lstrip("-")
    return f"--{(text or 'root')[:_MAX_SLUG_CHARACTERS]}--"


def native_id_of(path: str) -> str:
    """The id a log's place tells, for a log whose header does not."""
    place = PurePosixPath(path.replace("\\", "/"))
    if parse_log_name(place.name) is not None:
        return decode_segment(place.parent.name) or place.name
    return place.name.removesuffix(".zstd").removesuffix(".jsonl")


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"~{units[index] << 8 | units[index + 1]:04X}" for index in range(0, len(units), 2))
