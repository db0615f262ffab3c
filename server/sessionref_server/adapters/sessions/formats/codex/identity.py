"""Who a session is: what its header, its first ``session_meta`` and its turn contexts say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from sessionref_server.adapters.sessions.formats.codex.records import HEADER, Payload
from sessionref_server.adapters.sessions.formats.codex.texts import is_environment, text_blocks, working_directory
from sessionref_server.adapters.sessions.json_line import epoch_ms
from sessionref_server.domain.session import ModelRoute

if TYPE_CHECKING:
    from sessionref_server.adapters.sessions.log_format import LogFile

_UUID_AT_END = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_ROLLOUT_NAME = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(?=.)")
_SUFFIXES = (".zst", ".zstd", ".jsonl")
_MAX_ID_CHARACTERS = 200
_DEFAULT_PROVIDER = "openai"
_SUBAGENT = "subagent"


def file_stem(path: str) -> str:
    """File name of a log without its suffixes."""
    stem = path.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    for suffix in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    return stem


def file_uuid(path: str) -> str | None:
    """The UUID a rollout's file name ends with."""
    found = _UUID_AT_END.search(file_stem(path))
    return found.group() if found else None


def is_rollout_name(path: str) -> bool:
    """Whether the file is named as Codex names its logs."""
    return _ROLLOUT_NAME.match(file_stem(path)) is not None


@dataclass(slots=True)
class Identity:
    """Facts about the session that are not messages.

    A fork or a subagent replays its parent's lines, so the first ``session_meta`` alone says who this session is; the last turn
    context says which model it uses.
    """

    meta_seen: bool = False
    native_id: str | None = None
    tree_id: str | None = None
    """``session_id`` of the meta: in a subagent the id of the session at the root, so never this session's id by choice."""
    created_at_ms: int | None = None
    forked_from: str | None = None
    spawned_by: str | None = None
    history_base: str | None = None
    """The thread whose log holds the earlier turns of this one."""
    is_subagent: bool = False
    nickname: str | None = None
    """What Codex calls a subagent on screen, e.g. ``Noether (explorer)``. It says nothing of the task, so it is no label; it
    stands in for a title where a subagent was not started with a prompt."""
    own_start_ordinal: int | None = None
    """Ordinal from which the lines are a subagent's own, not its parent's."""
    meta_cwd: str | None = None
    later_cwd: str | None = None
    """The first one that a turn context or an environment block tells."""
    provider: str | None = None
    model: str | None = None

    def take(self, kind: str, payload: Payload, record: Payload) -> None:
        """Learn from one record."""
        if self.created_at_ms is None:
            self.created_at_ms = epoch_ms(payload.get("timestamp")) or epoch_ms(record.get("timestamp"))
        if kind == "session_meta":
            self._take_meta(payload)
        elif kind == "turn_context":
            self._take_turn(payload)
        elif kind == HEADER:
            self.native_id = self.native_id or _id(payload.get("id"))
        elif kind == "event_msg":
            self._take_settings(payload.get("thread_settings"))
        elif kind == "response_item":
            self._take_item(payload)

    def named(self, file: LogFile) -> str:
        """The session's id: its own, else the one in the file's name, else whatever tells it apart."""
        stem = file_stem(file.path)
        return self.native_id or file_uuid(file.path) or self.tree_id or _ROLLOUT_NAME.sub("", stem, count=1) or stem

    @property
    def cwd(self) -> str | None:
        """Working directory as recorded at the start."""
        return self.meta_cwd or self.later_cwd

    @property
    def parent(self) -> str | None:
        """The session this one was forked from, spawned by, or continues."""
        order = (self.spawned_by, self.forked_from) if self.is_subagent else (self.forked_from, self.spawned_by)
        found = order[0] or order[1] or self.history_base
        return found if found != self.native_id else None

    @property
    def route(self) -> ModelRoute | None:
        """The model last used."""
        return ModelRoute(provider=self.provider or _DEFAULT_PROVIDER, model=self.model) if self.model else None

    def _take_meta(self, meta: Payload) -> None:
        if self.meta_seen:
            return
        self.meta_seen = True
        self.native_id = _id(meta.get("id")) or self.native_id
        self.tree_id = _id(meta.get("session_id"))
        self.meta_cwd = _text(meta.get("cwd"))
        self.provider = _text(meta.get("model_provider"))
        self.model = _text(meta.get("model"))
        self.forked_from = _id(meta.get("forked_from_id"))
        self.history_base = _id(_fields(meta.get("history_base")).get("thread_id"))
        start = meta.get("subagent_history_start_ordinal")
        self.own_start_ordinal = start if type(start) is int else None
        self._take_origin(meta, meta.get("source"))

    def _take_origin(self, meta: Payload, source: object) -> None:
        spawn = _fields(_fields(_fields(source).get(_SUBAGENT)).get("thread_spawn"))
        self.is_subagent = meta.get("thread_source") == _SUBAGENT or source == _SUBAGENT or _SUBAGENT in _fields(source)
        self.spawned_by = _id(meta.get("parent_thread_id")) or _id(spawn.get("parent_thread_id"))
        if self.is_subagent:
            name = _text(meta.get("agent_nickname")) or _text(spawn.get("agent_nickname"))
            role = _text(meta.get("agent_role")) or _text(spawn.get("agent_role"))
            self.nickname = f"{name} ({role})" if name and role else name or role

    def _take_turn(self, turn: Payload) -> None:
        self.later_cwd = self.later_cwd or _text(turn.get("cwd"))
        self.model = _text(turn.get("model")) or self.model
        self.provider = _text(turn.get("model_provider")) or self.provider

    def _take_settings(self, settings: object) -> None:
        changed = _fields(settings)
        self.model = _text(changed.get("model")) or self.model
        self.provider = _text(changed.get("model_provider_id")) or self.provider

    def _take_item(self, item: Payload) -> None:
        if item.get("role") != "user" and "model" not in item:
            return
        self.model = _text(item.get("model")) or self.model
        if self.cwd is None:
            texts = text_blocks(item.get("content"))
            self.later_cwd = next((working_directory(text) for text in texts if is_environment(text)), None)


def _fields(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _id(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_ID_CHARACTERS else None
