"""What the tests of the fault matrix share: traffic by seed, roles in this process, and the oracle at the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.structs import RecordMetadata

from jobs.lab.chaos.traffic import traffic
from jobs.replay.comparison import Settled, settle
from models.events import InputEvent, Role, Turn
from models.events.topics import TURNS, Topic
from models.wire.codec import decode_output, encode
from streams.kafka.client import read_to_end
from streams.kafka.producer import Record
from streams.ports import Embedder, TurnScorer, Vectors
from streams.roles.sessions import SessionsRole
from streams.settings import Settings, VectorSettings, load_settings
from streams.settings.http import HttpSettings
from streams.wiring import embedder_of, policy_of, scorer_of

WITHIN_S = 90.0
POLL_S = 0.1


@cache
def _loaded(name: str) -> Embedder:
    """The embedder of this name, loaded once."""
    return embedder_of(load_settings(vectors=VectorSettings.model_validate({"embedder": name})))


def disorder(seed: int, turns: int, *, hours: float = 1.0) -> list[Record]:
    """Chaos's traffic up to now: interleaved sessions, some of it twice, out of order, late or poison."""
    sent = traffic(seed, turns=turns, ends_at=datetime.now(UTC), span=timedelta(hours=hours))
    return [each.record for each in sent]


def said(number: int, *, session_id: str = "s", at: datetime | None = None, **more: Any) -> Turn:
    """A user's turn; by default of five minutes ago, one second per number."""
    fields: dict[str, Any] = {
        "session_id": session_id,
        "user_id": "u",
        "app_id": "a",
        "turn": number,
        "role": Role.USER,
        "content": "Where is my parcel?",
        "timestamp": at or datetime.now(UTC) - timedelta(minutes=5) + timedelta(seconds=number),
    }
    return Turn(**(fields | more))


def recorded(event: InputEvent) -> Record:
    """The event as its producer sends it."""
    return Record(event.session_id.encode(), encode(event))


async def send(
    settings: Settings,
    records: Iterable[Record],
    *,
    partition: int | None = None,
    per_s: float | None = None,
    **options: Any,
) -> list[RecordMetadata]:
    """Write records to `turns.v1` in order; gives where each one stands.

    Args:
        settings: Which cluster and prefix.
        records: What to send.
        partition: Where; none: by key.
        per_s: At most so many a second.
        options: Of the producer.
    """
    producer = AIOKafkaProducer(bootstrap_servers=settings.kafka.bootstrap, linger_ms=5, **options)
    await producer.start()
    try:
        pending = []
        for n, record in enumerate(records):
            topic = TURNS.full_name(settings.topic_prefix)
            pending.append(await producer.send(topic, record.value, key=record.key, partition=partition))
            if per_s is not None and n % 20 == 0:
                await asyncio.sleep(20 / per_s)  # the pace
        return list(await asyncio.gather(*pending))
    finally:
        await producer.stop()


async def events(settings: Settings, topic: Topic) -> list[Any]:
    """Everything on an output topic."""
    found = read_to_end(settings.kafka, topic.full_name(settings.topic_prefix))
    return [decode_output(topic, record.value) async for record in found]


async def until(holds: Callable[[], Any], what: str, *, within_s: float = WITHIN_S) -> Any:
    """Poll until it gives something true, and give that.

    Raises:
        AssertionError: It does not in time.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while True:
                found = holds()
                if asyncio.iscoroutine(found):
                    found = await found
                if found:
                    return found
                await asyncio.sleep(POLL_S)  # poll
    raise AssertionError(f"not within {within_s:g} s: {what}")


class BrittleScorer:
    """A scorer plug-in with a bug: what it says of turn 2 is no number."""

    name = "brittle"
    reads = ""

    def score(self, turns: Sequence[Turn], vectors: Vectors | None = None) -> Sequence[float]:  # noqa: ARG002
        """Risk 0.1, but for one turn."""
        return [0.1 if turn.turn != 2 else "high" for turn in turns]  # type: ignore[misc]


@asynccontextmanager
async def sessions_role(
    settings: Settings, *, scorer: TurnScorer | None = None, embedder: Embedder | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """The sessions role in this process, stopped at the end; not ready yet."""
    mine = settings.model_copy(update={"http": HttpSettings(sessions_port=0, index_port=0)})
    stop = asyncio.Event()
    reads = embedder or _loaded(mine.vectors.embedder)
    role = SessionsRole(mine, policy_of(mine), reads, scorer or scorer_of(mine, reads))
    task = asyncio.create_task(role.run(stop))
    try:
        yield task
    finally:
        stop.set()
        await asyncio.wait({task})


async def assert_equal_to_replay(settings: Settings, index_url: str | None = None) -> Settled:
    """State byte for byte, outputs by id and payload, and what there is of archive and index: as the oracle has it."""
    nobody_there = settings.model_copy(update={"http": HttpSettings(index_port=0)})
    settled = await settle(nobody_there, within_s=WITHIN_S, index_url=index_url)

    assert (settled.comparison.counts, settled.comparison.examples) == ({}, [])
    return settled


def shuffled(records: Sequence[Record], seed: int) -> list[Record]:
    """The records in another order."""
    return random.Random(seed).sample(records, len(records))
