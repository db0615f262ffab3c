"""Saved transcripts: whole, private to the target, bounded, gone when nobody was told of them."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import grpc
import pytest
from fakes.shelf_session_source import ShelfSessionSource
from fakes.window_catalogue import WindowCatalogue
from rpc.failures import Failure, failure_of
from rpc.served import Serve, Served
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import PrepareRequest, ReadSnapshotRequest
from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.session import SessionId

TEXTS = [f"message {number} " + "日本語 < 🚀 \x00\u2028" * 300 for number in range(8)]
SMALL_BUDGET = {"prepare__max_reference_bytes": "2000"}
MIB = 1024 * 1024


def capture(name: str = "source", texts: list[str] = TEXTS) -> Capture:
    messages = [Message(Role.USER if number % 2 else Role.ASSISTANT, text) for number, text in enumerate(texts)]
    return Capture(session_id=SessionId(name), cwd=None, through_seq=9, conversation=Conversation.of(messages))


def shelf(*captures: Capture) -> ShelfSessionSource:
    source = ShelfSessionSource()
    source.fill([], captures or [capture()])
    return source


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def saved_of(served: Served, *session_ids: str, target: str = "A") -> reference_pb2.SavedSnapshot:
    context = (await served.prepare(*session_ids, target=target)).additional_context
    return context.omissions[0].saved


def prepare_request(session_id: str) -> PrepareRequest:
    references = [reference_pb2.SessionReferenceInput(session_id=session_id)]
    return PrepareRequest(target=reference_pb2.Target(session_id="A"), references=references)


def decoded(transcript: bytes) -> list[str]:
    """The texts of a transcript, its fragments joined."""
    texts: list[str] = []
    for line in transcript.decode().split("\n"):
        if line.startswith("### Message "):
            texts.append("")
        elif texts and line:
            fragment = json.loads(line)
            assert 0 < len(fragment) <= 64
            texts[-1] += fragment
    return texts


async def test_owner_reads_exactly_what_was_stated_and_nobody_else_learns_of_it(serve: Serve) -> None:
    async with serve(sources=[shelf()], models=WindowCatalogue(), **SMALL_BUDGET) as served:
        saved = await saved_of(served, "source", target="A")
        content = await served.read_snapshot(saved.locator, "A")
        assert (len(content), decoded(content)) == (saved.size_bytes, TEXTS)
        unknown = saved.locator[:-8] + "00000000"
        for locator, owner in ((saved.locator, "B"), (saved.locator, ""), (unknown, "A"), (saved.locator + "x", "A")):
            request = ReadSnapshotRequest(locator=locator, owner_session_id=owner)
            assert await failure_of(served.stub.ReadSnapshot(request, timeout=10)) == Failure(
                code=grpc.StatusCode.NOT_FOUND, reason="SESSION_REFERENCE_READ_FAILED", metadata={"session_id": owner}
            )


@pytest.mark.parametrize("chunk_bytes", [1000, 65_536, MIB])
async def test_pages_join_to_the_whole_from_any_offset(serve: Serve, chunk_bytes: int) -> None:
    async with serve(sources=[shelf()], models=WindowCatalogue(), **SMALL_BUDGET) as served:
        saved = await saved_of(served, "source")
        whole = await served.read_snapshot(saved.locator, "A")
        total = len(whole)
        for offset, limit in ((0, None), (1, None), (total - 1, None), (total, None), (total + 9, None), (5, 7), (total - 3, 99)):
            fields = {"offset_bytes": offset, "chunk_bytes": chunk_bytes, **({} if limit is None else {"limit_bytes": limit})}
            request = ReadSnapshotRequest(locator=saved.locator, owner_session_id="A", **fields)
            chunks = [chunk async for chunk in served.stub.ReadSnapshot(request, timeout=10)]
            data = b"".join(chunk.data for chunk in chunks)
            assert data == whole[offset : None if limit is None else offset + limit]
            assert len(chunks) == max(1, -(-len(data) // chunk_bytes))
            assert {chunk.total_bytes for chunk in chunks} == {total}
            assert chunks[0].offset_bytes == offset


async def test_same_reference_again_saves_nothing_new(serve: Serve, tmp_path: Path) -> None:
    async with serve(sources=[shelf()], models=WindowCatalogue(), **SMALL_BUDGET) as served:
        locators = {(await saved_of(served, "source")).locator for _ in range(5)}
        assert (len(locators), len(files_in(tmp_path / "spill"))) == (1, 1)


async def test_files_are_private(serve: Serve, tmp_path: Path) -> None:
    async with serve(sources=[shelf()], models=WindowCatalogue(), **SMALL_BUDGET) as served:
        await saved_of(served, "source")
        paths = [tmp_path / "spill", *(tmp_path / "spill").rglob("*")]
        modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths}
        assert modes == {(True, 0o700), (False, 0o600)}


async def test_flipped_byte_in_a_saved_file_is_data_loss(serve: Serve, tmp_path: Path) -> None:
    async with serve(sources=[shelf()], models=WindowCatalogue(), **SMALL_BUDGET) as served:
        saved = await saved_of(served, "source")
        (file,) = files_in(tmp_path / "spill")
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        request = ReadSnapshotRequest(locator=saved.locator, owner_session_id="A")
        failure = await failure_of(served.stub.ReadSnapshot(request, timeout=10))
        assert (failure.code, failure.reason) == (grpc.StatusCode.DATA_LOSS, "SESSION_REFERENCE_READ_FAILED")


async def test_store_stays_within_its_quota_and_says_so_while_calls_succeed(serve: Serve, tmp_path: Path) -> None:
    captures = [capture(f"source-{number}", [f"{number} " + "x" * 400_000]) for number in range(10)]
    flags = {**SMALL_BUDGET, "spill__quota_mib": "2"}
    async with serve(sources=[shelf(*captures)], models=WindowCatalogue(), **flags) as served:
        omissions = [
            (await served.prepare(source.session_id, target=f"target-{round_}")).additional_context.omissions[0]
            for round_ in range(4)
            for source in captures
        ]
        assert sum(path.stat().st_size for path in files_in(tmp_path / "spill")) <= 2 * MIB
        outcomes = {omission.WhichOneof("full_snapshot") for omission in omissions}
        assert outcomes <= {"saved", "unavailable"}
        assert omissions[0].HasField("saved")
        failed = reference_pb2.SNAPSHOT_UNAVAILABLE_REASON_SAVE_FAILED
        assert {omission.unavailable for omission in omissions if omission.HasField("unavailable")} <= {failed}


async def test_folder_that_cannot_be_written_costs_the_notice_only(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "spill").write_text("in the way")
    async with serve(sources=[shelf()], models=WindowCatalogue(), **SMALL_BUDGET) as served:
        (omission,) = (await served.prepare("source")).additional_context.omissions
        assert omission.unavailable == reference_pb2.SNAPSHOT_UNAVAILABLE_REASON_SAVE_FAILED


async def test_call_cancelled_anywhere_leaves_no_file_and_no_locator(serve: Serve, tmp_path: Path) -> None:
    source = shelf(*(capture(f"source-{number}") for number in range(40)))
    async with serve(sources=[source], models=WindowCatalogue(), **SMALL_BUDGET) as served:
        kept: list[str] = []
        for number in range(40):
            call = served.stub.Prepare(prepare_request(f"source-{number}"), timeout=20)
            await source.begun.get()
            for _ in range(number):
                await asyncio.sleep(0)
            if not call.cancel():
                kept.append((await call).additional_context.omissions[0].saved.locator)
        await asyncio.gather(*served.application.server.calls._running, return_exceptions=True)
        store = served.application.spill
        assert store is not None
        await store.close()
        locators = sorted(f"{path.name}" for path in files_in(tmp_path / "spill"))
        assert len(locators) == len(kept)
