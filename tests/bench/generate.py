"""A person's folder of session logs, of three agents, as large as asked for. The same arguments give the same folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from uuid import UUID

from sessionref_server.domain.session import SessionHead, SessionId

from tests.bench.agent_logs import MAKERS, Made, log_lines
from tests.bench.texts import Texts, title

ROOTS = {"dsh": "dsh/sessions", "claude-code": "claude/projects", "codex": "codex"}
PREFIXES = {"dsh": "", "claude-code": "claude-code:", "codex": "codex:"}
SOURCES = tuple(ROOTS)
LAST_START_MS = 1_790_000_000_000
_BETWEEN_STARTS_MS = 40 * 60_000
_PROJECTS = 60
_SIZE_SPREAD = 1.6
_LARGEST_BYTES = 40 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session whose log was written."""

    source: str
    session_id: str
    title: str
    cwd: str
    path: Path


class Folder:
    """Logs below one folder."""

    def __init__(self, root: Path, seed: int = 1) -> None:
        self.root = root
        self.sessions: list[Session] = []
        self._texts = Texts(seed)
        self._random = Random(seed)

    def roots(self) -> dict[str, Path]:
        """Root of each source."""
        return {source: self.root / below for source, below in ROOTS.items()}

    def fill(self, sizes_bytes: Sequence[int]) -> None:
        """Write one log per size, newest first."""
        for size_bytes in sizes_bytes:
            self.add(SOURCES[len(self.sessions) % len(SOURCES)], size_bytes)

    def add(self, source: str, size_bytes: int, started_ms: int | None = None) -> Session:
        """Write one log."""
        number = len(self.sessions)
        made = Made(
            native_id=str(UUID(int=self._random.getrandbits(128), version=4)),
            title=title(self._random, number),
            cwd=f"/home/dev/src/project-{self._random.randrange(_PROJECTS)}",
            started_ms=started_ms if started_ms is not None else LAST_START_MS - number * _BETWEEN_STARTS_MS,
        )
        maker = MAKERS[source](made)
        path = maker.place(self.root / ROOTS[source])
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb", buffering=1024 * 1024) as log:
            log.writelines(log_lines(maker, self._texts, size_bytes))
        os.utime(path, ns=(made.started_ms * 1_000_000, made.started_ms * 1_000_000))
        session_id = PREFIXES[source] + made.native_id
        session = Session(source=source, session_id=session_id, title=made.title, cwd=made.cwd, path=path)
        self.sessions.append(session)
        return session


def grow(session: Session, size_bytes: int) -> None:
    """Append plain answers of about this size to a log, as records that need nothing that stands before them."""
    lines: list[bytes] = []
    texts = Texts(2)
    maker = MAKERS[session.source](
        Made(
            native_id=session.session_id.removeprefix(PREFIXES[session.source]),
            title=session.title,
            cwd=session.cwd,
            started_ms=LAST_START_MS,
        )
    )
    continued(maker, session.path)
    while sum(map(len, lines)) < size_bytes:
        lines += maker.turn(texts)
    with session.path.open("ab") as log:
        log.writelines(lines)


def continued(maker: object, path: Path) -> None:
    """Let a maker go on where the log ends."""
    lines = path.read_bytes().count(b"\n")
    fields: dict[str, object] = vars(maker)
    for counter, value in (("_seq", lines - 1), ("_records", lines - 1), ("_turn", lines)):
        if counter in fields:
            fields[counter] = value


def log_sizes(count: int, total_bytes: int, seed: int = 1) -> list[int]:
    """Sizes as people's logs have them: many small, few big, together about ``total_bytes``."""
    random = Random(seed)
    drawn = [random.lognormvariate(0, _SIZE_SPREAD) for _ in range(count)]
    scale = total_bytes / sum(drawn)
    return [min(_LARGEST_BYTES, round(size * scale)) for size in drawn]


def session_heads(count: int, seed: int = 1) -> list[SessionHead]:
    """Heads as the catalogue has them, without logs."""
    random = Random(seed)
    cwds = [f"/home/dev/src/project-{number}" for number in range(max(_PROJECTS, count // 500))]
    heads: list[SessionHead] = []
    for number in range(count):
        source = SOURCES[number % len(SOURCES)]
        started_ms = LAST_START_MS - number * 60_000
        heads.append(
            SessionHead(
                session_id=SessionId(PREFIXES[source] + str(UUID(int=random.getrandbits(128), version=4))),
                source=source,
                title=title(random, number),
                cwd=random.choice(cwds),
                created_at_ms=started_ms,
                updated_at_ms=started_ms + 50_000,
            )
        )
    return heads


def typed_queries(named: Sequence[tuple[str, str]], count: int, seed: int = 3) -> list[list[str]]:
    """What people type, keystroke by keystroke: 0 to 12 characters of a title or an id; one in ten finds nothing.

    Args:
        named: titles and ids of sessions that exist.
        count: keystrokes in all, about.
        seed: of the choice.

    Returns:
        One list per thing that is looked for, from nothing typed to all of it.
    """
    random = Random(seed)
    queries: list[list[str]] = []
    while sum(map(len, queries)) < count:
        name, session_id = random.choice(named)
        kind = random.random()
        wanted = session_id if kind < 0.2 else name
        begin = random.choice([at for at in range(len(wanted)) if at == 0 or not wanted[at - 1].isalnum()])
        text = wanted[begin : begin + 12] if kind < 0.9 else f"zq{random.randrange(10**10)}"
        queries.append([text[:size] for size in range(len(text) + 1)])
    return queries
