"""Nothing that a call does blocks the event loop: no file, lock, sleep, socket or process is waited for there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from blockbuster import BlockingError, blockbuster_ctx
from faults.long_logs import BUDGET, write_dsh_log
from rpc.failures import failure_of
from rpc.served import Serve
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import GetServiceInfoRequest, ParseMentionsRequest


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, Path]:
    for number in range(3):
        write_dsh_log(tmp_path / "dsh", f"source-{number}")
    return {"dsh": tmp_path / "dsh"}


@pytest.fixture
def nothing_blocks() -> Iterator[None]:
    with blockbuster_ctx("sessionref_server"):
        yield


async def test_the_detector_notices_a_blocking_call(nothing_blocks: None) -> None:
    del nothing_blocks
    with blockbuster_ctx("faults"), pytest.raises(BlockingError):
        os.stat("/")  # noqa: PTH116 - what is detected


async def test_no_call_blocks_the_event_loop(serve: Serve, roots: dict[str, Path], tmp_path: Path) -> None:
    async with serve(roots, **BUDGET) as served:
        with blockbuster_ctx("sessionref_server"):
            for turn in range(3):
                assert len(await served.listed_ids("", target=reference_pb2.Target(cwd=str(tmp_path)))) == 3
                answer = await served.prepare("source-0", "source-1", "source-2", target=f"target-{turn}")
                for omission in answer.additional_context.omissions:
                    assert len(await served.read_snapshot(omission.saved.locator, f"target-{turn}")) > 200_000
            await served.stub.ParseMentions(ParseMentionsRequest(texts=["@[" * 50_000]), timeout=20)
            await served.stub.GetServiceInfo(GetServiceInfoRequest(), timeout=20)
            assert (await failure_of(served.prepare("unknown"))).code == grpc.StatusCode.NOT_FOUND


async def test_following_new_grown_and_deleted_logs_does_not_block_the_event_loop(
    serve: Serve, roots: dict[str, Path], tmp_path: Path
) -> None:
    async with serve(roots) as served:
        with blockbuster_ctx("sessionref_server"):
            path = await asyncio.to_thread(write_dsh_log, tmp_path / "dsh", "new", messages=3)
            while "new" not in await served.listed_ids():
                await served.application.catalog.wait_change(1)
            await asyncio.to_thread(path.unlink)
            while "new" in await served.listed_ids():
                await served.application.catalog.wait_change(1)
