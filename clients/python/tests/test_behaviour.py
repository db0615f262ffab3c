"""Deadlines, cancellation, retries, request ids, TLS."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc import aio
from sessionref.v1 import session_reference_service_pb2 as service_message
from sessionref.v1.session_reference_service_pb2_grpc import add_SessionReferenceServiceServicer_to_server
from sessionref_client import ClientTls, DeadlineExceededError, Target, TransportError, connect_aio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from conftest import Caller, Refusal, ScriptedService

TARGET = Target(session_id="me")
BATCH = service_message.SearchCandidatesResponse()
CHUNK = service_message.ReadSnapshotResponse()


async def call(caller: Caller, method: str, **options: object) -> None:
    """The method with arguments that do, its stream read to the end."""
    match method:
        case "search":
            await caller.stream(method, **options)
        case "read_snapshot":
            await caller.stream(method, "l", "me", **options)
        case "prepare":
            await caller.answer(method, "", target=TARGET, **options)
        case "parse_mentions":
            await caller.answer(method, [], **options)
        case _:
            await caller.answer(method, **options)


ANSWERS = {
    "search": BATCH,
    "read_snapshot": CHUNK,
    "prepare": service_message.PrepareResponse(),
    "parse_mentions": service_message.ParseMentionsResponse(),
    "service_info": service_message.GetServiceInfoResponse(),
}


@pytest.mark.parametrize(("method", "arguments", "answer"), [("search", (), BATCH), ("read_snapshot", ("l", "me"), CHUNK)])
async def test_leaving_a_stream_early_cancels_it_at_the_server(
    caller: Caller, service: ScriptedService, method: str, arguments: tuple[str, ...], answer: object
) -> None:
    service.answers = [answer]
    service.holds = True

    assert len(await caller.stream(method, *arguments, count=1)) == 1

    await service.left.wait()


async def test_leaving_a_stream_unread_cancels_it_at_the_server(aio_caller: Caller, service: ScriptedService) -> None:
    service.holds = True
    async with aio_caller.client.search():
        await service.entered.wait()
        assert not service.left.is_set()

    await service.left.wait()


@pytest.mark.parametrize("method", ANSWERS)
async def test_deadline_of_the_client_ends_a_call_that_brings_none(
    make_caller: Callable[..., Caller], service: ScriptedService, address: str, method: str
) -> None:
    service.holds = True
    caller = make_caller(address, timeout_seconds=0.2)

    with pytest.raises(DeadlineExceededError) as caught:
        await call(caller, method, timeout_seconds=None)

    assert (caught.value.code, caught.value.reason) == ("DEADLINE_EXCEEDED", "SESSION_REFERENCE_CANCELLED")


@pytest.mark.parametrize(("options", "bounds"), [({}, (0, 11)), ({"timeout_seconds": 1000.0}, (11, 1100))])
@pytest.mark.parametrize("method", ANSWERS)
async def test_every_call_has_a_deadline_at_the_server(
    caller: Caller, service: ScriptedService, method: str, options: dict[str, float], bounds: tuple[int, int]
) -> None:
    service.answers = [ANSWERS[method]]

    await call(caller, method, **options)

    # gRPC rounds a deadline up when it writes it.
    assert bounds[0] < service.time_remaining_seconds < bounds[1]


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
async def test_timeout_that_is_no_positive_finite_number_is_refused(
    make_caller: Callable[..., Caller], caller: Caller, seconds: float
) -> None:
    with pytest.raises(ValueError, match="timeout_seconds"):
        make_caller("localhost:1", timeout_seconds=seconds)
    with pytest.raises(ValueError, match="timeout_seconds"):
        await call(caller, "service_info", timeout_seconds=seconds)


@pytest.mark.parametrize("method", ANSWERS)
async def test_request_id_is_passed_to_the_server(caller: Caller, service: ScriptedService, method: str) -> None:
    service.answers = [ANSWERS[method]]

    await call(caller, method, request_id="host-1.a_B")

    assert service.metadata["x-request-id"] == "host-1.a_B"


@pytest.mark.parametrize("request_id", ["", "a b", "é", "a\n", "x" * 65])
async def test_malformed_request_id_is_refused(caller: Caller, request_id: str) -> None:
    with pytest.raises(ValueError, match="request_id"):
        await call(caller, "service_info", request_id=request_id)


@pytest.mark.parametrize("method", ANSWERS)
async def test_unknown_option_is_refused(caller: Caller, method: str) -> None:
    with pytest.raises(TypeError, match="unknown options: timeout"):
        await call(caller, method, timeout=1)


@pytest.mark.parametrize("method", sorted(ANSWERS.keys() - {"prepare"}))
async def test_idempotent_call_is_tried_three_times(
    caller: Caller, service: ScriptedService, refusal: type[Refusal], method: str
) -> None:
    service.answers = [ANSWERS[method]]
    service.refusals = [refusal(code=grpc.StatusCode.UNAVAILABLE)] * 2

    await call(caller, method)

    assert len(service.requests) == 3


async def test_idempotent_call_fails_after_three_attempts(
    caller: Caller, service: ScriptedService, refusal: type[Refusal]
) -> None:
    service.answers = [ANSWERS["service_info"]]
    service.refusals = [refusal(code=grpc.StatusCode.UNAVAILABLE)] * 3

    with pytest.raises(TransportError):
        await call(caller, "service_info")

    assert len(service.requests) == 3


@pytest.mark.parametrize(
    ("method", "code"),
    [("prepare", grpc.StatusCode.UNAVAILABLE), ("service_info", grpc.StatusCode.RESOURCE_EXHAUSTED)],
)
async def test_other_failures_are_not_retried(
    caller: Caller, service: ScriptedService, refusal: type[Refusal], method: str, code: grpc.StatusCode
) -> None:
    service.refusals = [refusal(code=code)]

    with pytest.raises(TransportError):
        await call(caller, method)

    assert len(service.requests) == 1


@pytest.mark.parametrize("method", ANSWERS)
async def test_cancelled_task_stays_cancelled_and_cancels_the_call(
    aio_caller: Caller, service: ScriptedService, method: str
) -> None:
    service.holds = True
    task = asyncio.create_task(call(aio_caller, method))
    await service.entered.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    await service.left.wait()


def test_aio_client_outside_a_loop_is_refused() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        connect_aio("localhost:1")


@pytest.fixture
def keys(tmp_path: Path) -> ClientTls:
    """A key and a certificate for localhost that vouches for itself: each side shows it, and each side trusts it."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    arguments = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", key, "-out", certificate]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([program, "req", "-x509", "-nodes", *arguments, *names], check=True, capture_output=True)  # noqa: S603
    shown = certificate.read_bytes()
    return ClientTls(root_certificates=shown, certificate=shown, key=key.read_bytes())


@pytest.fixture
async def tls_address(service: ScriptedService, keys: ClientTls) -> AsyncIterator[str]:
    """Where the scripted service listens for clients that show a certificate."""
    server = aio.server()
    add_SessionReferenceServiceServicer_to_server(service, server)
    pair = [(keys.key, keys.certificate)]
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials(pair, keys.root_certificates, True))  # noqa: FBT003
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)


async def test_client_with_keys_is_served_over_tls(
    make_caller: Callable[..., Caller], service: ScriptedService, tls_address: str, keys: ClientTls
) -> None:
    service.answers = [service_message.GetServiceInfoResponse(version="0.1.0")]

    info = await make_caller(tls_address, tls=keys).answer("service_info")

    assert info.version == "0.1.0"


async def test_client_without_keys_is_turned_away(make_caller: Callable[..., Caller], tls_address: str) -> None:
    with pytest.raises(TransportError):
        await make_caller(tls_address).answer("service_info")


def test_certificate_without_key_is_refused() -> None:
    with pytest.raises(ValueError, match="certificate needs its key"):
        ClientTls(certificate=b"certificate")
