"""Reading along: what Turntide emits, how far each role is, and whether all of them have caught up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager, closing

import duckdb
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from jobs.demo.state import DemoState
from models.entities import REGISTRY
from models.errors import StoreUnavailable, TurntideError
from models.events import OutputEvent
from models.events.topics import (
    ALERTS,
    COMMANDS,
    COMPACTIONS,
    CONVERSATION_TOPICS,
    EPISODES,
    FACTS,
    MEMORIES,
    MEMORY_EVENTS,
    PROFILES,
    PROJECTS,
    REQUESTS,
    TURNS,
    USER_EPISODES,
    WINDOWS,
    Topic,
)
from models.wire.codec import decode_output
from streams.archive.catalog import open_reader, paths_of
from streams.kafka.client import admin, consumer
from streams.settings import Settings

_FOLLOWED = (
    PROFILES,
    ALERTS,
    COMPACTIONS,
    CONVERSATION_TOPICS,
    EPISODES,
    FACTS,
    USER_EPISODES,
    MEMORIES,
    MEMORY_EVENTS,
    PROJECTS,
    WINDOWS,
)
SOURCES = {
    "sessions": (TURNS,),
    "memory": (COMMANDS,),
    "enrich": (REQUESTS,),
    "index": REGISTRY.indexed_topics,
}
"""Role, which is also its consumer group → what it reads. The archive keeps its offsets itself."""
_POLL_MS = 100
_MEASURE_EVERY_S = 0.5

Offsets = dict[TopicPartition, int]


class FellBehind(TurntideError):  # noqa: N818 - it says what happened
    """The play is over, and a role did not finish its part in time."""


class DemoWatch:
    """Follows the output topics into the demo's state, and measures the roles.

    Args:
        settings: Cluster, prefix and data directory.
        state: Where what is read goes.
        emit: Told each new event.
    """

    def __init__(
        self,
        settings: Settings,
        state: DemoState,
        *,
        follower: AIOKafkaConsumer,
        client: AIOKafkaAdminClient,
        emit: Callable[[OutputEvent], None],
    ) -> None:
        self._settings = settings
        self._state = state
        self._follower = follower
        self._client = client
        self._emit = emit
        self._topics = {topic.full_name(settings.topic_prefix): topic for topic in REGISTRY.topics}
        self._read: Offsets = {}
        self._lag: tuple[float, dict[str, int]] = (0.0, {})
        """When the latest measurement was begun, monotonic seconds, and who was behind by how many records."""
        self.archive = ArchiveOffsets(settings)

    async def follow(self) -> None:
        """Fold every output event into the state, for ever."""
        while True:
            for partition, records in (await self._follower.getmany(timeout_ms=_POLL_MS)).items():
                for record in records:
                    self._read[partition] = record.offset + 1
                    if record.value is None:
                        continue
                    event = decode_output(self._topics[record.topic], record.value)
                    if self._state.take(event, time.monotonic()):
                        self._emit(event)

    async def measure(self) -> None:
        """Keep lag and archive of the state current, for ever. The only one to ask: connections are not for two."""
        while True:
            asked_s = time.monotonic()
            self._lag = (asked_s, await self._behind())
            await asyncio.sleep(_MEASURE_EVERY_S)

    async def caught_up(self, within_s: float) -> None:
        """Wait until a measurement begun after this call finds everything folded, indexed, archived and read here.

        Raises:
            FellBehind: Not in time; says who lacks how much.
        """
        began_s = time.monotonic()
        while self._lag[0] < began_s or self._lag[1]:
            if time.monotonic() > began_s + within_s:
                raise FellBehind(
                    f"{within_s:g} s after the last turn these were not finished: "
                    + ", ".join(f"{who} ({count} records)" for who, count in self._lag[1].items())
                    + f". Their logs are in {self._settings.data_dir / 'logs'}"
                )
            await asyncio.sleep(_MEASURE_EVERY_S)

    async def _behind(self) -> dict[str, int]:
        """Who has how many records still to do; those that have none are left out."""
        archived = await asyncio.to_thread(self.archive.read)
        committed = {role: await self._committed(role) for role in SOURCES}
        # The ends last: what arrives between the questions counts as behind, never as done. A role commits after its
        # outputs are written, so when nobody is behind no answer is on its way back to commands.v1 either.
        ends = await self._ends(name for name, topic in self._topics.items() if topic.public)
        behind = {f"role {role}": _missing(self._of(ends, read), committed[role]) for role, read in SOURCES.items()}
        behind["role archive"] = _missing(self._of(ends, REGISTRY.archived_topics), archived)
        behind["this view"] = _missing(self._of(ends, _FOLLOWED), self._read)
        self._state.lag = behind["role sessions"]
        self._state.archived = sum(archived.values())
        return {who: count for who, count in behind.items() if count}

    def _of(self, ends: Offsets, topics: Collection[Topic]) -> Offsets:
        return {partition: end for partition, end in ends.items() if self._topics[partition.topic] in topics}

    async def _committed(self, group: str) -> Offsets:
        found = await self._client.list_consumer_group_offsets(f"{self._settings.topic_prefix}.{group}")
        return {partition: standing.offset for partition, standing in found.items()}

    async def _ends(self, topics: Iterable[str]) -> Offsets:
        partitions = [TopicPartition(topic, p) for topic in topics for p in self._partitions_of(topic)]
        ends: Offsets = await self._follower.end_offsets(partitions)
        return ends

    def _partitions_of(self, topic: str) -> set[int]:
        return self._follower.partitions_for_topic(topic) or set()


def _missing(ends: Offsets, reached: Offsets) -> int:
    return sum(max(0, end - reached.get(partition, 0)) for partition, end in ends.items())


class ArchiveOffsets:
    """How far the archive is; asked through one connection, since opening one takes longer than the answer."""

    def __init__(self, settings: Settings) -> None:
        self._paths = paths_of(settings)
        self._lake: duckdb.DuckDBPyConnection | None = None
        self._latest: Offsets = {}

    def read(self) -> Offsets:
        """Next offset of every partition that was landed; none before the archive exists. Blocking."""
        try:
            if self._lake is None:
                self._lake = open_reader(self._paths)
            rows = self._lake.execute("SELECT topic, kafka_partition, next_offset FROM raw.offsets").fetchall()
        except (TurntideError, duckdb.Error):
            return self._latest  # not created yet, or locked for a moment: the next look will tell
        self._latest = {TopicPartition(topic, partition): offset for topic, partition, offset in rows}
        return self._latest

    def close(self) -> None:
        """Release the connection."""
        if self._lake is not None:
            self._lake.close()


@asynccontextmanager
async def watching(
    settings: Settings, state: DemoState, *, emit: Callable[[OutputEvent], None]
) -> AsyncIterator[DemoWatch]:
    """A watch with its connections, from the beginning of every output topic.

    Raises:
        StoreUnavailable: The cluster does not answer.
    """
    names = [topic.full_name(settings.topic_prefix) for topic in _FOLLOWED]
    async with (
        consumer(settings.kafka, *names, auto_offset_reset="earliest") as follower,
        admin(settings.kafka) as client,
    ):
        if missing := {t.full_name(settings.topic_prefix) for t in REGISTRY.topics} - await follower.topics():
            raise StoreUnavailable(f"topics {', '.join(sorted(missing))} vanished: was the cluster reset?")
        watch = DemoWatch(settings, state, follower=follower, client=client, emit=emit)
        with closing(watch.archive):
            yield watch
