"""Logs of zstd frames: all frames are read, torn ones as far as they go, damaged ones are refused, bombs go off nowhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
import zstandard
from rpc.agent_logs import AGENTS, Said, codex_lines, dsh_lines
from rpc.context_text import read_context
from rpc.failures import failure_of
from rpc.served import Serve, Served, make_config, serving
from rpc.vector_rig import in_module_loop

SAID: list[Said] = [("user", "a"), ("assistant", "b"), ("user", "c")]
MIB = 1024 * 1024


def frame(content: bytes, **options: bool) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True, **options).compress(content)


def frames(lines: list[bytes]) -> list[bytes]:
    """The header in a frame of its own, then one frame for each batch."""
    return [frame(part + b"\n") for part in lines]


def flipped(content: bytes, position: int) -> bytes:
    changed = bytearray(content)
    changed[position] ^= 0x10
    return bytes(changed)


def bomb(size_bytes: int, filling: bytes = b" ") -> bytes:
    compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    chunk = filling * MIB
    return b"".join([*(compressor.compress(chunk) for _ in range(size_bytes // MIB)), compressor.flush()])


READABLE: dict[str, tuple[Callable[[list[bytes]], bytes], bool]] = {
    "a frame for each batch": (lambda lines: b"".join(frames(lines)), False),
    "header and one batch": (lambda lines: frame(lines[0] + b"\n") + frame(b"\n".join(lines[1:]) + b"\n"), False),
    "frames without their size": (
        lambda lines: b"".join(frame(part + b"\n", write_content_size=False) for part in lines),
        False,
    ),
    "torn last frame": (lambda lines: b"".join(frames(lines)) + frame(b'{"type":"x"}\n' * 50)[:-9], True),
    "first bytes of a frame": (lambda lines: b"".join(frames(lines)) + b"\x28\xb5", True),
    "thousands of frames": (lambda lines: b"".join(frames(lines)[:1] + [frame(b"\n")] * 5000 + frames(lines)[1:]), False),
}
REFUSED: dict[str, Callable[[list[bytes]], bytes]] = {
    "flipped bit in a frame": lambda lines: frames(lines)[0] + flipped(frames(lines)[1], 25) + b"".join(frames(lines)[2:]),
    "flipped bit in a checksum": lambda lines: frames(lines)[0] + flipped(frames(lines)[1], -1) + b"".join(frames(lines)[2:]),
    "no zstd between frames": lambda lines: frames(lines)[0] + b"plain text\n" + b"".join(frames(lines)[1:]),
    "bomb of blanks": lambda lines: frames(lines)[0] + bomb(64 * MIB),
    "bomb of NUL": lambda lines: frames(lines)[0] + bomb(64 * MIB, b"\0"),
    "bomb of one line": lambda lines: frames(lines)[0] + bomb(64 * MIB, b"x"),
    "bomb before the header": lambda lines: bomb(64 * MIB) + b"".join(frames(lines)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    number: int
    place: str
    write: Callable[[list[bytes]], bytes]
    torn: bool = False

    @property
    def session_id(self) -> str:
        return ("codex:" if self.place == "codex" else "") + AGENTS["dsh"].native_id(self.number)


PLACES = ("flat", "canonical", "codex")


# Codex compresses a log that it no longer writes, whole: there a torn frame is damage.
def cases() -> tuple[list[Case], list[Case]]:
    readable = [
        Case(name=f"{place}: {name}", number=number, place=place, write=write, torn=torn)
        for place, first in zip(PLACES, (0, 100, 200), strict=True)
        for number, (name, (write, torn)) in enumerate(READABLE.items(), start=first)
        if not (torn and place == "codex")
    ]
    refused = [
        Case(name=f"{place}: {name}", number=number, place=place, write=write)
        for place, first in zip(PLACES, (300, 400, 500), strict=True)
        for number, (name, write) in enumerate(REFUSED.items(), start=first)
    ]
    refused += [
        Case(name=f"codex: {name}", number=number, place="codex", write=write)
        for number, (name, (write, torn)) in enumerate(READABLE.items(), start=600)
        if torn
    ]
    return readable, refused


READABLE_CASES, REFUSED_CASES = cases()


def write(folder: Path, case: Case) -> None:
    native_id = AGENTS["dsh"].native_id(case.number)
    lines = codex_lines(native_id, SAID) if case.place == "codex" else numbered(dsh_lines(native_id, SAID), case.place)
    names = {
        "flat": f"dsh/{native_id}.jsonl.zstd",
        "canonical": f"dsh/--work-app--/{native_id}/session.jsonl.zstd",
        "codex": f"codex/sessions/2026/09/01/rollout-2026-09-01T10-00-00-{native_id}.jsonl.zst",
    }
    path = folder / names[case.place]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case.write(lines))


def numbered(lines: list[bytes], place: str) -> list[bytes]:
    """A canonical log numbers its rows from zero."""
    if place == "flat":
        return lines
    return [part.replace(b'"seq":%d' % seq, b'"seq":%d' % (seq - 1)) for seq, part in enumerate(lines)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served]:
    folder = tmp_path_factory.mktemp("compressed")
    for case in (*READABLE_CASES, *REFUSED_CASES):
        write(folder, case)
    async with serving(make_config(folder, {"dsh": folder / "dsh", "codex": folder / "codex"})) as served:
        yield served


@in_module_loop
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in READABLE_CASES])
async def test_all_frames_are_read(served: Served, case: Case) -> None:
    context = (await served.prepare(case.session_id)).additional_context
    (preview,) = read_context(context).previews
    assert [(message["role"], message["text"]) for message in preview["conversation"]] == SAID
    assert context.source.references[0].reading.torn_tail == case.torn


@in_module_loop
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in REFUSED_CASES])
async def test_damaged_frame_or_bomb_is_refused(served: Served, case: Case) -> None:
    failure = await failure_of(served.prepare(case.session_id))
    assert failure.reason == "SESSION_REFERENCE_READ_FAILED"
    assert failure.code in {grpc.StatusCode.DATA_LOSS, grpc.StatusCode.NOT_FOUND}


@in_module_loop
async def test_readable_logs_are_listed_beside_the_damaged_ones(served: Served) -> None:
    assert {case.session_id for case in READABLE_CASES} <= set(await served.listed_ids(limit=1000))


async def test_highest_generation_is_read_once(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "--work-app--" / "v-3"
    folder.mkdir(parents=True)
    for name, text in [("session.jsonl", "old"), ("session.v1.jsonl", "older"), ("session.v3.jsonl.zstd", "new")]:
        version = 3 if "v3" in name else int("v1" in name)
        header, row = numbered(dsh_lines("v-3", [("user", text)]), "canonical")
        header = header.replace(b'"version":0', b'"version":%d' % version)
        if version == 3:
            header = header.replace(b'"cwd"', b'"isSeeded":false,"cwd"')
        content = (header + b"\n", row + b"\n")
        (folder / name).write_bytes(b"".join(map(frame, content)) if name.endswith("zstd") else b"".join(content))
    for ignored in ("session.v9.jsonl.zst", "session.v04.jsonl", "session.lock", "session.migration.0af3.jsonl.zstd.tmp"):
        (folder / ignored).write_bytes(b"not read")
    async with serve({"dsh": tmp_path / "logs"}) as served:
        assert await served.listed_ids() == ["v-3"]
        (preview,) = read_context((await served.prepare("v-3")).additional_context).previews
        assert preview["conversation"] == [{"role": "user", "text": "new"}]
