"""Recovery time of state: our state table, in memory and in RocksDB, beside a stock Faust table of the same size.

Each round has a process for each contender, one after the other on the same broker. Keys and values have the same
sizes, and each contender must end with every key.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import Struct

from jobs.lab.bench.environment import Ground
from jobs.lab.bench.recovery_contender import faust_changelog, faust_source, run
from jobs.operate.topics import apply_topics
from models.events.topics import SESSION_STATE
from streams.kafka.client import admin
from streams.kafka.producer import Producer, Record, acknowledged
from streams.kafka.topics import BrokerTopic, create
from streams.settings import Settings, StateSettings, load_settings
from streams.state.changelog import OFFSET_BYTES, key_of, records_of

PARTITIONS = 4
VALUE_BYTES = 256
TAIL_RATIO = 0.01
"""Of the keys are written once more before the warm start: what another worker has done meanwhile."""
_WRITE_KEYS = 10_000
_LEAST_KEYS_PER_S = 300
_START_WITHIN_S = 120.0

Say = Callable[[str], None]


class Size(Struct, frozen=True):
    """How much is measured.

    Attributes:
        keys: Of the state.
        runs: Rounds.
        stock_runs: Rounds in which stock Faust takes part.
    """

    keys: int
    runs: int
    stock_runs: int


FULL = (Size(100_000, runs=3, stock_runs=3), Size(1_000_000, runs=3, stock_runs=1))
QUICK = (Size(20_000, runs=1, stock_runs=1),)


class Row(Struct, frozen=True):
    """Medians for one number of keys.

    Attributes:
        keys: Of the state, one changelog record each.
        recovery_ratio: Our records per second divided by stock Faust's, in memory both.
        records_per_s: Ours, in memory.
        stock_records_per_s: Stock Faust's.
        seconds: Ours, in memory.
        stock_seconds: Stock Faust's.
        rocksdb_seconds: Ours, into an empty RocksDB.
        warm_seconds: Ours, with RocksDB kept from before and one record in a hundred beyond it.
        runs: Rounds.
        stock_runs: Rounds of stock Faust.
    """

    keys: int
    recovery_ratio: float
    records_per_s: float
    stock_records_per_s: float
    seconds: float
    stock_seconds: float
    rocksdb_seconds: float
    warm_seconds: float
    runs: int
    stock_runs: int


class RecoveryReport(Struct, frozen=True):
    """All sizes; the figures above them are those of the first."""

    keys: int
    recovery_ratio: float
    records_per_s: float
    rows: list[Row]
    value_bytes: int
    load_average_at_start: float


def report_of(rows: Sequence[Row], *, load_average: float) -> RecoveryReport:
    """The report of all rows."""
    first = rows[0]
    return RecoveryReport(
        first.keys, first.recovery_ratio, first.records_per_s, list(rows), VALUE_BYTES, round(load_average, 2)
    )


def row_of(size: Size, rounds: Sequence[dict[str, float]]) -> Row:
    """Medians over rounds of seconds by contender; the ratio is taken within a round.

    >>> once = {"turntide": 1.0, "stock_faust": 20.0, "rocksdb": 2.0, "warm": 0.1}
    >>> row_of(Size(1000, runs=2, stock_runs=1), [once, {"turntide": 3.0, "rocksdb": 2.0, "warm": 0.1}]).recovery_ratio
    20.0
    """
    seconds = {name: median(each[name] for each in rounds if name in each) for name in rounds[0]}
    return Row(
        keys=size.keys,
        recovery_ratio=median(each["stock_faust"] / each["turntide"] for each in rounds if "stock_faust" in each),
        records_per_s=size.keys / seconds["turntide"],
        stock_records_per_s=size.keys / seconds["stock_faust"],
        seconds=seconds["turntide"],
        stock_seconds=seconds["stock_faust"],
        rocksdb_seconds=seconds["rocksdb"],
        warm_seconds=seconds["warm"],
        runs=size.runs,
        stock_runs=size.stock_runs,
    )


async def measure(ground: Ground, sizes: Sequence[Size], *, say: Say) -> RecoveryReport:
    """Run everything.

    Args:
        ground: A broker without other work, and an empty folder.
        sizes: How much.
        say: Called with what is going on.

    Raises:
        BenchFailed: A contender failed, or did not recover everything.
    """
    rows = [await _row(ground.bootstrap, ground.home, size, say) for size in sizes]
    return report_of(rows, load_average=ground.load_average)


async def _row(bootstrap: str, home: Path, size: Size, say: Say) -> Row:
    settings = load_settings(
        kafka={"bootstrap": bootstrap, "partitions": PARTITIONS},
        topic_prefix=f"bench-{uuid.uuid4().hex[:8]}",
        data_dir=home,
    )
    say(f"{size.keys:,} keys: writing both changelogs")
    await _write(settings, size.keys)
    rounds = []
    for number in range(size.runs):
        say(f"{size.keys:,} keys: run {number + 1} of {size.runs}")
        rounds.append(await _round(settings, size, with_stock=number < size.stock_runs, say=say))
    return row_of(size, rounds)


async def _round(settings: Settings, size: Size, *, with_stock: bool, say: Say) -> dict[str, float]:
    within_s = _START_WITHIN_S + size.keys / _LEAST_KEYS_PER_S
    seconds: dict[str, float] = {}

    async def note(label: str, contender: str, of: Settings) -> None:
        seconds[label] = await run(contender, of, size.keys, os.environ, within_s=within_s)
        say(f"  {label}: {seconds[label]:,.2f} s")

    await note("turntide", "turntide", settings)
    if with_stock:
        await note("stock_faust", "stock_faust", settings)
    local = settings.model_copy(update={"state": StateSettings(store="rocksdb")})
    await asyncio.to_thread(shutil.rmtree, settings.data_dir / "state", ignore_errors=True)
    await note("rocksdb", "turntide", local)
    await _write_ours(settings, range(size.keys, size.keys + round(size.keys * TAIL_RATIO)), size.keys)
    await note("warm", "turntide", local)
    return seconds


async def _write(settings: Settings, keys: int) -> None:
    await apply_topics(settings)
    compact = {"cleanup.policy": "compact"}
    async with admin(settings.kafka) as client:
        wanted = [(faust_changelog(settings), compact), (faust_source(settings), {})]
        await create(client, [BrokerTopic(name=n, partitions=PARTITIONS, replication=1, config=c) for n, c in wanted])
    await _write_ours(settings, range(keys), keys)
    values = _values(VALUE_BYTES + OFFSET_BYTES)
    await _send(settings, faust_changelog(settings), range(keys), lambda n: Record(_key(n), next(values)))


async def _write_ours(settings: Settings, offsets: range, keys: int) -> None:
    """One record for each source offset, of the key that it falls to."""
    values = _values(VALUE_BYTES)
    await _send(
        settings,
        SESSION_STATE.full_name(settings.topic_prefix),
        offsets,
        lambda offset: records_of({_key(offset % keys): next(values)}, offset)[0],
    )


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
        for start in range(numbers.start, numbers.stop, _WRITE_KEYS):
            chunk = range(start, min(start + _WRITE_KEYS, numbers.stop))
            pending: list[Awaitable[Any]] = []
            for partition in range(PARTITIONS):
                own = [record(n) for n in chunk if n % PARTITIONS == partition]
                pending += await producer.write(topic, partition, own)
            await acknowledged(pending)  # type: ignore[arg-type]
    finally:
        await producer.stop()
