"""Every configuration key in one table: its meaning, its default and what a value must be.

The file, the environment and the flags all go through this table, so a key exists in all three or in none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sessionref_server.domain.limits import (
    DEFAULT_REFERENCE_CONTEXT_FRACTION,
    DEFAULT_SESSION_CANDIDATES,
    DEFAULT_SNAPSHOT_LIFETIME_DAYS,
    MAX_REFERENCES,
    MAX_SAFE_INTEGER,
    MIN_REFERENCES,
)

Value = str | int | float | bool | tuple[str, ...] | None


class Word(str):
    """Text from a flag or the environment, which may stand for a number or a switch. Text from the file may not."""

    __slots__ = ()


class BadValueError(ValueError):
    """A value does not fit its key; the text says what would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key. ``parse`` takes what TOML gave, or text from the environment or a flag."""

    key: str
    parse: Callable[[object], Value]
    default: Value
    meaning: str

    @property
    def variable(self) -> str:
        """Environment variable of the key, e.g. ``SESSIONREF_PREPARE_MAX_REFERENCES``."""
        return "SESSIONREF_" + self.key.replace(".", "_").replace("-", "_").upper()


def integer(minimum: int, maximum: int = MAX_SAFE_INTEGER) -> Callable[[object], int]:
    """A whole number within bounds."""

    def parse(raw: object) -> int:
        number = _number_from_text(raw, int)
        if isinstance(number, bool) or not isinstance(number, int) or not minimum <= number <= maximum:
            raise BadValueError(f"must be a whole number from {minimum} to {maximum}")
        return number

    return parse


def number(minimum: float, maximum: float) -> Callable[[object], float]:
    """A number within bounds."""

    def parse(raw: object) -> float:
        value = _number_from_text(raw, float)
        if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
            raise BadValueError(f"must be a number from {minimum:g} to {maximum:g}")
        return float(value)

    return parse


def text(raw: object) -> str:
    """Any text."""
    if not isinstance(raw, str):
        raise BadValueError("must be text")
    return raw


def choice(*options: str) -> Callable[[object], str]:
    """One of a few words."""

    def parse(raw: object) -> str:
        if raw not in options:
            raise BadValueError("must be one of " + ", ".join(options))
        return str(raw)

    return parse


def switch(raw: object) -> bool:
    """True or false; as text also 1/0, yes/no, on/off."""
    if isinstance(raw, bool):
        return raw
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if isinstance(raw, Word) and raw.lower() in words:
        return words[raw.lower()]
    raise BadValueError("must be true or false")


def texts(raw: object) -> tuple[str, ...]:
    """A list of texts; in a flag or variable separated by commas."""
    if isinstance(raw, Word):
        return tuple(part.strip() for part in raw.split(",") if part.strip())
    if isinstance(raw, list) and all(isinstance(part, str) for part in raw):  # pyright: ignore[reportUnknownVariableType]
        return tuple(str(part) for part in raw)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise BadValueError("must be a list of texts")


def optional(parse: Callable[[object], Value]) -> Callable[[object], Value]:
    """The same, or unset (empty text)."""
    return lambda raw: None if raw is None or raw == "" else parse(raw)


def _number_from_text(raw: object, kind: Callable[[str], int | float]) -> object:
    if not isinstance(raw, Word):
        return raw
    try:
        return kind(raw)
    except ValueError:
        return raw


SETTINGS: tuple[Setting, ...] = (
    Setting(
        key="listen.addresses",
        parse=texts,
        default=(),
        meaning="Where to listen: unix:/path or host:port. Empty: a private Unix socket in your runtime folder. "
        "TCP only on a loopback address in this release.",
    ),
    Setting(
        key="listen.reflection",
        parse=switch,
        default=True,
        meaning="Answer server reflection (v1 and v1alpha) and channelz, so that tools can find the methods.",
    ),
    Setting(
        key="search.candidate_limit",
        parse=integer(1),
        default=DEFAULT_SESSION_CANDIDATES,
        meaning="Session candidates when a request names no limit.",
    ),
    Setting(
        key="prepare.max_references",
        parse=integer(MIN_REFERENCES, MAX_REFERENCES),
        default=MAX_REFERENCES,
        meaning="Most distinct references in one Prepare.",
    ),
    Setting(
        key="prepare.max_reference_bytes",
        parse=optional(integer(1)),
        default=None,
        meaning="Byte budget of each source, exactly. Unset: it follows the model's context window, never under 65,536.",
    ),
    Setting(
        key="prepare.reference_context_fraction",
        parse=number(0, 1),
        default=DEFAULT_REFERENCE_CONTEXT_FRACTION,
        meaning="Share of the model's context window one source may fill, at 4 bytes per token.",
    ),
    Setting(
        key="prepare.max_concurrent",
        parse=integer(1, 1024),
        default=8,
        meaning="Prepares that run at once; more wait in the queue.",
    ),
    Setting(
        key="prepare.max_queued",
        parse=integer(0, 100_000),
        default=64,
        meaning="Prepares that may wait; more are refused with OVERLOADED.",
    ),
    Setting(
        key="spill.enabled",
        parse=switch,
        default=True,
        meaning="Save the full text of sources that were cut, so that the model can read on.",
    ),
    Setting(
        key="spill.folder",
        parse=optional(text),
        default=None,
        meaning="Where saved transcripts go. Unset: a folder for this program in your data folder.",
    ),
    Setting(
        key="spill.expiry_days",
        parse=number(0.001, 3650),
        default=float(DEFAULT_SNAPSHOT_LIFETIME_DAYS),
        meaning="Days a saved transcript is kept.",
    ),
    Setting(
        key="spill.quota_mib",
        parse=integer(1),
        default=1024,
        meaning="Most MiB of saved transcripts in all; beyond it nothing is saved and the notice says so.",
    ),
    Setting(
        key="cache.folder",
        parse=optional(text),
        default=None,
        meaning="Where the catalogue of session heads is kept between runs. Unset: your cache folder.",
    ),
    Setting(
        key="cache.captures_mib",
        parse=integer(0, 65_536),
        default=64,
        meaning="Memory for unchanged sessions that were read before.",
    ),
    Setting(
        key="workers.processes",
        parse=optional(integer(1, 64)),
        default=None,
        meaning="Worker processes that parse logs. Unset: one per core, at most 4.",
    ),
    Setting(
        key="calls.max_seconds",
        parse=number(0.1, 3600),
        default=60.0,
        meaning="Longest time a call may take; also the time of a call without a deadline.",
    ),
    Setting(
        key="calls.drain_seconds",
        parse=number(0, 600),
        default=5.0,
        meaning="On SIGTERM, how long running calls may finish. New ones are refused at once.",
    ),
    Setting(
        key="log.level",
        parse=choice("debug", "info", "warning", "error"),
        default="info",
        meaning="How much to say on standard error.",
    ),
    Setting(
        key="log.format",
        parse=choice("text", "json"),
        default="text",
        meaning="One line of text, or of JSON, per event. Never transcript text.",
    ),
)

SOURCE_SETTINGS: tuple[Setting, ...] = (
    Setting(key="enabled", parse=switch, default=True, meaning="Read this source."),
    Setting(
        key="roots",
        parse=texts,
        default=(),
        meaning="Folders to read instead of the usual places.",
    ),
    Setting(
        key="redact",
        parse=switch,
        default=True,
        meaning="Replace key-shaped strings in titles, previews and saved transcripts.",
    ),
)
"""Keys under ``sources.<name>``, the same for each source."""
