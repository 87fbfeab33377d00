"""All roles of a machine as children of this process: started, told of when ready, started again when they end."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import monotonic

from filelock import FileLock, Timeout

from jobs.operate.readiness import tell_ready
from jobs.shared.broker_config import free_port, port_is_free
from jobs.shared.role_process import RoleProcess
from models.errors import ConfigurationError
from streams.settings import Settings

_BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 10.0)
_STEADY_S = 60.0
"""A role that ran this long starts again without delay."""
_LOOK_EVERY_S = 0.2
_LIGHT = "light"
_FEW_HEAPS = {"MALLOC_ARENA_MAX": "2"}
"""glibc keeps a heap for each thread that allocates, up to eight for each core, and gives little of them back."""


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
            f"`turntide up` or `turntide worker all` runs on {data_dir} already, as process {known}: use it, stop it, "
            "or set TURNTIDE_DATA_DIR to another directory"
        ) from None
    with lock:
        owner.write_text(f"{os.getpid()}\n")
        yield


async def supervise(
    settings: Settings,
    stop: asyncio.Event,
    say: Callable[[str], None],
    *,
    light: bool = False,
    logs: Path | None = None,
    further: Mapping[str, str] | None = None,
) -> None:
    """Keep all roles running until `stop` is set.

    Args:
        settings: Theirs.
        stop: Ends them.
        say: Told when they are ready, and when one ended.
        light: All in one child.
        logs: Folder of their logs; None: they write where this process does.
        further: What else is said with their addresses.
    """
    roles = settings.roles
    children = [
        RoleProcess(
            name,
            settings,
            log=logs / f"{name}.log" if logs else None,
            own_port=False,
            worker_id=worker_id_of(settings),
            extra_environment=_FEW_HEAPS if light else None,
        )
        for name in ([_LIGHT] if light else roles)
    ]
    async with asyncio.TaskGroup() as group:
        group.create_task(tell_ready(settings, roles, stop, say, further=further))
        for child in children:
            group.create_task(_keep_running(child, stop, say, told_where=logs is not None))


def require_free_ports(settings: Settings) -> None:
    """Look whether all roles can listen: a child that cannot would fail again and again.

    Raises:
        ConfigurationError: Another program has one; says which and what to do.
    """
    for role in settings.roles:
        port = settings.http.port_of(role)
        if port and not port_is_free(port, settings.http.host):
            raise ConfigurationError(
                f"port {port} of role {role} is taken by another program, perhaps a Turntide of another data "
                f"directory: end it, or set TURNTIDE_HTTP__{role.upper()}_PORT={free_port()}"
            )


def worker_id_of(settings: Settings) -> str:
    """Name under which the children are members of their groups: whoever dies has its partitions back on its return.

    Without `worker_id`, the machine and the data directory: what two supervisors cannot share anyway.
    """
    if settings.worker_id:
        return settings.worker_id
    place = sha256(str(settings.data_dir.resolve()).encode()).hexdigest()[:8]
    return f"{socket.gethostname()}-{place}"


async def _keep_running(
    child: RoleProcess, stop: asyncio.Event, say: Callable[[str], None], *, told_where: bool
) -> None:
    failures = 0
    while not stop.is_set():
        started_s = monotonic()
        child.start()
        while child.running() and not stop.is_set():
            await _wait(stop, _LOOK_EVERY_S)
        code = await asyncio.to_thread(child.stop)
        if stop.is_set():
            return
        failures = 1 if monotonic() - started_s > _STEADY_S else failures + 1
        wait_s = _BACKOFF_S[min(failures, len(_BACKOFF_S)) - 1]
        told = f", see {child.log}" if told_where else ""
        say(f"worker {child.role} ended with code {code}{told}; starting it again in {wait_s:g} s")
        await _wait(stop, wait_s)


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
