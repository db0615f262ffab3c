from __future__ import annotations

import os
from collections.abc import AsyncGenerator

import pytest
from sessionref_server.adapters.workers.offload import PoolOffload
from sessionref_server.adapters.workers.pool import WorkerPool
from sessionref_server.domain.errors import OverloadedError


@pytest.fixture
async def offload() -> AsyncGenerator[PoolOffload]:
    pool = WorkerPool(1, 8)
    pool.start()
    yield PoolOffload(pool)
    await pool.close(1)


async def test_pieces_are_joined_and_results_come_back(offload: PoolOffload) -> None:
    assert await offload.build_bytes(iter, [b"a", b"b"]) == b"ab"
    assert await offload.run(divmod, 7, 2) == (3, 1)


async def test_what_the_function_raises_is_raised(offload: PoolOffload) -> None:
    with pytest.raises(ZeroDivisionError):
        await offload.run(divmod, 7, 0)


async def test_the_death_of_a_worker_is_a_failure_of_the_domain_and_the_next_one_answers(offload: PoolOffload) -> None:
    with pytest.raises(OverloadedError):
        await offload.run(os._exit, 9)
    assert await offload.run(divmod, 7, 2) == (3, 1)
