"""Requests at a steady rate, sent by locust from a process of its own, to the API over a store in another.

The times at which requests are due are fixed before the first one is sent, and a time runs from there: where the server
(or the sending process) falls behind, the wait counts. Locust's own `constant_throughput` starts the next interval when
the last answer came, so that a server that stalls is simply asked less; here each user keeps its own timetable instead.

`python -m jobs.lab.bench.retrieve_http FOLDER`: what the index role serves, without what it indexes: the same
app, limits and tools over the same Qdrant Edge. It prints its port and ends when its standard input closes.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import count, cycle
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

from msgspec import Struct

from jobs.lab.bench.apart import apart
from jobs.lab.bench.measuring import BenchFailed, Figures, cpu_s, spread_ms
from jobs.operate.worker import run_until_stopped
from streams.api.assembly import memory_api
from streams.http.health import create_api, serve
from streams.http.security import access_of
from streams.index.edge import EdgeStore
from streams.observe.telemetry import configure_logging, metrics
from streams.settings import load_settings
from streams.wiring import embedder_of, policy_of

CONNECTIONS = 32
"""Users, each with a connection of its own; half of what the API answers at once by default."""
WARM_UP_S = 3.0
"""Not counted: connections, caches, first allocations."""
_LEAD_S = 1.5
"""Until all users are there."""
_LATE_S = 5.0
"""A request that is so far behind its time ends the run for its user: the rate is not reached, more tells nothing."""
_LOOK_EVERY_S = 0.2
_MOST_ERRORS = 5
_OK = 200
_SPARE_S = 60.0
_STARTS_WITHIN_S = 60.0
_ENDS_WITHIN_S = 30.0
_LOG_TAIL_CHARS = 2_000


class RequestLoad(Struct, frozen=True):
    """What is to be sent.

    Attributes:
        url: Whole address of the route.
        bodies: JSON of the requests, taken in turn; none: GET.
        rate: Requests a second.
        seconds: For how long, the warm-up left out.
    """

    url: str
    bodies: list[str]
    rate: float
    seconds: float


class Timetable:
    """When each request is due, fixed before the first one is sent; and what came back after the warm-up.

    Args:
        load: What is to be sent.
        now_s: `perf_counter`.

    Attributes:
        began_s: When the first one is due.
        counts_from_s: The end of the warm-up.
        ends_s: From here on none is due.
        last_s: When the last answer came.
        latencies_ms: Of each answer, from the moment its request was due.
        answer_ms: The same from the moment it was sent.
        errors: What came instead of an answer of status 200.
    """

    def __init__(self, load: RequestLoad, now_s: float) -> None:
        self._interval_s = CONNECTIONS / load.rate
        self.began_s = now_s + _LEAD_S
        self.last_s = self.counts_from_s = self.began_s + WARM_UP_S
        self.ends_s = self.counts_from_s + load.seconds
        self.latencies_ms: list[float] = []
        self.answer_ms: list[float] = []
        self.errors: list[str] = []

    def due_s(self, user: int, n: int) -> float:
        """When request `n` of a user is due."""
        return self.began_s + n * self._interval_s + user * self._interval_s / CONNECTIONS

    def note(self, due_s: float, sent_s: float, error: str) -> None:
        """Note an answer that is just there."""
        now_s = perf_counter()
        if due_s < self.counts_from_s:
            return
        self.last_s = now_s
        if error:
            self.errors.append(error)
        else:
            self.latencies_ms.append((now_s - due_s) * 1_000)
            self.answer_ms.append((now_s - sent_s) * 1_000)

    def figures(self, path: str, sender_cpu_s: float) -> Figures:
        """What a run of requests amounts to; `answer_p99_ms` runs from sending, the difference is the sender's.

        Raises:
            BenchFailed: Not one was answered.
        """
        kinds, seconds = sorted(set(self.errors))[:_MOST_ERRORS], self.last_s - self.counts_from_s
        if not self.latencies_ms:
            raise BenchFailed(f"no answer from {path}: {'; '.join(kinds) or 'nothing was sent'}")
        return {
            "path": path,
            "requests": len(self.latencies_ms),
            "rate": len(self.latencies_ms) / seconds,
            "errors": len(self.errors),
            "error_kinds": kinds,
            **spread_ms(self.latencies_ms)._asdict(),
            "max_ms": max(self.latencies_ms),
            "answer_p99_ms": spread_ms(self.answer_ms).p99_ms,
            "client_cpus": sender_cpu_s / seconds,
        }


def run(path: str, load: RequestLoad) -> Figures:
    """Send from this process, which locust takes over."""
    locust, gevent = import_module("locust"), import_module("gevent")
    environment = import_module("locust.env").Environment
    gc.collect()
    gc.freeze()
    gc.disable()  # a pause here would be read as one of the server
    table = Timetable(load, perf_counter())
    runner = environment(user_classes=[_asker(locust, load, table)]).create_local_runner()
    runner.start(CONNECTIONS, spawn_rate=CONNECTIONS)
    gevent.sleep(max(0.0, table.counts_from_s - perf_counter()))
    began_s = process_time()
    while perf_counter() < table.ends_s + _LATE_S and runner.user_count:
        gevent.sleep(_LOOK_EVERY_S)
    used_s = process_time() - began_s
    runner.quit()
    return table.figures(path, used_s)


def _asker(locust: Any, load: RequestLoad, table: Timetable) -> type:
    """A kind of locust user that keeps the timetable."""
    stop_user = import_module("locust.exception").StopUser
    sleep = import_module("gevent").sleep
    bodies = cycle([body.encode() for body in load.bodies] or [b""])
    numbers = count()
    method, headers = ("POST", {"Content-Type": "application/json"}) if load.bodies else ("GET", {})

    def on_start(user: Any) -> None:
        user.number, user.n = next(numbers), 0

    def ask(user: Any) -> None:
        due_s = table.due_s(user.number, user.n)
        user.n += 1
        if due_s >= table.ends_s or perf_counter() - due_s > _LATE_S:
            raise stop_user
        sleep(max(0.0, due_s - perf_counter()))
        sent_s = perf_counter()
        answer = user.client.request(method, load.url, data=next(bodies) or None, headers=headers)
        table.note(due_s, sent_s, "" if answer.status_code == _OK else f"{answer.status_code} {answer.error or ''}")

    wait_time = locust.constant(0)
    members = {"on_start": on_start, "tasks": [ask], "wait_time": wait_time, "host": load.url}
    return type("Asker", (locust.FastHttpUser,), {**members, "network_timeout": _LATE_S})


class Server(NamedTuple):
    """The process that answers."""

    url: str
    pid: int


async def time_http(server: Server, path: str, load: RequestLoad, environment: Mapping[str, str]) -> Figures:
    """A route under load, sent from a process with these variables.

    Raises:
        BenchFailed: Locust is not installed or ended badly, or nothing was answered.
    """
    if find_spec("locust") is None:
        raise BenchFailed("locust sends the requests and is not installed: `uv run --group bench turntide lab bench …`")
    began_s, too_slow = cpu_s(server.pid), "end: is the machine overloaded?"
    within_s = load.seconds + _SPARE_S
    found = await apart("locust", run, path, load, within_s=within_s, too_slow=too_slow, environment=environment)
    return {**found, "server_cpus": (cpu_s(server.pid) - began_s) / (load.seconds + WARM_UP_S)}


@asynccontextmanager
async def serving(folder: Path, environment: Mapping[str, str], log: Path) -> AsyncIterator[Server]:
    """Serve a store while the context is open.

    Args:
        folder: Of the store; no other process has it open.
        environment: Of the process.
        log: Where its messages go.

    Raises:
        BenchFailed: It does not start.
    """
    with log.open("wb") as messages:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__, str(folder)),
            env=dict(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=messages,
        )
    if child.stdin is None or child.stdout is None:
        raise BenchFailed("the server has no pipes")
    try:
        async with asyncio.timeout(_STARTS_WITHIN_S):
            port = (await child.stdout.readline()).decode().strip()
        if not port:
            raise BenchFailed(f"the server did not start:\n{_tail(log)}")
        yield Server(f"http://127.0.0.1:{port}", child.pid)
    finally:
        child.stdin.close()
        try:
            async with asyncio.timeout(_ENDS_WITHIN_S):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-_LOG_TAIL_CHARS:]


async def _serve(folder: Path, stop: asyncio.Event) -> None:
    settings = load_settings()
    embedder = embedder_of(settings)
    store = EdgeStore(folder, embedder=embedder.name)
    served = memory_api(store, embedder, policy_of(settings), settings.http, topic_prefix=settings.topic_prefix)
    api = create_api(
        ready=lambda: (True, "ready"),
        registry=metrics.registry,
        routes=served.routes,
        access=access_of(settings.http),
        endpoints=served.endpoints,
        limits=settings.http,
    )
    try:
        async with serve(api) as port:
            gc.freeze()  # as a role does once it is started
            print(port, flush=True)  # noqa: T201 - for the process that started this one
            await stop.wait()
    finally:
        await store.close()


if __name__ == "__main__":
    configure_logging(level="warning")
    run_until_stopped(lambda stop: _serve(Path(sys.argv[1]), stop), exit_with_parent=True, within_s=_ENDS_WITHIN_S)
