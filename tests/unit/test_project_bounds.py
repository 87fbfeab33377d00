"""A project whose everything is as large as it can be stays within `models.project.bounds`, and gives way in time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from models.events import MemoriesAccessed, MemoryType, OutputEvent, ProjectItemChanged, ProjectMemoryAdded, Role
from models.partition.commands import MemoryPartitionFold, commands_offset
from models.policy import Policy
from models.policy.project import LongTermPolicy, NarrativePolicy, ProjectPolicy, ShortTermPolicy
from models.project.bounds import largest_project_output_bytes, largest_project_part_bytes
from models.session.bounds import OUTPUT_RECORD_BYTES, STATE_WRITE_BYTES
from models.wire.codec import encode
from models.wire.envelope import tag_of
from tests.project_driver import NOON, Project
from tests.unit.test_app_bounds import largest
from tests.unit.test_bounds import written_bytes
from tests.user_partition import Entities, commands, keep, keep_result

WIDE, ESCAPED = "\N{GRINNING FACE}", "\x01"
_PARTS = {"m": "memory", "e": "episode", "k": "chunk", "p": "pending", "t": "message", "s": "subject", "w": "watch"}


def policies() -> dict[str, Policy]:
    """The default, and the largest: of a memory many revisions or long ones."""
    short, narrative = largest(ShortTermPolicy), largest(NarrativePolicy)
    long_term = largest(LongTermPolicy, history=16)
    many = largest(LongTermPolicy, content_chars=1_000)
    return {
        "default": Policy(),
        "long": Policy(projects=ProjectPolicy(short_term=short, narrative=narrative, long_term=long_term)),
        "many": Policy(projects=ProjectPolicy(short_term=short, narrative=narrative, long_term=many)),
    }


@pytest.mark.parametrize("name", policies())
def test_the_largest_policies_fit(name: str) -> None:
    """Every part into a write, every output into a record."""
    policy = policies()[name]

    assert {} == {n: size for n, size in largest_project_part_bytes(policy).items() if size > STATE_WRITE_BYTES}
    assert {} == {n: size for n, size in largest_project_output_bytes(policy).items() if size > OUTPUT_RECORD_BYTES}


def test_a_large_life_stays_within_the_bounds() -> None:
    """Long ids, texts that are long in every encoding, as many of everything as fit."""
    short = {"recent_messages": 4, "chunk_messages": 2, "max_chunks": 2, "message_chars": 400, "retention_turns": 2}
    project = Project(stores=True, short_term=short, narrative={"most": 3})
    project.ids = {"app_id": WIDE * 256, "project_id": ESCAPED * 256}
    for n in range(40):
        text = (
            f"We decided to use tool{n % 5} for {(WIDE, ESCAPED)[n % 2] * 300}. The build is broken. It is fixed now."
        )
        project.say(text, f"{WIDE * 255}{n % 3}", role=Role.USER, user_id=ESCAPED * 256)
        project.do(
            ProjectMemoryAdded, memory_type="fact", content=(ESCAPED, WIDE)[n % 2] * 900 + str(n), tags=[WIDE * 64]
        )
    parts, outputs = largest_project_part_bytes(project.policy), largest_project_output_bytes(project.policy)

    for entity, stored in project.stored.items():
        for part, value in stored.items():
            kind = "conversation" if "/conversation/" in entity and part == "head" else _PARTS.get(part[0], "head")
            assert len(value) <= parts[kind]
    for event in project.outputs:
        kind = event.kind if isinstance(event, ProjectItemChanged) else tag_of(type(event))
        assert len(encode(event)) <= outputs[kind]


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
    while commands_offset(entities) < read.position.offset:
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
