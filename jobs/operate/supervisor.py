"""All roles of a machine as children of this process: started, told of when ready, started again when they end.

Lines of `turntide worker all` while it starts: each role once it is ready, and all of them, with the addresses.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import monotonic

import httpx
from filelock import FileLock, Timeout

from jobs.shared.role_process import RoleProcess, free_port, port_is_free
from models.errors import ConfigurationError
from models.events.topics import TURNS
from streams.settings import Settings
from streams.settings.live import LIVE_PAGE

_LOOK_AGAIN_S = 0.5
_SAY_AGAIN_S = 30.0
_ANSWER_WITHIN_S = 5.0


async def tell_ready(
    settings: Settings,
    roles: Iterable[str],
    stop: asyncio.Event,
    say: Callable[[str], None],
    *,
    further: Mapping[str, str] | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> None:
    """Ask the roles at their ports until all are ready or `stop` is set, however long that takes.

    A role whose port changes at each start (0 in the settings) cannot be asked: it is named in the end. The last line
    is followed by the addresses, and by what else there is to say, one a line.
    """
    places = {role: settings.http.url_of(role) for role in roles}
    waiting = {role: url for role, url in places.items() if url is not None}
    began_s = told_s = monotonic()
    async with httpx.AsyncClient(trust_env=False, timeout=_ANSWER_WITHIN_S, transport=transport) as client:
        while waiting and not stop.is_set():
            reasons = {role: await _reason(client, url) for role, url in waiting.items()}
            for role in [role for role, reason in reasons.items() if not reason]:
                say(f"worker {role} is ready: {waiting.pop(role)}")
            if waiting and monotonic() - told_s >= _SAY_AGAIN_S:
                told_s = monotonic()
                say("not ready yet: " + "; ".join(f"{role} ({reasons[role]})" for role in waiting))
            if waiting:
                await _wait(stop, _LOOK_AGAIN_S)
    if not waiting:
        told = {**_addresses(settings, places), **(further or {})}
        lines = [
            f"ready after {monotonic() - began_s:.0f} s",
            *(f"  {what:<10}{where}" for what, where in told.items()),
        ]
        say("\n".join(lines))


async def _reason(client: httpx.AsyncClient, url: str) -> str:
    """Why a role is not ready, in its own words; empty if it is."""
    try:
        answer = await client.get(f"{url}/readyz")
    except httpx.HTTPError:
        return "does not answer yet"
    return "" if answer.is_success else answer.text or f"status {answer.status_code}"


def _addresses(settings: Settings, places: Mapping[str, str | None]) -> dict[str, str]:
    told = {}
    if (serving := places.get("index")) is not None:
        if settings.live.enabled:
            told["live page"] = f"{serving}{LIVE_PAGE}"
        told["memory"] = f"{serving}/docs"
    told["Kafka"] = f"{settings.kafka.bootstrap}, turns go to {TURNS.full_name(settings.topic_prefix)}"
    if unknown := [role for role, url in places.items() if url is None]:
        told["not asked"] = f"{', '.join(unknown)}: the port is 0 in the settings"
    return told


_BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 10.0)
_STEADY_S = 60.0
"""A role that ran this long starts again without delay."""
_LOOK_EVERY_S = 0.2
_LIGHT = "light"


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
            f"`turntide up` or `turntide worker all` already runs on {data_dir}, as process {known}: use it, stop it, "
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
                f"port {port} of role {role} is in use by another program, perhaps a Turntide of another data "
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
