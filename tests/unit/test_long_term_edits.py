"""What people do to long-term memories by hand."""

import msgspec
import pytest

from models.events.project_items import MemoryType
from models.policy.project import LongTermPolicy
from tests.support.fields import assert_fields
from tests.support.long_term_memories import DAY, Project
from tests.support.session_driver import NOON

FACT = MemoryType.FACT


def test_a_content_put_right_leaves_a_revision() -> None:
    """The id stays; subject and validity too; the newer content is what is compared from now on."""
    project = Project()
    memory_id = project.say("Use PostgreSQL 15.", 0, "database")
    outcome = project.edit(memory_id, content="Use PostgreSQL 16 with pgvector.", importance=0.9)
    memory = project.memory(memory_id)

    assert ("done", "") == outcome
    assert [("Use PostgreSQL 15.", 0.7)] == [(past.content, past.importance) for past in memory.history]
    assert (0.9, 8, project.now) == (memory.importance, memory.tokens, memory.recorded_at)
    assert memory_id == project.say("use PostgreSQL 16 with pgvector", 2, "database", session="s2")
    assert ("unchanged", "") == project.edit(memory_id, content=memory.content)

    again = project.say("Use PostgreSQL 15.", 3, "database")

    assert (memory_id, again) == (memory_id, project.memory(memory_id).closed_by)


def test_expired_and_reopened() -> None:
    """Both leave a revision; reopened it has no end."""
    project = Project()
    memory_id = project.say("The freeze is on.", 0, memory_type=FACT)

    assert "done" == project.edit(memory_id, valid_until=NOON + 5 * DAY)[0]
    assert [("The freeze is on.", 0, 5)] == project.intervals()
    assert "done" == project.edit(memory_id, reopened=True)[0]
    assert [("The freeze is on.", 0, None)] == project.intervals()
    assert [None, NOON + 5 * DAY] == [past.valid_until for past in project.memory(memory_id).history]


def test_what_was_superseded_wrongly_is_set_free() -> None:
    """Reopened, or the relationship taken back: it leaves its subject, and nothing of it closes it again."""
    for by_relationship in (False, True):
        project = Project()
        older = project.say("Use Redis for carts.", 0, "database")
        newer = project.say("Use MySQL for orders.", 3, "database")
        if by_relationship:
            outcome = project.relate(newer, older, "supersedes", None)
        else:
            outcome = project.edit(older, reopened=True)

        assert "done" == outcome[0]
        assert_fields(project.memory(older), subject="", valid_until=None, closed_by="")
        assert set() == project.edges()

        project.say("Use SQLite for orders.", 5, "database")

        assert [None, 5, None] == [end for _, _, end in project.intervals()]


def test_another_beginning_moves_what_it_supersedes() -> None:
    """Also past another decision: the intervals are those of the times as they are now."""
    project = Project()
    project.say("Use PostgreSQL.", 0, "database")
    project.say("Use MySQL.", 4, "database")
    moved = project.say("Use SQLite.", 6, "database")

    assert "done" == project.edit(moved, valid_from=NOON + 2 * DAY)[0]
    assert [("Use PostgreSQL.", 0, 2), ("Use SQLite.", 2, 4), ("Use MySQL.", 4, None)] == project.intervals()
    assert {
        ("Use SQLite.", "supersedes", "Use PostgreSQL."),
        ("Use MySQL.", "supersedes", "Use SQLite."),
    } == project.edges()


def test_archived_and_restored() -> None:
    """Neither touches validity; a restored one counts as accessed just now."""
    project = Project()
    memory_id = project.say("Use Go.", 0)
    project.now += 90 * DAY
    project.told.clear()

    assert "done" == project.edit(memory_id, archived=True)[0]
    assert project.memory(memory_id).archived
    assert "done" == project.edit(memory_id, archived=False)[0]
    assert_fields(project.memory(memory_id), archived=False, last_accessed_at=project.now, decay_factor=1.0, history=[])
    assert [(memory_id, "archived"), (memory_id, "restored")] == project.told


@pytest.mark.parametrize(
    ("fields", "outcome", "detail"),
    [
        ({"valid_until": NOON}, "invalid", "valid_until must be later than valid_from"),
        ({"valid_from": NOON + 8 * DAY}, "invalid", "valid_until must be later than valid_from"),
        ({"valid_until": NOON + 9 * DAY}, "invalid", "reopen it first"),
        ({"valid_until": NOON + DAY, "reopened": True}, "invalid", "exclude each other"),
        ({"content": " "}, "invalid", "delete the memory instead"),
        ({"content": "x" * 1_001}, "too_long", "at most 1000"),
        ({"content": "go with MySQL"}, "invalid", "says so already"),
        ({"tags": [str(n) for n in range(9)]}, "too_many", "at most 8"),
    ],
)
def test_what_cannot_be_edited_is_refused(fields: dict[str, object], outcome: str, detail: str) -> None:
    """It says why, and nothing changes."""
    project = Project()
    older = project.say("Use PostgreSQL.", 0, "database")
    project.say("Go with MySQL.", 3, "database")
    project.say("Go with MySQL.", 1, "shop floor", session="s2")
    before = dict(project.memories.kept)
    refused = project.edit(older, **fields)

    assert outcome == refused[0]
    assert detail in refused[1]
    assert before == project.memories.kept


def three(policy: LongTermPolicy | None = None) -> tuple[Project, str, str, str]:
    """Three memories that have nothing to do with each other."""
    project = Project(policy)
    return project, project.say("Use Go.", 0), project.say("Write tests.", 1), project.say("Ship weekly.", 2)


@pytest.mark.behaviour("project-24")
def test_a_relationship_by_any_name() -> None:
    """Again with another strength it is the same one; without a strength it goes."""
    project, one, other, _ = three()

    assert "done" == project.relate(one, other, "inspired_by", 0.5)[0]
    assert "done" == project.relate(one, other, "inspired_by", 0.7)[0]
    assert [("inspired_by", 0.7, "hand")] == [
        (edge.type, edge.strength, edge.origin) for edge in project.memory(one).relationships
    ]
    assert "unchanged" == project.relate(one, other, "inspired_by", 0.7)[0]
    assert "done" == project.relate(one, other, "inspired_by", None)[0]
    assert ((), set()) == (project.memories.kept[other].incoming, project.edges())
    assert "unchanged" == project.relate(one, other, "inspired_by", None)[0]


@pytest.mark.behaviour("project-24")
def test_cycles_of_dependence_are_refused() -> None:
    """With the cycle by its ids; other names may close one. So are itself, and one that is gone."""
    project, one, other, third = three()
    project.relate(one, other, "depends_on")
    project.relate(other, third, "depends_on")

    assert ("invalid", f"depends_on would close a cycle: {third} → {one} → {other} → {third}") == project.relate(
        third, one, "depends_on"
    )
    assert "done" == project.relate(third, one, "part_of")[0]
    assert ("invalid", "a memory has no relationship to itself") == project.relate(one, one, "part_of")
    assert ("not_found", "00000000-00000000 is not kept") == project.relate(one, "00000000-00000000", "part_of")


def test_superseded_by_hand() -> None:
    """It closes an older memory of any subject, until the relationship or its source goes."""
    project, one, other, _ = three()

    assert "invalid" == project.relate(one, other, "supersedes")[0]
    assert "done" == project.relate(other, one, "supersedes")[0]
    assert (NOON + DAY, other) == (project.memory(one).valid_until, project.memory(one).closed_by)
    assert ("invalid", "valid_from would turn round a relationship supersedes that was made by hand") == project.edit(
        other, valid_from=NOON
    )

    project.relate(other, one, "supersedes", None)

    assert None is project.memory(one).valid_until

    project.relate(other, one, "supersedes")
    project.long_term().delete(other, "deleted")

    assert (None, "") == (project.memory(one).valid_until, project.memory(one).closed_by)


def test_what_comes_back_beside_the_same_content_strengthens_it() -> None:
    """Once, however often; an interval of its own stays a memory of its own; what is kept does not become another's."""
    project, saved = Project(), Project()
    known = project.say("Use Go.", 2)
    other = saved.say("Use Go!", 1, session="s2")
    past = saved.say("Use Go!", 0, session="s3", until=0.5)
    rust = project.say("Use Rust.", 2)
    wrong = msgspec.structs.replace(project.memory(rust), content="use go")
    memories = [saved.memory(other), saved.memory(other), saved.memory(past), wrong]
    outcomes = [project.long_term().put_back(each) for each in memories]

    assert ["done", "unchanged", "done", "invalid"] == outcomes
    assert {known, past, rust} == set(project.memories.kept)
    assert ["s2", "s1"] == [each.conversation_id for each in project.memory(known).sources]
