"""Wiring: the one place that names concrete adapters, and the life of a server process."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from sessionref_client.address import default_socket_path

from sessionref_server import __version__
from sessionref_server.adapters.models.models_dev import ModelsDevCatalogue
from sessionref_server.adapters.secrets.kingfisher import KingfisherDetector
from sessionref_server.adapters.sessions.formats import log_formats
from sessionref_server.adapters.sessions.head_cache import HeadCache
from sessionref_server.adapters.sessions.log_directory import LogDirectorySource
from sessionref_server.adapters.sessions.log_services import LogDirectoryServices
from sessionref_server.adapters.sessions.log_survey import LogRoots
from sessionref_server.adapters.sessions.redacting import RedactingSource, title_redactor
from sessionref_server.adapters.spill.directory import DirectorySpillStore
from sessionref_server.adapters.workers.offload import PoolOffload
from sessionref_server.adapters.workers.pool import WorkerPool
from sessionref_server.config import Config, SourceConfig
from sessionref_server.domain.ports import ModelCatalogue, SessionSource, SourceCheck
from sessionref_server.service.admission import Admission
from sessionref_server.service.mentions import Mentions
from sessionref_server.service.prepare import PrepareLimits, PrepareService
from sessionref_server.service.session_catalog import SessionCatalog
from sessionref_server.service.snapshots import Snapshots
from sessionref_server.telemetry import LOGGER, configure_logging
from sessionref_server.wire.guard import Calls
from sessionref_server.wire.listen import Listener, parse_listener
from sessionref_server.wire.reference_service import ReferenceService, ServiceFacts
from sessionref_server.wire.server import Server, start_server

APPLICATION = "sessionref"

_MAX_WORKERS = 4
_MAX_QUEUED_JOBS = 4096
_WORKER_MEMORY_LIMIT_BYTES = 512 * 1024 * 1024
_WORKER_GRACE_SECONDS = 0.5
_SWEEP_SECONDS = 3600.0
_STUCK_SECONDS = 3.0  # what a shutdown may take besides the drain; it takes tenths of a second unless storage hangs
_DAY_SECONDS = 86_400.0
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStarted:
    """What a person wants to know once the first scan is over."""

    addresses: Sequence[str]
    sources: Sequence[SourceCheck]


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """All that runs in a server process, started."""

    server: Server
    catalog: SessionCatalog
    prepare: PrepareService
    spill: DirectorySpillStore | None
    workers: WorkerPool
    detector: KingfisherDetector | None
    """``None`` when no source is redacted."""


async def serve(config: Config, *, announce: Callable[[ServerStarted], None]) -> int:
    """Run until SIGTERM or SIGINT, then drain. A second signal ends the drain.

    Args:
        config: checked configuration.
        announce: called once, when the first scan of every source is over.

    Returns:
        The exit code.

    Raises:
        InvalidConfigError: something configured cannot be used.
    """
    configure_logging(config.log_level, config.log_format)
    stop, hurry = asyncio.Event(), asyncio.Event()

    def signalled() -> None:
        (hurry if stop.is_set() else stop).set()

    _on_signals(signalled)
    async with running(config) as application:
        LOGGER.info("serving", extra={"version": __version__, "listening": ",".join(application.server.addresses)})
        await _announce_until(stop, application, announce)
        LOGGER.info("shutting down")
        _leave_at_the_latest(config.calls_drain_seconds + _STUCK_SECONDS)
        await _stop_or_hurry(application.server, config.calls_drain_seconds, hurry)
    return 0


@asynccontextmanager
async def running(
    config: Config, *, sources: Sequence[SessionSource] | None = None, models: ModelCatalogue | None = None
) -> AsyncGenerator[Application]:
    """Start everything; stop everything at the end, leaving no process, thread, socket or file behind.

    Args:
        config: checked configuration.
        sources: instead of the configured ones.
        models: instead of the one that ships.
    """
    listeners = _listeners(config)
    async with AsyncExitStack() as stack:
        workers = WorkerPool(
            config.workers_processes or min(_MAX_WORKERS, os.cpu_count() or 1),
            _MAX_QUEUED_JOBS,
            worker_memory_limit_bytes=_WORKER_MEMORY_LIMIT_BYTES,
        )
        workers.start()
        stack.push_async_callback(workers.close, _WORKER_GRACE_SECONDS)
        detector = _detector(config)
        parts = LogParts(workers=workers, cache=HeadCache(cache_folder(config)), detector=detector, stack=stack)
        stack.push_async_callback(parts.cache.close)
        if sources is None:
            sources = [_source(source, config, parts) for source in config.sources if source.enabled]
        lists_subagents = [name for name, log_format in log_formats().items() if log_format.lists_subagents]
        catalog = SessionCatalog(sources, lists_subagents)
        _run_until_closed(stack, catalog.run())
        spill = _spill(config, stack)
        offload = PoolOffload(workers)
        prepare = PrepareService(
            catalog=catalog,
            models=models or ModelsDevCatalogue(config.models),
            mentions=Mentions(offload),
            snapshots=Snapshots(spill, offload, config.cache_captures_mib * _MIB),
            admission=Admission(config.prepare_max_concurrent, config.prepare_max_queued),
            limits=_prepare_limits(config),
        )
        server = await _start(config, listeners, prepare, spill)
        stack.push_async_callback(server.close)
        yield Application(server=server, catalog=catalog, prepare=prepare, spill=spill, workers=workers, detector=detector)


async def check_sources(config: Config) -> list[SourceCheck]:
    """Scan the configured sources once, without a server."""
    async with AsyncExitStack() as stack:
        workers = WorkerPool(min(_MAX_WORKERS, os.cpu_count() or 1), _MAX_QUEUED_JOBS)
        workers.start()
        stack.push_async_callback(workers.close, _WORKER_GRACE_SECONDS)
        parts = LogParts(workers=workers, cache=HeadCache(cache_folder(config)), detector=_detector(config), stack=stack)
        stack.push_async_callback(parts.cache.close)
        catalog = SessionCatalog([_source(source, config, parts) for source in config.sources if source.enabled])
        _run_until_closed(stack, catalog.run())
        await catalog.wait_ready()
        return catalog.checks()


def spill_folder(config: Config) -> Path:
    """Where saved transcripts are."""
    return Path(config.spill_folder or platformdirs.user_data_path(APPLICATION) / "snapshots").expanduser()


def cache_folder(config: Config) -> Path:
    """Where the catalogue is kept between runs."""
    return Path(config.cache_folder or platformdirs.user_cache_path(APPLICATION)).expanduser()


def _on_signals(act: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, act)


def _leave_at_the_latest(seconds: float) -> None:
    """End the process then, whatever waits for storage that does not answer: Python would wait for such a thread for ever."""
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()


async def _announce_until(stop: asyncio.Event, application: Application, announce: Callable[[ServerStarted], None]) -> None:
    """Wait for the end; say meanwhile what was found. Raises InvalidConfigError when secrets cannot be hidden."""

    async def tell() -> None:
        with suppress(TimeoutError):  # a start whose labels are all known goes before the loading, which takes a core
            await asyncio.wait_for(application.catalog.wait_ready(), 1.0)
        if application.detector is not None:
            await application.detector.start()
        await application.catalog.wait_ready()
        announce(ServerStarted(addresses=application.server.addresses, sources=application.catalog.checks()))

    telling, stopping = asyncio.create_task(tell()), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({telling, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if telling.done():
            telling.result()
        await stopping
    finally:
        telling.cancel()
        stopping.cancel()


async def _stop_or_hurry(server: Server, drain_seconds: float, hurry: asyncio.Event) -> None:
    stopping = asyncio.create_task(server.stop(drain_seconds))
    hurrying = asyncio.create_task(hurry.wait())
    await asyncio.wait({stopping, hurrying}, return_when=asyncio.FIRST_COMPLETED)
    hurrying.cancel()
    stopping.cancel()
    with suppress(asyncio.CancelledError):
        await stopping


def _listeners(config: Config) -> list[Listener]:
    return [parse_listener(address) for address in config.listen_addresses or (f"unix:{default_socket_path()}",)]


def _detector(config: Config) -> KingfisherDetector | None:
    wanted = any(source.enabled and source.redact for source in config.sources)
    return KingfisherDetector(cache_folder(config)) if wanted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogParts:
    """What every log directory shares."""

    workers: WorkerPool
    cache: HeadCache
    detector: KingfisherDetector | None
    stack: AsyncExitStack
    """Closes the sources."""


def _source(source: SourceConfig, config: Config, parts: LogParts) -> SessionSource:
    log_format = log_formats()[source.name]
    configured = tuple(Path(root).expanduser() for root in source.roots)
    usual = tuple(log_format.default_roots(os.environ, Path.home()))
    detector = parts.detector if source.redact else None
    services = LogDirectoryServices(
        workers=parts.workers,
        head_cache=parts.cache,
        redact=None if detector is None else title_redactor(detector),
        redaction_rules="" if detector is None else detector.rules,
        capture_bytes=config.cache_captures_mib * _MIB,
    )
    directory = LogDirectorySource(log_format, LogRoots(paths=configured or usual, configured=bool(configured)), services)
    parts.stack.callback(directory.close)
    return directory if detector is None else RedactingSource(directory, detector)


def _spill(config: Config, stack: AsyncExitStack) -> DirectorySpillStore | None:
    if not config.spill_enabled:
        return None
    store = DirectorySpillStore(
        spill_folder(config),
        expiry_seconds=config.spill_expiry_days * _DAY_SECONDS,
        quota_bytes=config.spill_quota_mib * _MIB,
    )
    stack.push_async_callback(store.close)
    _run_until_closed(stack, _sweep_hourly(store))
    return store


async def _sweep_hourly(store: DirectorySpillStore) -> None:
    while True:
        await store.sweep()
        await asyncio.sleep(_SWEEP_SECONDS)


def _prepare_limits(config: Config) -> PrepareLimits:
    return PrepareLimits(
        max_references=config.prepare_max_references,
        max_reference_bytes=config.prepare_max_reference_bytes,
        reference_context_fraction=config.prepare_reference_context_fraction,
    )


async def _start(config: Config, listeners: list[Listener], prepare: PrepareService, spill: DirectorySpillStore | None) -> Server:
    calls = Calls(config.calls_max_seconds)
    facts = ServiceFacts(
        prepare=prepare.limits,
        session_candidates=config.search_candidate_limit,
        concurrent_prepares=config.prepare_max_concurrent,
        snapshot_lifetime_seconds=None if spill is None else config.spill_expiry_days * _DAY_SECONDS,
    )
    reference = ReferenceService(calls, facts, catalog=prepare.catalog, prepare=prepare, spill=spill)
    return await start_server(reference, listeners, calls=calls, with_reflection=config.listen_reflection)


def _run_until_closed(stack: AsyncExitStack, work: Coroutine[None, None, None]) -> None:
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(end)
