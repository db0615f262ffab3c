"""The configuration as the arguments of a command and the environment give it."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from sessionref_server.commands.failure import UsageError
from sessionref_server.config import CONFIG_FILE_VARIABLE, SOURCE_NAMES, Assignment, Config, load_config
from sessionref_server.wire.listen import parse_listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What is in force, and why."""

    config: Config
    assignments: list[Assignment]
    file: Path | None
    """The file that was read."""


def read_configuration(arguments: argparse.Namespace) -> Loaded:
    """Read and check everything.

    Raises:
        InvalidConfigError: naming the key.
        UsageError: ``--sources-root`` cannot be used.
    """
    file = _file(arguments.config)
    config, assignments = load_config(file=file, environment=os.environ, flags=_flags(arguments))
    for address in config.listen_addresses:
        parse_listener(address)
    return Loaded(config=config, assignments=assignments, file=file)


def _file(named: str | None) -> Path | None:
    named = named or os.environ.get(CONFIG_FILE_VARIABLE)
    if named:
        return Path(named).expanduser()
    usual = platformdirs.user_config_path("sessionref") / "config.toml"
    return usual if usual.is_file() else None


def _flags(arguments: argparse.Namespace) -> dict[str, str]:
    flags: dict[str, str] = dict(arguments.assignments)
    if getattr(arguments, "listen", None):
        flags["listen.addresses"] = ",".join(arguments.listen)
    roots: dict[str, list[str]] = {}
    for name, path in arguments.sources_root:
        roots.setdefault(name, []).append(_root(name, path))
    return flags | {f"sources.{name}.roots": ",".join(paths) for name, paths in roots.items()}


def _root(name: str, path: str) -> str:
    if name not in SOURCE_NAMES:
        raise UsageError(f"--sources-root: there is no source {name!r}; the sources are {', '.join(SOURCE_NAMES)}")
    if "," in path:
        raise UsageError("--sources-root: a folder with a comma in its name has to be set in the configuration file")
    return str(Path(path).expanduser().absolute())
