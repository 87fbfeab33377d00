"""Consolidation of long-term memories, step by step; time travel: when something held, and what was known when."""

from datetime import datetime, timedelta

import pytest

from models.events.project_items import MemoryType, ProjectMemory
from models.policy.project import LongTermPolicy, ProjectPolicy
from models.project.consolidation import step
from models.project.state import Consolidation
from models.project.validity import is_valid, known_at, versions
from models.retrieval.candidates import Candidates
from tests.support.fields import assert_fields
from tests.support.long_term_memories import DAY, Project
from tests.support.session_driver import NOON

FACT = MemoryType.FACT


def valid_at(memories: list[ProjectMemory], at: datetime, known: datetime | None = None) -> list[ProjectMemory]:
    """Those that held at a time; by what was known at another, if given."""
    candidates = Candidates(ProjectPolicy())
    for memory in memories:
        candidates.put(memory, versions(memory))
    return (candidates if known is None else candidates.known_by(known)).held(at)


def consolidated(project: Project, most: int = 200) -> tuple[Consolidation, int]:
    """A whole run, and its steps."""
    run, steps, done = Consolidation(run=1, cause="asked", started_at=project.now), 0, False
    policy = ProjectPolicy(long_term=project.policy)
    while not done:
        done = step(project.long_term(), run, policy, most)
        steps += 1
    return run, steps


@pytest.mark.behaviour("project-07", "project-18")
def test_old_and_faded_memories_are_archived() -> None:
    """Older than 30 days and importance × decay below 0.3 (project memory); what is used or important stays."""
    project = Project()
    faded = project.say("The build takes long.", 0, memory_type=FACT)
    important = project.say("Ship in May.", 0, memory_type=MemoryType.GOAL)
    used = project.say("The API has a cache.", 0, memory_type=FACT)
    project.now += 31 * DAY
    fresh = project.say("The cat is black.", 31, memory_type=FACT)
    project.long_term().accessed(used, 3, project.now)
    project.told.clear()
    run, _ = consolidated(project)

    assert [faded] == run.archived_ids
    assert {faded: True, important: False, used: False, fresh: False} == {
        name: kept.memory.archived for name, kept in project.memories.kept.items()
    }
    assert_fields(run, looked_at=4, archived=1, decay_updated=2, tokens_reclaimed=project.memory(faded).tokens)
    assert [(faded, "archived"), (important, "decayed")] == sorted(project.told, key=lambda each: each[1])
    assert 0.48 < project.memory(important).decay_factor < 0.5


def test_decisions_in_force_are_not_archived() -> None:
    """However long ago; one that another superseded is."""
    project = Project()
    before, in_force = [
        project.say(f"We use {name}.", day, "database") for day, name in enumerate(("Oracle", "SQLite"))
    ]
    project.now += 400 * DAY
    run, _ = consolidated(project)

    assert ([before], False) == (run.archived_ids, project.memory(in_force).archived)


@pytest.mark.behaviour("project-19")
def test_a_restored_memory_stays_for_a_while() -> None:
    """And one that is said again comes back."""
    project = Project()
    restored = project.say("The build takes long.", 0, memory_type=FACT)
    said = project.say("The cat is black.", 0, memory_type=FACT)
    project.now += 40 * DAY
    consolidated(project)
    project.edit(restored, archived=False, importance=0.1)
    project.say("The cat is black.", 41, memory_type=FACT)
    project.now += DAY
    run, _ = consolidated(project)

    assert (0, False, False) == (run.archived, project.memory(restored).archived, project.memory(said).archived)


def test_a_policy_that_allows_fewer_displaces() -> None:
    """Archived ones first."""
    project = Project()
    for n in range(40):
        project.say(f"Fact {n} of many.", 0, memory_type=FACT)
    project.policy = LongTermPolicy(most=10)
    run, _ = consolidated(project)

    assert (10, 30) == (project.memories.count, run.displaced)
    assert 30 == sum(cause == "displaced" for _, cause in project.told)


SECOND = timedelta(seconds=1)


def pivoted() -> tuple[Project, datetime, datetime]:
    """PostgreSQL on day 0, MySQL on day 6; and when these became known."""
    project = Project()
    project.say("Use PostgreSQL.", 0, "database")
    first = project.now
    project.now += 10 * DAY
    project.say("Use MySQL.", 6, "database")
    return project, first, project.now


@pytest.mark.behaviour("project-23")
def test_the_answer_before_and_after_a_pivot_differs() -> None:
    """At the pivot itself the newer holds (project memory: valid until is outside).

    What was known then is another question: before the newer one was heard of, the older held for day 9 too.
    """
    project, first, second = pivoted()
    memories = [kept.memory for kept in project.memories.kept.values()]
    days = (-1.0, 0.0, 5.99, 6.0, 99.0)

    assert [[], ["Use PostgreSQL."], ["Use PostgreSQL."], ["Use MySQL."], ["Use MySQL."]] == [
        [memory.content for memory in valid_at(memories, NOON + day * DAY)] for day in days
    ]
    assert [False, True] == [is_valid(memories[0], NOON - SECOND), is_valid(memories[0], NOON)]
    assert [[], ["Use PostgreSQL."], ["Use PostgreSQL."], ["Use MySQL."]] == [
        [memory.content for memory in valid_at(memories, NOON + 9 * DAY, known)]
        for known in (first - SECOND, first, second - SECOND, second)
    ]


def test_a_memory_as_it_was_known() -> None:
    """Content, importance, end and relationships of then, and the history up to then."""
    project = Project()
    memory_id = project.say("Use PostgreSQL 15.", 0, "database")
    born = project.now
    project.edit(memory_id, content="Use PostgreSQL 16.", importance=0.9)
    edited = project.now
    other = project.say("Use Go.", 1)
    project.relate(memory_id, other, "part_of")
    project.edit(memory_id, valid_until=NOON + 4 * DAY)
    memory = project.memory(memory_id)
    then, later = known_at(memory, born), known_at(memory, edited)

    assert then is not None
    assert later is not None
    assert ("Use PostgreSQL 15.", 0.7, None, []) == (then.content, then.importance, then.valid_until, then.history)
    assert_fields(later, content="Use PostgreSQL 16.", importance=0.9, valid_until=None)
    assert 1 == len(later.history)
    assert ([], [], 1) == (then.relationships, later.relationships, len(memory.relationships))
    assert memory == known_at(memory, project.now)
    assert None is known_at(memory, born - SECOND)
