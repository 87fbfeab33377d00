"""Requests at a steady rate, sent by locust from a process of its own: `python -m jobs.lab.bench.retrieve_load FILE`.

The file holds a `Load` as JSON, and it prints a `Loaded`. The times at which requests are due are fixed
before the first one is sent, and a time runs from there: where the server (or this process) falls behind, the wait
counts. Locust's own `constant_throughput` starts the next interval when the last answer came, so that a server that
stalls is simply asked less; here each user keeps its own timetable instead.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import count, cycle
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import msgspec
from msgspec import Struct

from jobs.lab.bench.child import printed_by
from jobs.lab.bench.figures import BenchFailed

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


class Load(Struct, frozen=True):
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


class Loaded(Struct, frozen=True):
    """What came back; a request in the warm-up counts nowhere.

    Attributes:
        latencies_ms: Of each answer, from the moment its request was due.
        answer_ms: The same from the moment it was sent.
        seconds: From the first request's due time to the last answer.
        errors: Answers that were none, or of another status than 200.
        error_kinds: Some of them.
        cpu_s: Of the sending process.
    """

    latencies_ms: list[float]
    answer_ms: list[float]
    seconds: float
    errors: int
    error_kinds: list[str]
    cpu_s: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies_ms) / self.seconds if self.seconds > 0 else 0.0


async def send(load: Load, environment: Mapping[str, str], folder: Path) -> Loaded:
    """Send from a process of its own.

    Args:
        load: What.
        environment: Of the process.
        folder: Where what is to be sent can be left for it.

    Raises:
        BenchFailed: Locust is not installed, or ended badly.
    """
    if find_spec("locust") is None:
        raise BenchFailed("locust sends the requests and is not installed: `uv run --group bench turntide bench …`")
    plan = folder / "load.json"
    plan.write_bytes(msgspec.json.encode(load))
    printed = await printed_by(
        "locust",
        [sys.executable, "-m", __name__, str(plan)],
        environment,
        within_s=load.seconds + _SPARE_S,
        too_slow="end: is the machine overloaded?",
    )
    return msgspec.json.decode(printed, type=Loaded)


class Timetable:
    """When each request is due, fixed before the first one is sent.

    Args:
        load: What is to be sent.
        now_s: `perf_counter`.

    Attributes:
        began_s: When the first one is due.
        counts_from_s: The end of the warm-up.
        ends_s: From here on none is due.
    """

    def __init__(self, load: Load, now_s: float) -> None:
        self._interval_s = CONNECTIONS / load.rate
        self.began_s = now_s + _LEAD_S
        self.counts_from_s = self.began_s + WARM_UP_S
        self.ends_s = self.counts_from_s + load.seconds

    def due_s(self, user: int, n: int) -> float:
        """When request `n` of a user is due."""
        return self.began_s + n * self._interval_s + user * self._interval_s / CONNECTIONS


class _Notes:
    """What came back to all users."""

    def __init__(self, counts_from_s: float) -> None:
        self._counts_from_s = self.last_s = counts_from_s
        self.latencies_ms: list[float] = []
        self.answer_ms: list[float] = []
        self.errors: list[str] = []

    def note(self, due_s: float, sent_s: float, error: str) -> None:
        """Note an answer that is just there."""
        now_s = perf_counter()
        if due_s < self._counts_from_s:
            return
        self.last_s = now_s
        if error:
            self.errors.append(error)
            return
        self.latencies_ms.append((now_s - due_s) * 1_000)
        self.answer_ms.append((now_s - sent_s) * 1_000)


def _asker(locust: Any, load: Load, table: Timetable, notes: _Notes) -> type:
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
        notes.note(due_s, sent_s, "" if answer.status_code == _OK else f"{answer.status_code} {answer.error or ''}")

    members = {
        "on_start": on_start,
        "tasks": [ask],
        "wait_time": locust.constant(0),
        "host": load.url,
        "network_timeout": _LATE_S,
    }
    return type("Asker", (locust.FastHttpUser,), members)


def run(load: Load) -> Loaded:
    """Send from this process, which locust takes over."""
    locust, gevent = import_module("locust"), import_module("gevent")
    environment = import_module("locust.env").Environment
    gc.collect()
    gc.freeze()
    gc.disable()  # a pause here would be read as one of the server
    table = Timetable(load, perf_counter())
    notes = _Notes(table.counts_from_s)
    runner = environment(user_classes=[_asker(locust, load, table, notes)]).create_local_runner()
    runner.start(CONNECTIONS, spawn_rate=CONNECTIONS)
    gevent.sleep(max(0.0, table.counts_from_s - perf_counter()))
    cpu_s = process_time()
    while perf_counter() < table.ends_s + _LATE_S and runner.user_count:
        gevent.sleep(_LOOK_EVERY_S)
    cpu_s = process_time() - cpu_s
    runner.quit()
    return Loaded(
        latencies_ms=notes.latencies_ms,
        answer_ms=notes.answer_ms,
        seconds=notes.last_s - table.counts_from_s,
        errors=len(notes.errors),
        error_kinds=sorted(set(notes.errors))[:_MOST_ERRORS],
        cpu_s=cpu_s,
    )


if __name__ == "__main__":
    wanted = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Load)
    sys.stdout.buffer.write(msgspec.json.encode(run(wanted)))
