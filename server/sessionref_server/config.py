"""Configuration: one TOML file, ``SESSIONREF_*`` variables over it, flags over both, read once into frozen values."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sessionref_server.domain.errors import InvalidConfigError
from sessionref_server.settings import SETTINGS, SOURCE_SETTINGS, BadValueError, Setting, Value, Word, integer

SOURCE_NAMES = ("dsh", "claude-code", "codex")
CONFIG_FILE_VARIABLE = "SESSIONREF_CONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """One source of sessions."""

    name: str
    enabled: bool
    roots: tuple[str, ...]
    redact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings, checked. ``settings.py`` gives the meaning of each; the names match its keys."""

    listen_addresses: tuple[str, ...]
    listen_reflection: bool
    search_candidate_limit: int
    prepare_max_references: int
    prepare_max_reference_bytes: int | None
    prepare_reference_context_fraction: float
    prepare_max_concurrent: int
    prepare_max_queued: int
    spill_enabled: bool
    spill_folder: str | None
    spill_expiry_days: float
    spill_quota_mib: int
    cache_folder: str | None
    cache_captures_mib: int
    workers_processes: int | None
    calls_max_seconds: float
    calls_drain_seconds: float
    log_level: str
    log_format: str
    sources: tuple[SourceConfig, ...]
    models: Mapping[str, int]
    """Context windows in tokens by ``provider/model`` or ``model``, over the catalogue's own (table ``[models]``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Where one value in force came from, for ``check-config``."""

    key: str
    value: object
    origin: str


def all_settings() -> Iterator[Setting]:
    """Every key but the free-form table ``[models]``, source keys spelled out."""
    yield from SETTINGS
    for name in SOURCE_NAMES:
        for setting in SOURCE_SETTINGS:
            yield Setting(
                key=f"sources.{name}.{setting.key}",
                parse=setting.parse,
                default=setting.default,
                meaning=setting.meaning,
            )


def load_config(
    *, file: Path | None = None, environment: Mapping[str, str] | None = None, flags: Mapping[str, str] | None = None
) -> tuple[Config, list[Assignment]]:
    """Read, check and merge.

    Args:
        file: the TOML file, or ``None`` for none. A missing one is an error: somebody named it.
        environment: variables; only ``SESSIONREF_*`` ones count.
        flags: values by key, as text.

    Raises:
        InvalidConfigError: naming the key and where it was set.
    """
    known = {setting.key: setting for setting in all_settings()}
    layers = _layers(known, file, environment or {}, flags or {})
    values: dict[str, Value] = {key: setting.default for key, setting in known.items()}
    origins = dict.fromkeys(values, "default")
    models: dict[str, int] = {}
    for origin, key, raw in layers:
        if key.startswith("models."):
            models[key.removeprefix("models.")] = _models_entry(key, raw, origin)
            continue
        values[key] = _parse(known[key], raw, origin)
        origins[key] = origin
    config = _config(values, models)
    assignments = [Assignment(key=key, value=values[key], origin=origins[key]) for key in values]
    assignments += [Assignment(key=f"models.{name}", value=tokens, origin="file") for name, tokens in models.items()]
    return config, assignments


def _layers(
    known: Mapping[str, Setting], file: Path | None, environment: Mapping[str, str], flags: Mapping[str, str]
) -> Iterator[tuple[str, str, object]]:
    if file is not None:
        yield from ((f"file {file.name}", key, raw) for key, raw in _file_values(known, file))
    yield from _environment_values(known, environment)
    for key, raw in flags.items():
        if key not in known and not key.startswith("models."):
            raise InvalidConfigError(
                f"unknown configuration key {key!r} in a flag; `sessionref check-config` lists all keys", key=key
            )
        yield "flag", key, Word(raw)


def _file_values(known: Mapping[str, Setting], file: Path) -> Iterator[tuple[str, object]]:
    try:
        with file.open("rb") as stream:
            document = tomllib.load(stream)
    except OSError as error:
        raise InvalidConfigError(
            f"configuration file {file} cannot be read: {error.strerror}", key=CONFIG_FILE_VARIABLE
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfigError(f"configuration file {file} is not valid TOML: {error}", key=CONFIG_FILE_VARIABLE) from error
    for key, raw in _flatten("", document):
        if key not in known and not key.startswith("models."):
            raise InvalidConfigError(
                f"unknown configuration key {key!r} in {file}; `sessionref check-config` lists all keys", key=key
            )
        yield key, raw


def _flatten(prefix: str, table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        key = prefix + name
        if isinstance(value, dict) and key != "models":
            yield from _flatten(key + ".", value)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, dict):
            yield from ((f"models.{model}", tokens) for model, tokens in value.items())  # pyright: ignore[reportUnknownVariableType]
        else:
            yield key, value


def _environment_values(known: Mapping[str, Setting], environment: Mapping[str, str]) -> Iterator[tuple[str, str, object]]:
    by_variable = {setting.variable: key for key, setting in known.items()}
    sections = tuple({"_".join(variable.split("_")[:2]) + "_" for variable in by_variable})
    for variable, raw in environment.items():
        if not variable.startswith(sections):
            continue
        if variable not in by_variable:
            raise InvalidConfigError(f"unknown configuration variable {variable}", key=variable)
        yield f"variable {variable}", by_variable[variable], Word(raw)


def _parse(setting: Setting, raw: object, origin: str) -> Value:
    try:
        return setting.parse(raw)
    except BadValueError as error:
        raise InvalidConfigError(f"{setting.key} ({origin}) {error}", key=setting.key) from error


def _models_entry(key: str, raw: object, origin: str) -> int:
    try:
        return integer(1)(raw)
    except BadValueError as error:
        raise InvalidConfigError(f"{key} ({origin}) {error}", key=key) from error


def _config(values: Mapping[str, Value], models: Mapping[str, int]) -> Config:
    plain = {setting.key.replace(".", "_"): values[setting.key] for setting in SETTINGS}
    sources = tuple(
        SourceConfig(name=name, **{setting.key: values[f"sources.{name}.{setting.key}"] for setting in SOURCE_SETTINGS})  # pyright: ignore[reportArgumentType]
        for name in SOURCE_NAMES
    )
    return Config(**plain, sources=sources, models=models)  # pyright: ignore[reportArgumentType]
