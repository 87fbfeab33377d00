"""Time travel: when something held, and what was known when."""

from __future__ import annotations

from datetime import datetime, timedelta

from models.project.validity import is_valid, known_at, valid_at
from tests.support.fields import assert_fields
from tests.support.long_term_memories import DAY, Project
from tests.support.session_driver import NOON

SECOND = timedelta(seconds=1)


def pivoted() -> tuple[Project, datetime, datetime]:
    """PostgreSQL on day 0, MySQL on day 6; and when these became known."""
    project = Project()
    project.say("Use PostgreSQL.", 0, "database")
    first = project.now
    project.now += 10 * DAY
    project.say("Use MySQL.", 6, "database")
    return project, first, project.now


def test_the_answer_before_and_after_a_pivot_differs() -> None:
    """At the pivot itself the newer holds (project memory: valid until is outside)."""
    project, _, _ = pivoted()
    memories = [kept.memory for kept in project.memories.kept.values()]
    days = (-1.0, 0.0, 5.99, 6.0, 99.0)

    assert [[], ["Use PostgreSQL."], ["Use PostgreSQL."], ["Use MySQL."], ["Use MySQL."]] == [
        [memory.content for memory in valid_at(memories, NOON + day * DAY)] for day in days
    ]
    assert [False, True] == [is_valid(memories[0], NOON - SECOND), is_valid(memories[0], NOON)]


def test_what_was_known_then_is_another_question() -> None:
    """Before the newer one was heard of, the older held for day 9 too."""
    project, first, second = pivoted()
    memories = [kept.memory for kept in project.memories.kept.values()]

    def asked(at: datetime, known: datetime) -> list[str]:
        return [memory.content for memory in valid_at(memories, at, known)]

    assert [] == asked(NOON + 9 * DAY, first - SECOND)
    assert ["Use PostgreSQL."] == asked(NOON + 9 * DAY, first)
    assert ["Use PostgreSQL."] == asked(NOON + 9 * DAY, second - SECOND)
    assert ["Use MySQL."] == asked(NOON + 9 * DAY, second)


def test_a_late_message_was_not_known_before_it_came() -> None:
    """It lands in the past of the world, not of what was known."""
    project, _, second = pivoted()
    project.now += DAY
    project.say("Use SQLite.", 3, "database")
    memories = [kept.memory for kept in project.memories.kept.values()]
    day = NOON + 4 * DAY

    assert ["Use PostgreSQL."] == [memory.content for memory in valid_at(memories, day, second)]
    assert ["Use SQLite."] == [memory.content for memory in valid_at(memories, day, project.now)]


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
