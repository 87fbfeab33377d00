"""`turntide worker`: run one role in this process, or all of them as children that are started again when they die."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Annotated

import structlog
import typer
from filelock import FileLock, Timeout

from jobs.cli import with_examples
from jobs.operate.readiness import tell_ready
from jobs.shared.role_process import own_command, with_bytecode
from models.errors import ConfigurationError
from streams.settings import Settings, load_settings
from streams.settings.reading import unknown_variables

_BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 10.0)
_STEADY_S = 60.0
"""A role that ran this long starts again without delay."""
_COLLECT_AFTER = 50_000
"""New objects before the garbage collector looks; folds make many and no cycles."""
_STOP_WITHIN_S = 12.0
_KILL_AFTER_S = 15.0
_EXIT_HARD = 75  # EX_TEMPFAIL: stopped, but not in order


class WorkerRole(StrEnum):
    """Roles of a worker."""

    SESSIONS = "sessions"
    MEMORY = "memory"
    ENRICH = "enrich"
    JUDGE = "judge"
    INDEX = "index"
    ARCHIVE = "archive"
    NOTIFY = "notify"
    API = "api"
    ALL = "all"


@with_examples(
    "turntide worker all",
    "turntide worker sessions",
    "TURNTIDE_KAFKA=broker:9092 TURNTIDE_WORKER_ID=sessions-0 turntide worker sessions",
)
def worker(
    role: Annotated[WorkerRole, typer.Argument(help="The role, or `all` of them on this machine.")] = WorkerRole.ALL,
    *,
    exit_with_parent: Annotated[
        bool, typer.Option("--exit-with-parent", help="Stop when standard input closes.")
    ] = False,
) -> None:
    """Run a role until Ctrl-C: fold sessions or users, answer requests, judge, index, archive, notify, serve reading.

    Each role is its own consumer group and scales alone: start more workers of a role and the partitions spread over
    them. `all` starts every role (notify where a sink is configured, judge where a judge is), says when each is ready
    and restarts what dies; as static members of their groups (`worker_id`) they have their partitions back at once.
    `api` serves what the index role serves, in as many processes as are wanted, over a Qdrant server.
    """
    settings = load_settings()
    if role is WorkerRole.ALL:
        with only_one(settings.data_dir):
            run_until_stopped(
                lambda stop: _supervise(settings, stop), exit_with_parent=exit_with_parent, within_s=2 * _KILL_AFTER_S
            )
        return
    from streams.observe.telemetry import configure_logging, start_telemetry
    from streams.observe.tracing import tracing
    from streams.wiring import ROLES

    configure_logging(settings.log_format, settings.log_level)
    start_telemetry(settings.telemetry, role.value)
    for each in unknown_variables(Settings):
        structlog.get_logger(__name__).warning("unknown_setting", variable=each.name, perhaps_meant=each.meant)
    try:
        run_until_stopped(
            lambda stop: ROLES[role.value](settings, stop), exit_with_parent=exit_with_parent, within_s=_STOP_WITHIN_S
        )
    finally:
        tracing.stop()


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


# --- all roles


@contextmanager
def only_one(data_dir: Path) -> Iterator[None]:
    """Hold a data directory for this supervisor; the kernel gives it back however the process ends.

    Two would be the same static members of their groups, and take the partitions from each other for ever.

    Raises:
        ConfigurationError: Another one holds it; says its process id.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    owner, lock = data_dir / "worker.pid", FileLock(data_dir / "worker.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        known = owner.read_text().strip() if owner.is_file() else "unknown"
        raise ConfigurationError(
            f"`turntide worker all` runs on {data_dir} already, as process {known}: stop that one, or set "
            "TURNTIDE_DATA_DIR to another directory"
        ) from None
    with lock:
        owner.write_text(f"{os.getpid()}\n")
        yield


async def _supervise(settings: Settings, stop: asyncio.Event) -> None:
    roles = [WorkerRole.SESSIONS, WorkerRole.MEMORY, WorkerRole.ENRICH, WorkerRole.INDEX, WorkerRole.ARCHIVE]
    if settings.notify.has_sinks:
        roles.append(WorkerRole.NOTIFY)
    if settings.judge.kind != "off":
        roles.append(WorkerRole.JUDGE)
    environment = {**with_bytecode(os.environ), "TURNTIDE_WORKER_ID": worker_id_of(settings)}
    async with asyncio.TaskGroup() as group:
        group.create_task(tell_ready(settings, roles, stop, partial(typer.echo, err=True)))
        for role in roles:
            group.create_task(_keep_running(role, environment, stop))


def worker_id_of(settings: Settings) -> str:
    """Name under which the children are members of their groups: whoever dies has its partitions back on its return.

    Without `worker_id`, the machine and the data directory: what two supervisors cannot share anyway.
    """
    if settings.worker_id:
        return settings.worker_id
    place = sha256(str(settings.data_dir.resolve()).encode()).hexdigest()[:8]
    return f"{socket.gethostname()}-{place}"


async def _keep_running(role: WorkerRole, environment: Mapping[str, str], stop: asyncio.Event) -> None:
    failures = 0
    while not stop.is_set():
        started_s = monotonic()
        code = await _run_child(role, environment, stop)
        if stop.is_set():
            return
        failures = 1 if monotonic() - started_s > _STEADY_S else failures + 1
        wait_s = _BACKOFF_S[min(failures, len(_BACKOFF_S)) - 1]
        typer.echo(f"worker {role} ended with code {code}; starting it again in {wait_s:g} s", err=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await stop.wait()


async def _run_child(role: WorkerRole, environment: Mapping[str, str], stop: asyncio.Event) -> int:
    child = await asyncio.create_subprocess_exec(
        *own_command(), "worker", role.value, "--exit-with-parent",
        env=environment,
        stdin=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    ended = asyncio.ensure_future(child.wait())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not ended.done():
        child.terminate()
        await asyncio.wait({ended}, timeout=_KILL_AFTER_S)
        if not ended.done():
            child.kill()
    return await ended
