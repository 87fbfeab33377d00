"""The API over a store, in a process of its own: `python -m jobs.lab.bench.retrieve_server FOLDER`.

What the index role serves, without what it indexes: the same app, limits and tools over the same Qdrant Edge. It
prints its port and ends when its standard input closes.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from jobs.lab.bench.figures import BenchFailed
from jobs.operate.worker import run_until_stopped
from streams.api.assembly import memory_api
from streams.http.health import create_api, serve
from streams.http.security import access_of
from streams.index.edge import EdgeStore
from streams.observe.telemetry import configure_logging, metrics
from streams.settings import load_settings
from streams.wiring import embedder_of, policy_of

_STARTS_WITHIN_S = 60.0
_ENDS_WITHIN_S = 30.0
_LOG_TAIL_CHARS = 2_000


class Server(NamedTuple):
    """The process that answers."""

    url: str
    pid: int

    def cpu_s(self) -> float:
        """Seconds of CPU that it has used."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)


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
