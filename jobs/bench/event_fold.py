"""The sessions role's own fold, one turn at a time over state in memory, for contenders that work per event.

They read state from memory and write it to their durable store: what a look-up in the store would cost is left out,
in their favour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from aiokafka.structs import ConsumerRecord

from models.events import SessionOutput
from models.partition import PARTITION_ENTITY, PartitionFold
from models.risk.scorer import RuleScorer
from streams.intake import Intake
from streams.kafka.tables import PartitionTable
from streams.settings import Settings
from streams.wiring import embedder_of, policy_of


class EventFolded(NamedTuple):
    """What one turn amounts to.

    Attributes:
        outputs: In order.
        changed: Session → part → bytes, None to delete. The partition's clock is left out, in the contender's favour.
    """

    outputs: list[SessionOutput]
    changed: dict[str, Mapping[str, bytes | None]]


class EventFold:
    """Folds single records of any partition, each partition in log order."""

    def __init__(self, settings: Settings) -> None:
        self._policy = policy_of(settings)
        self._intake = Intake(self._policy, embedder_of(settings), RuleScorer())
        self._partitions: dict[int, tuple[PartitionTable, PartitionFold]] = {}

    def fold(self, record: ConsumerRecord) -> EventFolded:
        """Fold a record; one that was folded before changes nothing."""
        if record.partition not in self._partitions:
            table = PartitionTable()
            self._partitions[record.partition] = table, PartitionFold(table.entities, self._policy)
        table, fold = self._partitions[record.partition]
        result = EventFolded([], {})
        for folded in fold.fold(self._intake.take([record]).arrivals):
            for entity, parts in folded.changed.items():
                table.put(entity, parts)
                if entity != PARTITION_ENTITY:
                    result.changed[entity] = parts
            result.outputs.extend(folded.outputs)
        return result

    def whole(self, partition: int, session_id: str) -> dict[str, bytes]:
        """All parts of a session, as a store that has one value per key must write them; empty if it is gone."""
        return self._partitions[partition][0].entities.get(session_id, {})


def record_of(
    *, topic: str, partition: int, offset: int, timestamp_ms: int, key: bytes, value: bytes
) -> ConsumerRecord:
    """A record as aiokafka has it, from what another client hands over."""
    return ConsumerRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=timestamp_ms,
        timestamp_type=1,
        key=key,
        value=value,
        checksum=None,
        serialized_key_size=len(key),
        serialized_value_size=len(value),
        headers=(),
    )
