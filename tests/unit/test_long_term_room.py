"""Long-term memories: room for new ones, and where what was cut in two is found."""

from __future__ import annotations

from models.events.project_items import MemoryType
from models.policy.project import LongTermPolicy
from models.project.shards import shard_of
from tests.support.long_term_memories import Project

FACT = MemoryType.FACT


def test_what_begins_earlier_takes_no_room() -> None:
    """Nothing new is made, so nothing goes."""
    project = Project(LongTermPolicy(most=10))
    ids = [project.say(f"Fact {n}.", 10 + n, memory_type=FACT) for n in range(10)]
    project.told.clear()

    assert ids[5] == project.say("Fact 5.", 1, memory_type=FACT)
    assert (10, [(ids[5], "said_again")]) == (project.memories.count, project.told)


def test_room_is_made_where_the_new_one_lies() -> None:
    """As the state spreads memories by the suffixes of their ids."""
    project = Project(LongTermPolicy(most=10))
    for n in range(10):
        project.say(f"Fact {n}.", n, memory_type=FACT)
    asked: list[int] = []
    shard_ids = project.memories.shard_ids
    project.memories.shard_ids = lambda shard: asked.append(shard) or shard_ids(shard)  # type: ignore[func-returns-value,method-assign]
    new = project.say("Fact k.", 11, memory_type=FACT)

    assert shard_of(new.rpartition("-")[2]) == asked[0]


def test_what_is_cut_in_two_takes_room_too() -> None:
    """One statement may make several memories; there are never more than the most."""
    project = Project(LongTermPolicy(most=10))
    for n in range(9):
        project.say(f"Fact {n}.", n, memory_type=FACT)
    project.say("Use PostgreSQL.", 0, "database")
    project.say("Use PostgreSQL.", 6, "database", session="s2")
    project.say("Use MySQL.", 3, "database")

    assert 10 == project.memories.count
