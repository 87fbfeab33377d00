"""Reading along: what Turntide emits, how far each role is, and whether all of them have caught up."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing

import duckdb
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from jobs.demo.play import DemoState
from models.entities import REGISTRY
from models.errors import StoreUnavailable, TurntideError
from models.events import OutputEvent
from models.events.topics import COMMANDS, DEAD_LETTERS, REQUESTS, TURNS
from models.wire.codec import decode_output
from streams.archive.catalog import LakePaths, open_reader, paths_of
from streams.kafka.client import admin, consumer
from streams.settings import Settings

_FOLLOWED = tuple(
    topic
    for topic in REGISTRY.archived_topics
    if topic.owner in {"sessions", "memory"} and topic not in {COMMANDS, DEAD_LETTERS}
)
"""All outputs of the roles sessions and memory."""
SOURCES = {
    "sessions": (TURNS,),
    "memory": (COMMANDS,),
    "enrich": (REQUESTS,),
    "index": REGISTRY.indexed_topics,
}
"""Role, which is also its consumer group → what it reads. The archive keeps its offsets itself."""
_POLL_MS = 100
_MEASURE_EVERY_S = 1.0

Offsets = dict[TopicPartition, int]


class FellBehind(TurntideError):  # noqa: N818 - it says what happened
    """The play is over, and a role did not finish its part in time."""


class DemoWatch:
    """Follows the output topics into the demo's state, and measures how far the roles are behind.

    Args:
        settings: Cluster, prefix and data directory.
        state: Where what is read goes.
        emit: Told each new event.
        follower: Reads the output topics from their beginning.
        client: Asks for the offsets of consumer groups.
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
        self._archived: Offsets = {}
        self._lag: tuple[float, dict[str, int]] = (0.0, {})
        """When the latest measurement was begun, monotonic seconds, and who was behind by how many records."""

    async def follow(self) -> None:
        """Fold every output event into the state, for ever."""
        while True:
            for partition, records in (await self._follower.getmany(timeout_ms=_POLL_MS)).items():
                self._read[partition] = records[-1].offset + 1
                for value in (record.value for record in records if record.value is not None):
                    event = decode_output(self._topics[partition.topic], value)
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
                lacking = ", ".join(f"{who} ({count} records)" for who, count in self._lag[1].items())
                raise FellBehind(
                    f"{within_s:g} s after the last turn these were not finished: {lacking}. Their logs are in "
                    f"{self._settings.data_dir / 'logs'}"
                )
            await asyncio.sleep(_MEASURE_EVERY_S)

    async def _behind(self) -> dict[str, int]:
        """Who has how many records still to do; those that have none are left out."""
        archived = await asyncio.to_thread(_archived, paths_of(self._settings))
        self._archived = archived or self._archived
        reached = {role: (topics, await self._committed(role)) for role, topics in SOURCES.items()}
        reached |= {"archive": (REGISTRY.archived_topics, self._archived), "this view": (_FOLLOWED, self._read)}
        # The ends last: what arrives between the questions counts as behind, never as done. A role commits after its
        # outputs are written, so when nobody is behind no answer is on its way back to commands.v1 either.
        public = [name for name, topic in self._topics.items() if topic.public]
        partitions = [
            TopicPartition(name, p) for name in public for p in self._follower.partitions_for_topic(name) or ()
        ]
        ends: Offsets = await self._follower.end_offsets(partitions)
        behind = {
            who: sum(
                max(0, end - offsets.get(partition, 0))
                for partition, end in ends.items()
                if self._topics[partition.topic] in topics
            )
            for who, (topics, offsets) in reached.items()
        }
        self._state.lag, self._state.archived = behind["sessions"], sum(self._archived.values())
        return {who: count for who, count in behind.items() if count}

    async def _committed(self, group: str) -> Offsets:
        found = await self._client.list_consumer_group_offsets(f"{self._settings.topic_prefix}.{group}")
        return {partition: committed.offset for partition, committed in found.items()}


def _archived(paths: LakePaths) -> Offsets | None:
    """Next offset of every partition that was landed. Blocking; None where the archive cannot be read at the moment."""
    try:
        with closing(open_reader(paths)) as lake:
            rows = lake.execute("SELECT topic, kafka_partition, next_offset FROM raw.offsets").fetchall()
    except (TurntideError, duckdb.Error):
        return None  # not created yet, or locked: the next look will tell
    return {TopicPartition(topic, partition): offset for topic, partition, offset in rows}


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
            raise StoreUnavailable(f"topics {', '.join(sorted(missing))} no longer exist: was the cluster reset?")
        yield DemoWatch(settings, state, follower=follower, client=client, emit=emit)
