"""Residual records of a subject in a log, counted record by record in the order of the log. Pure."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from aiokafka import TopicPartition
from msgspec import Struct, field, structs

from models.entities import REGISTRY
from models.events import ErasedStore, topics

PUBLIC = tuple(topic for topic in REGISTRY.topics if topic.public and topic is not topics.ERASURES)
"""All public topics but that of erasures, which is cleared when the proof is written."""
COMPACTED = tuple(topic for topic in PUBLIC if topic.cleanup is topics.Cleanup.COMPACT)
CHANGELOGS = (topics.SESSION_STATE, topics.MEMORY_STATE)
SPOKEN_IN = (topics.TURNS, topics.PROFILES, topics.COMMANDS, topics.FACTS, topics.USER_EPISODES, topics.PROJECTS)
"""Topics with sessions and their speakers."""
TYING = (topics.MEMORIES, topics.FACTS, topics.USER_EPISODES, topics.REQUESTS, topics.PROJECTS)
"""Topics whose events link other keys to the subject (`Subject.follow`)."""
INDEXED = tuple(topic for topic in REGISTRY.indexed_topics if topic is not topics.ERASURES)
"""Topics that the index reads, except erasures."""
ARCHIVED = REGISTRY.archived_topics


_NEVER_MS = 10 * 365 * 86_400_000
"""Kafka expresses "never" as a number of milliseconds: a time beyond ten years counts as never."""


class ResidualRecord(NamedTuple):
    """The fields of a record that are counted."""

    offset: int
    appended_at: datetime
    owned: bool
    """Whether the record is the subject's. Else it also contains others' data, and only its past versions count."""


class Past(Struct):
    """Number of records that are in the log but not current for any key, and when the last was written."""

    count: int = 0
    newest: datetime = datetime.min.replace(tzinfo=UTC)

    def add(self, record: ResidualRecord) -> None:
        """Count a record."""
        self.count += 1
        self.newest = max(self.newest, record.appended_at)


class ResidualRecords(Struct):
    """Records of the subject on one topic.

    Attributes:
        looked_at: Records read.
        read_to: Of a public topic: partition → offset after the last record read.
        latest: By key, the last record of the key, if it has a value.
        past: Records that the broker still has to remove: not the last of their key, or on a topic without keys.
        keys: Keys of all these records. A key may identify a person too: that of a fact does.
        nulls: Number of records without a value that have such a key.
        lasting_nulls: Likewise, of those that only retention removes (`streams.erase.purge`).
    """

    looked_at: int = 0
    read_to: dict[TopicPartition, int] = field(default_factory=dict)
    keys: set[bytes | None] = field(default_factory=set)
    nulls: Counter[TopicPartition] = field(default_factory=Counter)
    lasting_nulls: int = 0
    latest: defaultdict[TopicPartition, dict[bytes | None, ResidualRecord]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    past: defaultdict[TopicPartition, Past] = field(default_factory=lambda: defaultdict(Past))

    def take(self, place: TopicPartition, key: bytes | None, record: ResidualRecord | None) -> None:
        """Count a record of a compacted topic; None if it has no value, or is not the subject's."""
        before = self.latest[place].pop(key, None)
        if before is not None:
            self.past[place].add(before)
        if record is not None:
            self.latest[place][key] = record
            self.keys.add(key)

    def take_null(self, place: TopicPartition, key: bytes | None) -> None:
        """Count a record without a value."""
        self.take(place, key, None)
        self.nulls[place] += key in self.keys

    @property
    def live(self) -> dict[TopicPartition, dict[bytes | None, int]]:
        """By partition and key, the offset of the current record."""
        found = {
            place: {key: record.offset for key, record in records.items() if record.owned}
            for place, records in self.latest.items()
        }
        return {place: keys for place, keys in found.items() if keys}

    @property
    def live_count(self) -> int:
        """Number of keys with a current record."""
        return sum(map(len, self.live.values()))

    @property
    def past_count(self) -> int:
        """Number of records that the broker still has to remove."""
        return sum(past.count for past in self.past.values())

    @property
    def places(self) -> set[TopicPartition]:
        """Partitions with records left."""
        return self.past.keys() | self.live.keys() | (+self.nulls).keys()

    @property
    def null_count(self) -> int:
        """Number of keys of removed records that are still in the log."""
        return self.nulls.total() + self.lasting_nulls

    @property
    def is_clean(self) -> bool:
        """Whether the log has nothing left to remove, including keys but not `lasting_nulls`."""
        return not self.past_count and not self.nulls.total()

    @property
    def newest(self) -> datetime | None:
        """When the last of `past` was written."""
        return max((past.newest for past in self.past.values()), default=None)


def expiry(topic: topics.Topic, newest: datetime | None, config: Mapping[str, str]) -> datetime | None:
    """Latest time at which the broker removes records written up to `newest`, on a topic with retention by time.

    A log file is removed as a whole, so its first record waits for its last one (`segment.ms`).
    """
    kept, segment_ms = _promised(config, "retention.ms"), int(config.get("segment.ms", "0"))
    if topic.cleanup is not topics.Cleanup.DELETE or newest is None or kept is None:
        return None
    return newest + kept + timedelta(milliseconds=min(segment_ms, _NEVER_MS))


class Compacted(NamedTuple):
    """Latest time at which compaction has removed the records replaced by now; None if it is unknown.

    Each partition must get new records meanwhile: otherwise Kafka neither closes nor cleans its file.
    """

    values: datetime | None
    keys: datetime | None
    """Null records are removed by the second cleaning, `delete.retention.ms` after the first."""


def compacted_by(now: datetime, config: Mapping[str, str]) -> Compacted:
    """When compaction has removed the records replaced by now; each cleaning may take `max.compaction.lag.ms`."""
    lag, retention = _promised(config, "max.compaction.lag.ms"), _promised(config, "delete.retention.ms")
    if lag is None or retention is None:
        return Compacted(None, None)
    return Compacted(now + lag + retention, now + 2 * lag + retention)


def _promised(config: Mapping[str, str], name: str) -> timedelta | None:
    milliseconds = int(config.get(name, "-1"))
    return timedelta(milliseconds=milliseconds) if 0 <= milliseconds < _NEVER_MS else None


class Tally:
    """Entries of a subject found by store, over all attempts of one erasure in this process.

    An interrupted attempt has already removed entries: the proof counts from the first one on.
    """

    def __init__(self) -> None:
        self._found: dict[str, int] = {}
        self._removed: dict[str, int] = {}

    def found(self, store: str, entries: int) -> None:
        """Record how many entries of the subject a store has now."""
        self._found[store] = max(self._found.get(store, 0), entries)

    def left(self, store: str, *, looked_at: int, remaining: int, expires_at: datetime | None = None) -> ErasedStore:
        """Line of the proof for a store: entries left, against those found in it."""
        return ErasedStore(
            store=store,
            looked_at=looked_at,
            removed=max(0, self._found.get(store, 0) - remaining),
            remaining=remaining,
            expires_at=expires_at if remaining else None,
        )

    def erased(self, stores: list[ErasedStore]) -> list[ErasedStore]:
        """Lines of stores that count by themselves, with the entries that earlier attempts removed."""
        counted = []
        for each in stores:
            self._removed[each.store] = self._removed.get(each.store, 0) + each.removed
            counted.append(structs.replace(each, removed=self._removed[each.store]))
        return counted


def stores_of(
    topic: topics.Topic, residual: ResidualRecords, tally: Tally, config: Mapping[str, str], now: datetime
) -> list[ErasedStore]:
    """A topic's lines of the proof: current records by key, and others that are still in the log."""
    looked_at, (by_key, in_log, keys) = residual.looked_at, names_of(topic)
    if topic.cleanup is topics.Cleanup.DELETE:
        expires_at = expiry(topic, residual.newest, config)
        return [tally.left(by_key, looked_at=looked_at, remaining=residual.past_count, expires_at=expires_at)]
    gone_by = compacted_by(now, config)
    lines = [
        tally.left(by_key, looked_at=looked_at, remaining=residual.live_count),
        tally.left(in_log, looked_at=looked_at, remaining=residual.past_count, expires_at=gone_by.values),
    ]
    if residual.null_count:
        lines.append(tally.left(keys, looked_at=looked_at, remaining=residual.null_count, expires_at=gone_by.keys))
    return lines


def names_of(topic: topics.Topic) -> tuple[str, str, str]:
    """Names of a topic's lines: by key (of a changelog: the state), in a compacted log, and keys of removed records."""
    by_key = f"topic {topic.name}" if topic.public else f"state {topic.owner}"
    return by_key, f"log {topic.name}", f"keys {topic.name}"


def count_found(topic: topics.Topic, residual: ResidualRecords, tally: Tally) -> None:
    """Record what a topic has before the erasure removes anything."""
    by_key, in_log, _ = names_of(topic)
    tally.found(by_key, residual.past_count if topic.cleanup is topics.Cleanup.DELETE else residual.live_count)
    tally.found(in_log, residual.live_count + residual.past_count)
