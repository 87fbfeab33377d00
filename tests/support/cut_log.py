"""A log of commands that is cut anywhere, done again and taken up from nothing: what comes of it stays the same."""

from collections.abc import Sequence
from copy import deepcopy
from datetime import timedelta
from itertools import islice

import pytest
from msgspec import structs

from models.events import OutputEvent, Position
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import PARTITION_ENTITY
from models.policy import Policy
from models.wire.arrival import Command
from tests.support.entity_driver import NOON, Entities
from tests.support.user_partition import gather, keep, keep_result

FAR_AHEAD = NOON + timedelta(days=9)


def assert_cuts_change_nothing(
    log: Sequence[Command], policy: Policy, cuts: Sequence[int], rewinds: Sequence[int], *, small_chunks: bool
) -> None:
    """One call over the whole log equals many, each by a fresh fold, some done again as their state was lost.

    What is shown of the state, kept from write to write, is the same when it is read from the state anew.

    Args:
        log: Of one partition.
        policy: Of the folds.
        cuts: Sizes of the batches, over and over.
        rewinds: How far before it each batch begins, likewise; at six its first results were kept before a crash,
            beyond it the state of all was lost, too.
        small_chunks: Whether results are cut small.
    """
    whole: Entities = {}
    whole_outputs: dict[str, bytes] = {}
    fold = MemoryPartitionFold(whole, policy)
    gather(whole_outputs, keep(whole, fold, log))

    cut: Entities = {}
    cut_outputs: dict[str, bytes] = {}
    position, step = 0, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.partition.log_fold.CHUNK_STATE_BYTES", 1_000 if small_chunks else 2**21)
        while position < len(log):
            size, rewind = cuts[step % len(cuts)], rewinds[step % len(rewinds)]
            batch = log[max(0, position - rewind) : position + size]
            if rewind == 6:
                for result in islice(MemoryPartitionFold(cut, policy).fold(batch), size):
                    gather(cut_outputs, keep_result(cut, result))
            if rewind > 6:
                lost = deepcopy(cut)
                gather(cut_outputs, keep(lost, MemoryPartitionFold(lost, policy), batch))
            gather(cut_outputs, keep(cut, MemoryPartitionFold(cut, policy), batch))
            position, step = position + size, step + 1

    assert cut == whole
    assert cut_outputs == whole_outputs
    anew = MemoryPartitionFold(whole, policy)
    for kind, progress in fold.progress.items():
        assert anew.progress[kind].totals == progress.totals
        assert anew.progress[kind].due(FAR_AHEAD) == progress.due(FAR_AHEAD)


def come_of(log: Sequence[Command], policy: Policy) -> tuple[Entities, list[OutputEvent]]:
    """What a log comes to but for places in it: states without the partition's clock, outputs without id and source."""
    entities: Entities = {}
    outputs = keep(entities, MemoryPartitionFold(entities, policy), log)
    entities.pop(PARTITION_ENTITY, None)
    return entities, [structs.replace(output, id="", source=Position("", 0, 0)) for output in outputs]
