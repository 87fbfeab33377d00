"""Shadow mode over the live topic: turns are read from now on and judged; nothing is written to Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from time import monotonic

from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from jobs.escalation.backtest.traffic import LabelledTraffic, Opening
from models.errors import ConfigurationError
from models.events.topics import TURNS
from streams.kafka.client import consumer, require_topic
from streams.settings import Settings

_POLL_MS = 500


def watched(settings: Settings, seconds: float) -> Opening:
    """Read the live topic for some time, and give what came as traffic. Ctrl-C ends it without a result.

    Args:
        settings: Which cluster and prefix.
        seconds: How long.

    Raises:
        ConfigurationError: There is no such topic, or nothing was said.
        StoreUnavailable: Kafka does not answer.
    """
    with _watching(seconds) as progress:
        records = asyncio.run(_read(settings, seconds, progress))
    if not records:
        raise ConfigurationError(f"nothing came in {seconds:g} s: is anybody producing to {TURNS.name}?")
    records.sort(key=lambda record: (record.partition, record.offset))

    return lambda: nullcontext(LabelledTraffic(f"{seconds:g} s of live traffic", records, len(records), timed=True))


async def _read(settings: Settings, seconds: float, progress: Callable[[float], None]) -> list[ConsumerRecord]:
    topic = TURNS.full_name(settings.topic_prefix)
    partitions = [TopicPartition(topic, number) for number in await require_topic(settings.kafka, topic)]
    records: list[ConsumerRecord] = []
    async with consumer(settings.kafka) as client:
        client.assign(partitions)
        for partition, end in (await client.end_offsets(partitions)).items():
            client.seek(partition, end)
        began = monotonic()
        while (passed := monotonic() - began) < seconds:
            left_ms = max(1, round((seconds - passed) * 1000))
            for batch in (await client.getmany(timeout_ms=min(_POLL_MS, left_ms))).values():
                records += batch
            progress(monotonic() - began)
    return records


@contextmanager
def _watching(seconds: float) -> Iterator[Callable[[float], None]]:
    console = Console(stderr=True)
    columns = (TextColumn("watching"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("watching", total=seconds)
        yield lambda passed: bar.update(task, completed=passed)
