"""One recovery in a process of its own: `python -m jobs.lab.bench.recovery_contender NAME KEYS` prints its time.

Settings come from the environment, as a role's do. What is timed runs from the moment that the partitions are known to
the moment that their state is there, in both worlds: start-up of the process and joining a group are left out.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter

import faust
import msgspec
from msgspec import Struct

from jobs.lab.bench.child import printed_by
from jobs.lab.bench.figures import BenchFailed
from jobs.shared.role_process import environment_of
from models.events.topics import SESSION_STATE
from streams.kafka.client import require_topic
from streams.kafka.producer import Producer
from streams.settings import Settings, load_settings
from streams.state.table import StateTable

_FAUST_TABLE = "sessions"


class Recovered(Struct, frozen=True):
    """A recovery: keys in the state afterwards, and how long it took."""

    keys: int
    seconds: float


def faust_app_id(settings: Settings) -> str:
    """Id of the stock Faust app of these settings."""
    return f"{settings.topic_prefix}.stock-faust"


def faust_changelog(settings: Settings) -> str:
    """Its table's changelog, as Faust names it."""
    return f"{faust_app_id(settings)}-{_FAUST_TABLE}-changelog"


def faust_source(settings: Settings) -> str:
    """The topic that its agent reads: Faust recovers tables of partitions that it has from a group."""
    return f"{faust_app_id(settings)}.source"


async def _turntide(settings: Settings, keys: int) -> Recovered:
    """Our state table, in the store that the settings name."""
    _ = keys
    topic = SESSION_STATE.full_name(settings.topic_prefix)
    numbers = await require_topic(settings.kafka, topic)
    producer = Producer(settings)
    await producer.start()
    table = StateTable(settings, topic, producer)
    try:
        began_s = perf_counter()
        await table.recover(numbers)
        seconds = perf_counter() - began_s
        return Recovered(sum(len(table.partition(number).entities) for number in numbers), seconds)
    finally:
        table.close()
        await producer.stop()


async def _stock_faust(settings: Settings, keys: int) -> Recovered:
    """An ordinary table of a Faust worker with its own defaults, in memory as its documentation advises."""
    datadir = settings.data_dir / "stock-faust"
    datadir.mkdir(parents=True, exist_ok=True)
    app = faust.App(
        faust_app_id(settings),
        broker=f"kafka://{settings.kafka.bootstrap}",
        store="memory://",
        datadir=datadir,
        topic_replication_factor=1,
        web_enabled=False,
        loghandlers=[],
    )
    partitions = len(await require_topic(settings.kafka, faust_changelog(settings)))
    table = app.Table(_FAUST_TABLE, partitions=partitions, key_type=bytes, value_type=bytes)
    source = app.topic(faust_source(settings), key_serializer="raw", value_serializer="raw", value_type=bytes)
    assigned_s: list[float] = []
    done = asyncio.Event()

    async def agent(stream: faust.StreamT[bytes]) -> None:
        async for _ in stream:
            pass

    async def note_assigned(*_args: object, **_kwargs: object) -> None:
        assigned_s.append(perf_counter())

    async def note_recovered() -> None:
        if len(table) >= keys:
            done.set()

    app.agent(source, name="source", concurrency=1)(agent)
    app.on_partitions_assigned.connect(note_assigned)
    table.on_recover(note_recovered)
    await app.start()
    try:
        await done.wait()
        return Recovered(len(table), perf_counter() - assigned_s[-1])
    finally:
        await app.stop()


CONTENDERS: Mapping[str, Callable[[Settings, int], Awaitable[Recovered]]] = {
    "turntide": _turntide,
    "stock_faust": _stock_faust,
}
"""Who recovers."""


async def run(name: str, settings: Settings, keys: int, environment: Mapping[str, str], *, within_s: float) -> float:
    """Recover in a process of its own.

    Args:
        name: One of `CONTENDERS`.
        settings: Whose cluster, prefix, data directory and store.
        keys: How many there must be in the end.
        environment: Variables of this process.
        within_s: How long it may take, start-up included.

    Returns:
        Seconds.

    Raises:
        BenchFailed: It ended badly or not in time, or not with all keys.
    """
    printed = await printed_by(
        name,
        [sys.executable, "-m", "jobs.lab.bench.recovery_contender", name, str(keys)],
        {**environment, **environment_of(settings)},
        within_s=within_s,
        too_slow=f"recover {keys:,} keys in {within_s:g} s: run with fewer --keys",
    )
    recovered = msgspec.json.decode(printed, type=Recovered)
    if recovered.keys != keys:
        raise BenchFailed(f"{name} recovered {recovered.keys:,} of {keys:,} keys")
    return recovered.seconds


def main() -> None:
    """Recover and print."""
    name, keys = sys.argv[1:]
    logging.getLogger().setLevel(logging.ERROR)
    recovered = asyncio.run(_awaited(CONTENDERS[name](load_settings(), int(keys))))
    sys.stdout.write(msgspec.json.encode(recovered).decode())


async def _awaited(recovery: Awaitable[Recovered]) -> Recovered:
    return await recovery


if __name__ == "__main__":
    from streams.observe.telemetry import configure_logging

    configure_logging(level="warning")
    main()
