"""The oracle: what state and outputs must be, from the log and the pure fold alone.

Reads `turns.v1` from its start to its present end and folds each partition as the sessions role does, without its
state, its offsets or its outputs; a record that breaks the fold becomes a dead letter, as there. What the role left
behind must be equal: state byte for byte, outputs id by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from aiokafka.structs import ConsumerRecord

from models.events import OutputEvent, Turn
from models.partition import Arrival, PartitionFold
from models.policy import Policy
from models.topics import TURNS
from streams.intake import Intake, unfoldable
from streams.kafka.client import read_to_end
from streams.ports import Embedder, TurnScorer
from streams.settings import Settings
from streams.state.memory import MemoryTable

_BATCH_RECORDS = 1_000


class Replayed(NamedTuple):
    """What a log amounts to.

    Attributes:
        entities: Partition → entity → part → bytes.
        outputs: Id → event, dead letters among them.
        turns: Turns folded.
        turn_keys: Session and number of every turn that could be used, each once.
    """

    entities: dict[int, dict[str, dict[str, bytes]]]
    outputs: dict[str, OutputEvent]
    turns: int
    turn_keys: set[tuple[str, int]]


class Replay:
    """Folds the records of one partition after another."""

    def __init__(self, policy: Policy, embedder: Embedder, scorer: TurnScorer) -> None:
        self._policy = policy
        self._intake = Intake(policy, embedder, scorer)
        self._tables: dict[int, MemoryTable] = {}
        self._outputs: dict[str, OutputEvent] = {}
        self._turns = 0
        self._turn_keys: set[tuple[str, int]] = set()

    def fold(self, partition: int, records: Sequence[ConsumerRecord]) -> None:
        """Fold records of a partition, in log order."""
        table = self._tables.setdefault(partition, MemoryTable())
        fold = PartitionFold(table.entities, self._policy)
        decoded = self._intake.take(records, above=fold.offset)
        self._keep(decoded.dead)
        events = (arrival.event for arrival in decoded.arrivals)
        self._turn_keys.update((event.session_id, event.turn) for event in events if isinstance(event, Turn))
        try:
            self._take(table, fold, decoded.arrivals)
        except Exception:  # noqa: BLE001 - as the role does it
            self._one_by_one(table, decoded.arrivals, {record.offset: record for record in records})

    def _one_by_one(
        self, table: MemoryTable, arrivals: Sequence[Arrival], records: Mapping[int, ConsumerRecord]
    ) -> None:
        """Set the records aside that break the fold, as the sessions role does."""
        fold = PartitionFold(table.entities, self._policy)
        for arrival in arrivals:
            try:
                self._take(table, fold, [arrival])
            except Exception as error:  # noqa: BLE001 - as the role does it
                self._keep([unfoldable(records[arrival.position.offset], error)])
                fold = PartitionFold(table.entities, self._policy)

    def _take(self, table: MemoryTable, fold: PartitionFold, arrivals: Sequence[Arrival]) -> None:
        for folded in fold.fold(arrivals):
            self._keep(folded.outputs)
            self._turns += folded.turns
            for entity, parts in folded.changed.items():
                table.put(entity, parts)

    def result(self) -> Replayed:
        """Everything folded so far."""
        entities = {number: table.entities for number, table in self._tables.items()}
        return Replayed(entities, self._outputs, self._turns, self._turn_keys)

    def _keep(self, events: Sequence[OutputEvent]) -> None:
        for event in events:
            self._outputs[event.id] = event


class Feed:
    """Takes records one by one, partition after partition, and folds them in batches.

    Args:
        replay: Folds.
        limit: Fold only the first so many records of each partition.
        progress: Told the number of records folded, batch by batch.
    """

    def __init__(
        self, replay: Replay, *, limit: int | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        self._replay = replay
        self._limit = limit
        self._progress = progress
        self._taken: Counter[int] = Counter()
        self._waiting: list[ConsumerRecord] = []

    def take(self, record: ConsumerRecord) -> None:
        """Take the next record."""
        if self._limit is not None and self._taken[record.partition] >= self._limit:
            return
        waiting = self._waiting
        if waiting and (record.partition != waiting[0].partition or len(waiting) >= _BATCH_RECORDS):
            self._fold()
        self._taken[record.partition] += 1
        self._waiting.append(record)

    def finish(self) -> Replayed:
        """Fold the rest."""
        if self._waiting:
            self._fold()
        return self._replay.result()

    def _fold(self) -> None:
        self._replay.fold(self._waiting[0].partition, self._waiting)
        self._progress(self._taken.total())
        self._waiting = []


async def replay_log(
    settings: Settings,
    policy: Policy,
    embedder: Embedder,
    scorer: TurnScorer,
    *,
    limit: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Replayed:
    """Fold the whole of `turns.v1`.

    Args:
        settings: Which cluster and prefix.
        policy: As the role had it, like embedder and scorer, else the bytes differ.
        embedder: Embeds.
        scorer: Scores.
        limit: Fold only the first so many records of each partition.
        progress: Told the number of records folded, batch by batch.

    Raises:
        StoreUnavailable: Kafka does not answer.
        ConfigurationError: There is no such topic.
    """
    feed = Feed(Replay(policy, embedder, scorer), limit=limit, progress=progress)
    async for record in read_to_end(settings.kafka, TURNS.full_name(settings.topic_prefix)):
        feed.take(record)
    return feed.finish()
