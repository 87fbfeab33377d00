"""Projects of one partition of commands: what takes more than one write, and in which of them something is due."""

from __future__ import annotations

from datetime import timedelta

from models.events import MemoriesAccessed, MemoryType, OutputEvent, ProjectItemChanged, ProjectMemoryAdded
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import folded_offset
from models.policy import Policy
from models.session.bounds import STATE_WRITE_BYTES
from tests.support.entity_driver import NOON, Entities
from tests.support.limits import WIDE, written_bytes
from tests.support.user_partition import commands, keep, keep_result


def test_accesses_of_more_than_a_write_takes_are_all_counted() -> None:
    """Each once, in several writes; a crash after each of them changes nothing."""
    entities: Entities = {}
    facts = [
        ProjectMemoryAdded(
            app_id="shop",
            project_id="web",
            timestamp=NOON,
            memory_type=MemoryType.FACT,
            content=f"{n}: " + WIDE * 900,
        )
        for n in range(900)
    ]
    added = keep(entities, MemoryPartitionFold(entities, Policy()), commands(*facts))
    ids = [event.item_id for event in added if isinstance(event, ProjectItemChanged)]
    (read,) = commands(MemoriesAccessed(app_id="shop", project_id="web", timestamp=NOON, ids=ids), first=len(facts))
    counted: list[int] = []
    written: list[int] = []
    while folded_offset(entities) < read.position.offset:
        result = next(MemoryPartitionFold(entities, Policy()).fold([read]))
        written.append(written_bytes(result))
        outputs = keep_result(entities, result)
        counted += [
            event.memory.access_count for event in outputs if isinstance(event, ProjectItemChanged) and event.memory
        ]

    assert [1] * 900 == counted
    assert 2 < len(written)
    assert max(written) < STATE_WRITE_BYTES / 2


def test_the_index_follows_the_projects_of_a_partition() -> None:
    """Which there are and for which a consolidation is due; the same after a recovery."""
    entities: Entities = {}
    events = [
        ProjectMemoryAdded(app_id=app, project_id="web", timestamp=NOON, memory_type=MemoryType.FACT, content="A fact.")
        for app in ("a", "b")
    ]
    fold = MemoryPartitionFold(entities, Policy())
    outputs: list[OutputEvent] = keep(entities, fold, commands(*events))
    again = MemoryPartitionFold(entities, Policy()).progress["project"]
    due = NOON + timedelta(days=1)

    assert outputs
    assert {"projects": 2, "project_memories": 2} == fold.progress["project"].totals == again.totals
    assert [] == again.due(due - timedelta(seconds=1))
    assert ["a", "b"] == [project.app_id for project in again.due(due)]
    assert fold.progress["project"].due(due) == again.due(due)
