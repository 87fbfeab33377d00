"""Long-term memories: de-duplicated, superseded, contradicted, forgotten."""

from datetime import timedelta

import msgspec
import pytest

from models.events.ids import sortable_id
from models.events.project_items import MemorySource, MemoryType
from models.policy.project import LongTermPolicy
from models.project.kept_memories import New
from tests.support.long_term_memories import DAY, KEY, Project
from tests.support.session_driver import NOON

FACT, DECISION, CONSTRAINT = MemoryType.FACT, MemoryType.DECISION, MemoryType.CONSTRAINT


@pytest.mark.behaviour("project-06")
@pytest.mark.parametrize(
    ("memory_type", "importance"),
    [("fact", 0.5), ("decision", 0.7), ("preference", 0.6), ("entity", 0.5), ("procedure", 0.5), ("constraint", 0.6),
     ("goal", 0.8)],
)  # fmt: skip
def test_a_new_memory_has_the_importance_of_its_type(memory_type: str, importance: float) -> None:
    """Project memory, Memory Types; and it is named by when it was said and by what it says."""
    project = Project()
    memory_id = project.say("Something.", 1, memory_type=MemoryType(memory_type))
    memory = project.memory(memory_id)

    assert (importance, 1.0, 3) == (memory.importance, memory.decay_factor, memory.tokens)
    assert sortable_id(NOON + DAY, KEY, memory_type, "something") == memory_id or memory_type == "preference"
    assert [(memory_id, "created")] == project.told


def test_the_same_content_again_strengthens() -> None:
    """However it is written; never a second memory (mem0#1674). The same message, read again, is nothing new."""
    project = Project()
    first = project.say("Use PostgreSQL.", 0, "database", tags=["postgresql"])
    before = project.memory(first)
    project.told.clear()
    assert first == project.say("Use PostgreSQL.", 0, "database", tags=["postgresql"])
    assert (before, []) == (project.memory(first), project.told)
    again = project.say('use  "PostgreSQL"!', 2, "database", session="s2", tags=["db"])
    memory = project.memory(first)

    assert (first, 1) == (again, project.memories.count)
    assert (2, 0.75, 0.96) == (memory.mentions, round(memory.importance, 9), round(memory.confidence, 9))
    assert [("s1", NOON), ("s2", NOON + 2 * DAY)] == [(s.conversation_id, s.said_at) for s in memory.sources]
    assert ["postgresql", "db"] == memory.tags
    assert [(first, "said_again")] == project.told


def test_a_newer_decision_supersedes_the_older() -> None:
    """It holds until then, and the newer says what it superseded; what was known before stays in its history."""
    project = Project()
    older = project.say("Use PostgreSQL.", 0, "database")
    known = project.memory(older).recorded_at
    project.told.clear()
    newer = project.say("Use MySQL.", 3, "database")
    memory = project.memory(older)

    assert (NOON + 3 * DAY, newer) == (memory.valid_until, memory.closed_by)
    assert [(known, None)] == [(past.recorded_at, past.valid_until) for past in memory.history]
    assert (NOON + timedelta(minutes=2)) == memory.recorded_at
    edge = project.memory(newer).relationships[0]
    assert (older, "supersedes", 1.0, "rules") == (edge.target_id, edge.type, edge.strength, edge.origin)
    assert [(newer, "created"), (older, "superseded")] == project.told


def test_unrelated_memories_do_not_retire_each_other() -> None:
    """Other subjects, no subject, other types (graphiti#1728)."""
    project = Project()
    project.say("Use PostgreSQL.", 0, "database")
    project.say("Use React.", 1, "frontend framework")
    project.say("Call it Turnip.", 2)
    project.say("Ship on Friday.", 3)
    project.say("PostgreSQL runs on port 5432.", 4, "database", memory_type=FACT)
    project.say("Backups must be encrypted.", 5, "database", memory_type=CONSTRAINT)
    project.say("Queries must be logged.", 6, "database", memory_type=CONSTRAINT)

    assert [None] * 7 == [end for _, _, end in project.intervals()]
    assert set() == project.edges()


def test_a_denial_retires_only_what_it_denies() -> None:
    """Not to use MongoDB does not undo PostgreSQL."""
    project = Project()
    project.say("Use PostgreSQL for orders.", 0, "database")
    project.say("We won't use MongoDB.", 1, "database")

    assert [None, None] == [end for _, _, end in project.intervals()]

    project.say("Use MongoDB for orders.", 2, "database")

    assert [2, 2, None] == [end for _, _, end in project.intervals()]


def test_a_preference_is_its_users() -> None:
    """Another user's neither retires nor contradicts it, nor is it the same; one's own newer one does."""
    project = Project()
    preference = MemoryType.PREFERENCE
    first = project.say("Prefer tabs.", 0, "indentation", memory_type=preference)
    project.say("Never use tabs.", 1, "indentation", memory_type=preference, user="bob")
    other = project.say("Prefer tabs.", 2, "indentation", memory_type=preference, user="cy")

    assert first != other
    assert ([None] * 3, set()) == ([end for _, _, end in project.intervals()], project.edges())

    project.say("Prefer spaces.", 3, "indentation", memory_type=preference)

    assert [3, None, None, None] == [end for _, _, end in project.intervals()]


def test_what_cannot_both_be_followed_is_marked() -> None:
    """From the newer to the older, also if that came late; both stay valid, and each knows of the other."""
    project = Project()
    used = project.say("Use MongoDB for sessions.", 5, "database")
    banned = project.say("The team must not use MongoDB.", 2, "database", memory_type=CONSTRAINT)
    project.say("The API must answer within 100 ms.", 3, "latency", memory_type=CONSTRAINT)
    project.say("The API must answer within 200 ms.", 4, "latency", memory_type=CONSTRAINT)

    assert {
        ("Use MongoDB for sessions.", "contradicts", "The team must not use MongoDB."),
        ("The API must answer within 200 ms.", "contradicts", "The API must answer within 100 ms."),
    } == project.edges()
    assert (used,) == project.memories.kept[banned].incoming
    assert [None] * 4 == [end for _, _, end in project.intervals()]


def test_memories_of_the_same_tags_are_related() -> None:
    """By at most as many edges as the policy says, as strongly as their tags overlap; the closest first."""
    project = Project(LongTermPolicy(related=2))
    for n, tags in enumerate((["redis"], ["redis", "cache"], ["redis", "cache", "ttl"], ["mail"])):
        project.say(f"Fact {'abcd'[n]}.", n, memory_type=FACT, tags=tags)
    last = project.say("Fact e.", 9, memory_type=FACT, tags=["redis", "cache"])

    edges = [(project.memory(edge.target_id).content, edge.strength) for edge in project.memory(last).relationships]
    assert [("Fact b.", 1.0), ("Fact c.", pytest.approx(2 / 3))] == sorted(edges)


@pytest.mark.behaviour("project-07")
def test_access_counts_and_makes_it_fresh() -> None:
    """Project memory, Access Recording; unknown ids are nothing."""
    project = Project()
    memory_id = project.say("Use PostgreSQL.", 0)
    project.told.clear()
    project.long_term().accessed(memory_id, 2, NOON + 9 * DAY)
    project.long_term().accessed("00000000-00000000", 1, NOON + 9 * DAY)
    memory = project.memory(memory_id)

    assert (2, NOON + 9 * DAY, 1.0) == (memory.access_count, memory.last_accessed_at, memory.decay_factor)
    assert ([(memory_id, "accessed")], []) == (project.told, memory.history)


def test_deleting_reopens_what_it_had_closed() -> None:
    """Until the next rival, and no relationship is left without an end."""
    project = Project()
    project.say("Use PostgreSQL.", 0, "database")
    between = project.say("Use SQLite.", 3, "database")
    project.say("Use MySQL.", 6, "database")

    assert project.long_term().delete(between, "deleted")
    assert [("Use PostgreSQL.", 0, 6), ("Use MySQL.", 6, None)] == project.intervals()
    assert {("Use MySQL.", "supersedes", "Use PostgreSQL.")} == project.edges()
    assert not project.long_term().delete(between, "deleted")


def test_beyond_the_most_the_weakest_goes() -> None:
    """Of the new one's shelf: archived ones first, then by importance × decay; the new one stays."""
    project = Project(LongTermPolicy(most=10))
    ids = [project.say(f"Fact {'abcdefghij'[n]}.", n, memory_type=FACT) for n in range(10)]
    put_away = project.memories.kept[ids[4]]
    project.memories.put(
        msgspec.structs.replace(put_away, memory=msgspec.structs.replace(put_away.memory, archived=True))
    )
    project.memories.shard_ids = lambda shard: sorted(project.memories.kept) if shard % 2 else []  # type: ignore[method-assign]
    project.told.clear()
    new = project.say("Fact k.", 11, memory_type=FACT)

    assert (10, [(ids[4], "displaced"), (new, "created")]) == (project.memories.count, project.told)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"content": "  "}, "invalid"),
        ({"content": "x" * 1_001}, "too_long"),
        ({"tags": [f"t{n}" for n in range(9)]}, "too_many"),
        ({"valid_until": NOON}, "invalid"),
    ],
)
def test_what_cannot_be_remembered_is_refused(changes: dict[str, object], outcome: str) -> None:
    """With a reason, and nothing is kept."""
    project = Project()
    source = MemorySource(said_at=NOON, by="hand")
    new = msgspec.structs.replace(New(type=FACT, content="x", source=source, valid_from=NOON), **changes)
    refused = project.long_term().refusal(new)

    assert refused is not None
    assert (outcome, ("", outcome)) == (refused[0], project.long_term().add(new))
    assert refused[1]
    assert 0 == project.memories.count


def test_what_is_cut_in_two_takes_room_too() -> None:
    """One statement may make several memories; there are never more than the most."""
    project = Project(LongTermPolicy(most=10))
    for n in range(9):
        project.say(f"Fact {n}.", n, memory_type=FACT)
    project.say("Use PostgreSQL.", 0, "database")
    project.say("Use PostgreSQL.", 6, "database", session="s2")
    project.say("Use MySQL.", 3, "database")

    assert 10 == project.memories.count
