"""Recovery time of state: our state table, in memory and in RocksDB, beside a stock Faust table of the same size.

Each round has a process for each contender, one after the other on the same broker. Keys and values have the same
sizes, and each contender must end with every key.
"""

import asyncio
import logging
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import faust

from jobs.lab.bench.measuring import BenchEnvironment, BenchFailed, Figures, apart, medians, say
from jobs.shared.role_process import environment_of
from models.events.topics import SESSION_STATE
from streams.kafka.client import admin, require_topic
from streams.kafka.producer import Producer, Record, acknowledged
from streams.kafka.topics import BrokerTopic, create
from streams.observe.telemetry import configure_logging
from streams.settings import Settings, StateSettings, load_settings
from streams.state.changelog import OFFSET_BYTES, key_of, records_of
from streams.state.table import StateTable

PARTITIONS = 4
VALUE_BYTES = 256
TAIL_RATIO = 0.01
"""Of the keys are written once more before the warm start: what another worker has done meanwhile."""
_WRITE_KEYS, _LARGE_KEYS = 10_000, 1_000_000
_STOCK = "stock_faust"
_LEAST_KEYS_PER_S = 300
_START_WITHIN_S = 120.0
QUICK = {"keys": (20_000,), "runs": 1}


def row_of(keys: int, rounds: Sequence[dict[str, float]]) -> Figures:
    """Medians over rounds of seconds by contender; the ratio is taken within a round."""
    seconds, ratios = medians(rounds), [each[_STOCK] / each["turntide"] for each in rounds if _STOCK in each]
    return {
        "keys": keys,
        "recovery_ratio": median(ratios),
        "records_per_s": keys / seconds["turntide"],
        "stock_records_per_s": keys / seconds[_STOCK],
        "seconds": seconds["turntide"],
        "stock_seconds": seconds[_STOCK],
        "rocksdb_seconds": seconds["rocksdb"],
        "warm_seconds": seconds["warm"],
        "runs": len(rounds),
        "stock_runs": len(ratios),
    }


async def measure(
    environment: BenchEnvironment,
    *,
    wanted_keys: Sequence[int] = (),
    keys: Sequence[int] = (100_000, 1_000_000),
    runs: int = 3,
) -> Figures:
    """Recover states of so many keys, in rounds; of a large state stock Faust takes part in one."""
    rows = []
    for count in wanted_keys or keys:
        settings, rounds = await environment.fresh(partitions=PARTITIONS), []
        say(f"{count:,} keys: writing both changelogs")
        await _write(settings, count)
        for number in range(runs):
            say(f"{count:,} keys: run {number + 1} of {runs}")
            with_stock = not number or count < _LARGE_KEYS
            rounds.append(await _round(settings, count, with_stock=with_stock))
        rows.append(row_of(count, rounds))
    first = {key: rows[0][key] for key in ("keys", "recovery_ratio", "records_per_s")}
    return {**first, "rows": rows, "value_bytes": VALUE_BYTES}


async def _round(settings: Settings, keys: int, *, with_stock: bool) -> dict[str, float]:
    """Seconds by contender, each in a process of its own."""
    within_s = _START_WITHIN_S + keys / _LEAST_KEYS_PER_S
    too_slow = f"recover {keys:,} keys in {within_s:g} s: run with fewer --keys"
    seconds: dict[str, float] = {}

    def note(label: str, name: str, of: Settings) -> None:
        found, seconds[label] = apart(
            name, _recover, name, keys, within_s=within_s, too_slow=too_slow, environment=environment_of(of)
        )
        if found != keys:
            raise BenchFailed(f"{name} recovered {found:,} of {keys:,} keys")
        say(f"  {label}: {seconds[label]:,.2f} s")

    note("turntide", "turntide", settings)
    if with_stock:
        note(_STOCK, _STOCK, settings)
    local = settings.model_copy(update={"state": StateSettings(store="rocksdb")})
    await asyncio.to_thread(shutil.rmtree, settings.data_dir / "state", ignore_errors=True)
    note("rocksdb", "turntide", local)
    await _write_ours(settings, range(keys, keys + round(keys * TAIL_RATIO)), keys)
    note("warm", "turntide", local)
    return seconds


async def _write(settings: Settings, keys: int) -> None:
    changelog, source = faust_topics(settings)
    async with admin(settings.kafka) as client:
        wanted = [(changelog, {"cleanup.policy": "compact"}), (source, {})]
        await create(client, [BrokerTopic(name=n, partitions=PARTITIONS, replication=1, config=c) for n, c in wanted])
    await _write_ours(settings, range(keys), keys)
    values = _values(VALUE_BYTES + OFFSET_BYTES)
    await _send(settings, changelog, range(keys), lambda n: Record(_key(n), next(values)))


async def _write_ours(settings: Settings, offsets: range, keys: int) -> None:
    """One record for each source offset, of the key that it falls to."""
    topic, values = SESSION_STATE.full_name(settings.topic_prefix), _values(VALUE_BYTES)
    await _send(settings, topic, offsets, lambda offset: records_of({_key(offset % keys): next(values)}, offset)[0])


def _key(number: int) -> bytes:
    return key_of(f"session-{number:08d}", "head")


def _values(size: int) -> Iterator[bytes]:
    rng = random.Random(1)  # noqa: S311 - what is in them does not matter
    while True:
        yield rng.randbytes(size)


async def _send(settings: Settings, topic: str, numbers: range, record: Callable[[int], Record]) -> None:
    producer = Producer(settings)
    await producer.start()
    try:
        for first in range(0, len(numbers), _WRITE_KEYS):
            chunk, pending = numbers[first : first + _WRITE_KEYS], list[Any]()
            for partition in range(PARTITIONS):
                own = [record(n) for n in chunk if n % PARTITIONS == partition]
                pending += await producer.write(topic, partition, own)
            await acknowledged(pending)
    finally:
        await producer.stop()


_FAUST_APP, _FAUST_TABLE = "stock-faust", "sessions"


def faust_topics(settings: Settings) -> tuple[str, str]:
    """The changelog of its table, as Faust names it, and the topic that its agent reads.

    Faust recovers tables of partitions that it has from a group.
    """
    named = f"{settings.topic_prefix}.{_FAUST_APP}"
    return f"{named}-{_FAUST_TABLE}-changelog", f"{named}.source"


async def _turntide(settings: Settings) -> tuple[int, float]:
    """Our state table, in the store that the settings name."""
    topic = SESSION_STATE.full_name(settings.topic_prefix)
    numbers = await require_topic(settings.kafka, topic)
    producer = Producer(settings)
    await producer.start()
    table = StateTable(settings, topic, producer)
    try:
        began_s = perf_counter()
        await table.recover(numbers)
        seconds = perf_counter() - began_s
        return sum(len(table.partition(number).entities) for number in numbers), seconds
    finally:
        table.close()
        await producer.stop()


def faust_app(settings: Settings, name: str, **options: Any) -> faust.App:
    """A Faust worker with its own defaults, tables in memory as its documentation advises."""
    datadir = settings.data_dir / name / settings.topic_prefix
    datadir.mkdir(parents=True, exist_ok=True)
    return faust.App(
        f"{settings.topic_prefix}.{name}",
        broker=f"kafka://{settings.kafka.bootstrap}",
        store="memory://",
        datadir=datadir,
        topic_replication_factor=1,
        web_enabled=False,
        loghandlers=[],
        **options,
    )


async def _stock_faust(settings: Settings, keys: int) -> tuple[int, float]:
    """An ordinary table of a Faust worker."""
    app, (changelog, read) = faust_app(settings, _FAUST_APP), faust_topics(settings)
    partitions = len(await require_topic(settings.kafka, changelog))
    table = app.Table(_FAUST_TABLE, partitions=partitions, key_type=bytes, value_type=bytes)
    source = app.topic(read, key_serializer="raw", value_serializer="raw", value_type=bytes)
    assigned_s, done = list[float](), asyncio.Event()

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
        return len(table), perf_counter() - assigned_s[-1]
    finally:
        await app.stop()


def _recover(name: str, keys: int) -> tuple[int, float]:
    """Keys in the state after a recovery, and how long it took."""
    configure_logging(level="warning")
    logging.getLogger().setLevel(logging.ERROR)
    settings = load_settings()
    return asyncio.run(_stock_faust(settings, keys) if name == _STOCK else _turntide(settings))
