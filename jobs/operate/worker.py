"""`turntide worker`: run one role in this process, or all of them, here or as children (`jobs.operate.supervisor`)."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Literal

import structlog
import typer

from jobs.cli import with_examples
from jobs.operate.supervisor import only_one, require_free_ports, supervise
from streams.settings import Settings, load_settings
from streams.settings.reading import unknown_variables

_COLLECT_AFTER = 50_000
"""New objects before the garbage collector looks; folds make many and no cycles."""
_HEAPS = 2
"""Heaps of glibc's `malloc`. It makes one for each thread that allocates, up to eight for each core, and what is freed
in one is of no use to another: the archive's grew by 120 MB in 100 landings with as many merges as in 20 minutes, with
two by none. `MALLOC_ARENA_MAX` of the environment wins."""
_M_ARENA_MAX = -8
"""Parameter's number in `malloc.h`."""
_STOP_WITHIN_S = 12.0
STOP_ALL_WITHIN_S = 45.0
"""For children, which take `RoleProcess.stop` at most."""
_EXIT_HARD = 75  # EX_TEMPFAIL: stopped, but not in order


WorkerRole = Literal[
    "sessions", "memory", "enrich", "judge", "index", "archive", "notify", "api", "light", "gateway", "all"
]
"""Roles of a worker."""


@with_examples(
    "turntide worker all",
    "turntide worker sessions",
    "TURNTIDE_KAFKA=broker:9092 TURNTIDE_WORKER_ID=sessions-0 turntide worker sessions",
)
def worker(
    role: Annotated[WorkerRole, typer.Argument(help="The role, or `all` of them on this machine.")] = "all",
    *,
    exit_with_parent: Annotated[
        bool, typer.Option("--exit-with-parent", help="Stop when standard input closes.")
    ] = False,
) -> None:
    """Run a role until Ctrl-C: fold sessions or users, call models, judge, index, archive, notify, serve HTTP.

    `turntide up` starts a broker, its topics and all roles with one command.

    Each role is its own consumer group and scales alone: start more workers of a role, and the group spreads the
    partitions over them. `all` starts every role (notify only with a configured sink, judge only with a configured
    judge), reports when each is ready and restarts a role that stops. Its roles are static members of their groups
    (`worker_id`), so a restarted role gets its partitions back at once. `light` runs the same roles in this one
    process, with less than half of the memory; nothing restarts it. `api` serves the routes of the index role from any
    number of processes over a Qdrant server. `gateway` takes turns over HTTP, also from any number of processes.
    """
    settings = load_settings()
    if role == "all":
        with only_one(settings.data_dir):
            require_free_ports(settings)
            run_until_stopped(
                lambda stop: supervise(settings, stop, partial(typer.echo, err=True)),
                exit_with_parent=exit_with_parent,
                within_s=STOP_ALL_WITHIN_S,
            )
        return
    from streams.observe.telemetry import configure_logging, start_telemetry
    from streams.observe.tracing import tracing
    from streams.wiring import ROLES

    configure_logging(settings.log_format, settings.log_level)
    start_telemetry(settings.telemetry, role)
    for each in unknown_variables(Settings):
        structlog.get_logger(__name__).warning("unknown_setting", variable=each.name, perhaps_meant=each.meant)
    run = _run_light if role == "light" else ROLES[role]
    try:
        run_until_stopped(lambda stop: run(settings, stop), exit_with_parent=exit_with_parent, within_s=_STOP_WITHIN_S)
    finally:
        tracing.stop()


async def _run_light(settings: Settings, stop: asyncio.Event) -> None:
    """Run these in this process and loop, with one embedder and one scorer; each answers at its own port.

    A role that fails stops the others in order, and its error ends the process: whoever started it starts it again.
    """
    from streams.observe.telemetry import counted_apart
    from streams.wiring import ROLES

    names, failed = settings.roles, list[Exception]()

    async def run(name: str) -> None:
        with counted_apart(of_process=name == names[0]), structlog.contextvars.bound_contextvars(role=name):
            try:
                await ROLES[name](settings, stop)
            except Exception as error:  # noqa: BLE001 - told below
                failed.append(error)
            finally:
                stop.set()

    await asyncio.gather(*map(run, names))
    if failed:
        raise failed[0]


def _limit_heaps() -> None:
    """Set `_HEAPS`, before there are threads; nothing where the allocator is another."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(_M_ARENA_MAX, _HEAPS)


def run_until_stopped(
    main: Callable[[asyncio.Event], Awaitable[None]], *, exit_with_parent: bool, within_s: float
) -> None:
    """Run `main` until SIGINT, SIGTERM or, if so wanted, the end of standard input sets its event.

    Args:
        main: What to do; it returns soon after the event is set.
        exit_with_parent: Whether standard input is held open by whoever started this process.
        within_s: How long stopping may take before the process ends hard.
    """
    gc.set_threshold(_COLLECT_AFTER)
    _limit_heaps()

    async def until_stopped() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        if exit_with_parent:
            threading.Thread(target=_watch_parent, args=(loop, stop), daemon=True).start()
        ending = asyncio.ensure_future(_end_in_time(stop, within_s))
        await main(stop)
        ending.cancel()

    asyncio.run(until_stopped())


async def _end_in_time(stop: asyncio.Event, within_s: float) -> None:
    """A broker that does not answer must not keep a stopped worker alive; a hard end loses nothing (design §5)."""
    await stop.wait()
    end = threading.Timer(within_s, os._exit, (_EXIT_HARD,))
    end.daemon = True
    end.start()


def _watch_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """The parent holds the other end of standard input: its end means that the parent is gone."""
    # The bare descriptor: a buffered reader's lock would be held when the interpreter ends.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    loop.call_soon_threadsafe(stop.set)
