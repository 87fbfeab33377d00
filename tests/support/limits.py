"""What a topic takes, and everything at its largest: for tests that hold folds against it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from models.entities import TOPIC_OF
from models.events import CommandEvent, OutputEvent
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import PartitionFolded
from models.policy import Policy
from models.wire.arrival import Command
from models.wire.codec import encode
from streams.state.changelog import keyed, records_of
from streams.state.memory import MemoryTable
from tests.support.user_partition import commands

WIDE = "\N{GRINNING FACE}"
ESCAPED = "\x01"
"""Six bytes in JSON."""


def largest(kind: type[Any], **given: Any) -> Any:
    """A section of the policy with every whole number at its maximum."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    numbers = {f.name: f.type.le for f in info.fields if isinstance(f.type, msgspec.inspect.IntType) and f.type.le}
    return kind(**numbers | given)


def too_large(output: Struct) -> bool:
    """Whether an output leaves no eighth of what its topic takes for key, headers and the batch."""
    return len(encode(output)) > TOPIC_OF[type(output)].max_message_bytes * 7 // 8


def written_bytes(result: PartitionFolded) -> int:
    """Size of its record batch, estimated upwards as the producer does."""
    return sum(record.size_bytes for record in records_of(keyed(result.changed), result.offset))


class Partition:
    """A partition of commands, kept as the role keeps it.

    Attributes:
        entities: Its state.
        results: Everything that was written.
    """

    def __init__(self, policy: Policy) -> None:
        self._table = MemoryTable()
        self._fold = MemoryPartitionFold(self._table.entities, policy)
        self.results: list[PartitionFolded] = []

    @property
    def entities(self) -> Mapping[str, Mapping[str, bytes]]:
        """Entity → part → bytes."""
        return self._table.entities

    @property
    def outputs(self) -> Iterator[OutputEvent]:
        """Everything that came out."""
        return (output for result in self.results for output in result.outputs)

    def take(self, events: Iterable[CommandEvent]) -> list[OutputEvent]:
        """Fold events in one batch; gives what came out."""
        log: Sequence[Command] = commands(*events, first=self._fold.offset + 1)
        outputs: list[OutputEvent] = []
        for result in self._fold.fold(log):
            outputs += result.outputs
            self.results.append(result)
            self._table.apply(keyed(result.changed), offset=result.offset, applied=0, tail=None, now_ms=0)
        return outputs
