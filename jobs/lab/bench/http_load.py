"""Requests at a steady rate, sent from a process of its own to a server in another.

The times at which requests are due are fixed before the first one is sent, and a time runs from there: where the server
(or the sending process) falls behind, the wait counts.

`python -m jobs.lab.bench.http_load`: the api role over the Qdrant Edge store of the data directory.
"""

import asyncio
import gc
from collections.abc import Sequence
from http import HTTPStatus
from importlib import import_module
from itertools import cycle
from time import perf_counter, process_time
from typing import Any

from msgspec import Struct

from jobs.lab.bench.folds import paced
from jobs.lab.bench.measuring import BenchFailed, Figures, apart, cpu_s, spread_ms
from jobs.operate.worker import run_until_stopped
from jobs.shared.role_process import RoleProcess, own_command
from streams.index.edge import EdgeStore
from streams.observe.telemetry import configure_logging
from streams.roles.api import serve_memory
from streams.settings import load_settings
from streams.settings.http import HttpSettings
from streams.wiring import embedder_of, policy_of

CONNECTIONS = 256
"""Four times what the API answers at once by default: the rest is refused, which counts as errors."""
WARM_UP_S = 3.0
"""Not counted: connections, caches, first allocations."""
_LATE_S = 5.0
"""A request that is so far behind its time ends the run: the rate is not reached, more tells nothing."""
_MOST_ERRORS = 5
_SPARE_S = 60.0
_ENDS_WITHIN_S = 30.0


class Answered(Struct, frozen=True):
    """A request: when it was due, sent and answered (`perf_counter`), and the error that came instead."""

    due_s: float
    sent_s: float
    ended_s: float
    error: str = ""


def time_http(server: RoleProcess, route: str, corpus: Sequence[str], *, rate: float, seconds: float) -> Figures:
    """A route of a server under load: so many requests a second with these bodies in turn; without any, GET."""
    load, began_s = (server.url + route, corpus, rate, seconds), cpu_s(server.pid)
    too_slow = "end: is the machine overloaded?"
    found, client_s = apart("the sender", _send, *load, within_s=seconds + _SPARE_S, too_slow=too_slow)
    took_s = max(each.ended_s for each in found) - found[0].due_s  # an overloaded run ends early
    return {
        "path": route,
        **figures_of(found, began_s=found[0].due_s + WARM_UP_S),
        "client_cpus": client_s / took_s,
        "server_cpus": (cpu_s(server.pid) - began_s) / took_s,
    }


def figures_of(found: Sequence[Answered], *, began_s: float) -> Figures:
    """Percentiles of those that were due after the warm-up; `answer_p99_ms` runs from sending.

    Raises:
        BenchFailed: Not one was answered.
    """
    counted = [each for each in found if each.due_s >= began_s]
    answered, errors = [each for each in counted if not each.error], [each.error for each in counted if each.error]
    if not answered:
        raise BenchFailed(f"no answer: {'; '.join(sorted(set(errors))[:_MOST_ERRORS]) or 'nothing was sent'}")
    times_ms = [(each.ended_s - each.due_s) * 1_000 for each in answered]
    took_s = max(each.ended_s for each in found) - began_s
    return {
        "requests": len(answered),
        "rate": sum(each.ended_s >= began_s for each in found if not each.error) / took_s,
        "errors": len(errors),
        "error_kinds": sorted(set(errors))[:_MOST_ERRORS],
        **spread_ms(times_ms),
        "max_ms": max(times_ms),
        "answer_p99_ms": spread_ms([(each.ended_s - each.sent_s) * 1_000 for each in answered])["p99_ms"],
    }


def _send(url: str, bodies: Sequence[str], rate: float, seconds: float) -> tuple[list[Answered], float]:
    """Everything that was sent from this process, and its CPU seconds."""
    gc.collect()
    gc.freeze()
    gc.disable()  # a pause here would be read as one of the server
    began_s = process_time()
    return asyncio.run(_sent(url, bodies, rate, seconds)), process_time() - began_s


async def _sent(url: str, bodies: Sequence[str], rate: float, seconds: float) -> list[Answered]:
    # By name: it comes with Faust, and takes less processor time than httpx.
    aiohttp: Any = import_module("aiohttp")
    found, texts = list[Answered](), cycle(bodies or [""])
    method, headers = "POST" if bodies else "GET", {"Content-Type": "application/json"}

    async def ask(client: Any, due_s: float) -> None:
        sent_s, error = perf_counter(), ""
        try:
            async with client.request(method, url, data=next(texts) or None) as answer:
                await answer.read()
                if answer.status >= HTTPStatus.BAD_REQUEST:
                    error = f"{answer.status} {answer.reason}"
        except (aiohttp.ClientError, TimeoutError) as broken:
            error = type(broken).__name__
        found.append(Answered(due_s, sent_s, perf_counter(), error))

    connections, timeout = aiohttp.TCPConnector(limit=CONNECTIONS), aiohttp.ClientTimeout(total=_LATE_S)
    requests = range(round((WARM_UP_S + seconds) * rate))
    async with (
        aiohttp.ClientSession(connector=connections, timeout=timeout, headers=headers) as client,
        asyncio.TaskGroup() as sending,
    ):
        async for due_s, _ in paced(requests, rate):
            if found and perf_counter() - found[-1].due_s > _LATE_S:
                break
            sending.create_task(ask(client, due_s))
    return sorted(found, key=lambda each: each.due_s)


class StoreServer(RoleProcess):
    """The api role over the Qdrant Edge store of the data directory, as a process of its own."""

    def _command(self) -> list[str]:
        return own_command(__spec__.name)


async def _serve(stop: asyncio.Event) -> None:
    settings = load_settings()
    embedder, http = embedder_of(settings), HttpSettings(api_port=settings.http.api_port)
    store = EdgeStore(settings.data_dir / "vectors", embedder=embedder.name)
    open_to_all = settings.model_copy(update={"http": http})  # no tokens: those who ask have none
    gc.freeze()  # as a role does once it is started
    await serve_memory(open_to_all, policy_of(settings), embedder, store, stop)


if __name__ == "__main__":
    configure_logging(level="warning")
    run_until_stopped(_serve, exit_with_parent=True, within_s=_ENDS_WITHIN_S)
