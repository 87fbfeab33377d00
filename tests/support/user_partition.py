"""A partition of a log folded as its role does it: what is kept, and what comes out."""

from collections.abc import Sequence
from typing import Any

from models.events import CommandEvent, OutputEvent, Position
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import PartitionFolded
from models.partition.sessions import PartitionFold
from models.wire.arrival import Command
from models.wire.codec import encode
from tests.support.entity_driver import Entities, keep_entities


def commands(*events: CommandEvent, first: int = 0) -> list[Command]:
    """Commands at successive offsets, appended at their event time."""
    return [Command(event, Position("commands", 5, first + n), event.timestamp) for n, event in enumerate(events)]


def keep(entities: Entities, fold: MemoryPartitionFold | PartitionFold, log: Sequence[Any]) -> list[OutputEvent]:
    """Fold and keep, as the role does; gives what came out, each result only once it is kept."""
    return [event for folded in fold.fold(log) for event in keep_result(entities, folded)]


def keep_result(entities: Entities, folded: PartitionFolded) -> list[OutputEvent]:
    """Keep one result; gives what comes out with it."""
    keep_entities(entities, folded.changed)
    return folded.outputs


def gather(found: dict[str, bytes], outputs: Sequence[OutputEvent]) -> None:
    """Outputs by id; a repeated id must say the same."""
    for event in outputs:
        assert found.setdefault(event.id, encode(event)) == encode(event)
