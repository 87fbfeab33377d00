"""Long-term memories, pending facts and episodes of a project, as its fold makes them."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from models import events
from tests.support.entity_driver import NOON
from tests.support.project_driver import Project

UNSURE = "Maybe we decided to use Redis."


def added(project: Project, content: str = "The API runs on port 8080.", **more: Any) -> str:
    """Add a memory by hand; gives its id."""
    project.do(events.ProjectMemoryAdded, **{"memory_type": "fact", "content": content} | more)
    return project.result[1]


def test_the_seeds_example() -> None:
    """A question and a recommendation are no decision; what was decided is, and is a milestone of its conversation."""
    project = Project()
    project.say("What database should we use?")
    project.say("I recommend PostgreSQL for this use case.")
    before = (project.items("memory"), project.items("episode"))
    outputs = project.say("We decided to use PostgreSQL.")
    (memory,) = project.items("memory").values()
    (episode,) = project.items("episode").values()
    conversation = project.items("conversation")["s0"]

    assert ({}, {}) == before
    assert ("decision", "database", 0.7) == (memory.type, memory.subject, memory.importance)
    assert ("decision_made", [memory.id]) == (episode.kind, episode.linked_memories)
    assert ([memory.id], [episode.id]) == (conversation.active_facts, conversation.milestones)
    assert {3} == {output.revision for output in outputs if isinstance(output, events.ProjectItemChanged)}
    assert 3 == project.stats.revision


def test_agreeing_to_what_an_assistant_proposed_is_a_decision() -> None:
    """The message before is the context of the extraction."""
    project = Project()
    project.say("What database should we use?")
    project.say("I recommend PostgreSQL for this use case.")
    project.say("Yes, let's do that.")

    assert ["decision"] == [memory.type for memory in project.items("memory").values()]


@pytest.mark.behaviour("project-17")
def test_what_is_not_sure_waits_and_is_promoted_when_said_again() -> None:
    """Confidence 1 − (1 − a)(1 − b) of the same said twice; then it is a memory and no longer pending."""
    project = Project()
    project.say(UNSURE)
    (pending,) = project.items("pending").values()
    counts = [(project.stats.pending, project.stats.memories)]
    for session in ("s1", "s2"):
        project.say(UNSURE, session)
        counts.append((project.stats.pending, project.stats.memories))
    (memory,) = project.items("memory").values()
    sure = 1 - (1 - pending.confidence) ** 3

    assert [(1, 0), (1, 0), (0, 1)] == counts
    assert 0.3 <= pending.confidence < 0.7 < sure
    assert pytest.approx(sure) == memory.confidence
    assert {} == project.items("pending")


@pytest.mark.behaviour("project-17")
@pytest.mark.parametrize(("promoted", "left"), [(True, (0, 1)), (False, (0, 0))])
def test_somebody_decides_on_a_pending_fact(promoted: bool, left: tuple[int, int]) -> None:
    """Promoted or discarded; again it is not there."""
    project = Project()
    project.say(UNSURE)
    (pending_id,) = project.items("pending")
    outcomes = []
    for _ in range(2):
        project.do(events.PendingFactDecided, pending_id=pending_id, promoted=promoted)
        outcomes.append(project.result[0])

    assert ["done", "not_found"] == outcomes
    assert left == (project.stats.pending, project.stats.memories)


def test_deeds_on_memories() -> None:
    """Edited, related, deleted: answered with the item; no end dangles, and episodes name only what is there."""
    project = Project()
    one, other = added(project), added(project, "The queue keeps messages for two days.")
    project.do(events.RelationshipSet, source_id=one, target_id=other, relation="depends_on")
    related = project.items("memory")[one].relationships
    project.do(events.ProjectMemoryEdited, memory_id=one, importance=0.9)
    edited = project.result
    project.do(events.RelationshipSet, source_id=one, target_id=one, relation="depends_on")
    to_itself = project.result[0]
    project.do(events.ProjectMemoryDeleted, memory_id=other)

    assert [other] == [edge.target_id for edge in related]
    assert ("done", one, 1) == edited
    assert "invalid" == to_itself
    assert ("done", other, 1) == project.result
    assert ([], 0.9) == (project.items("memory")[one].relationships, project.items("memory")[one].importance)


@pytest.mark.behaviour("project-22")
def test_accesses_are_recorded() -> None:
    """As often as an item is named; unknown ids are passed over, and only unknown ones change nothing."""
    project = Project()
    project.say("We decided to use PostgreSQL.")
    (memory_id,), (episode_id,) = project.items("memory"), project.items("episode")
    nothing = project.do(events.MemoriesAccessed, ids=["mf0k3x2a-00000000"])
    project.do(events.MemoriesAccessed, ids=[memory_id, episode_id, memory_id])

    assert [] == nothing
    assert (2, 1) == (
        project.items("memory")[memory_id].access_count,
        project.items("episode")[episode_id].access_count,
    )


@pytest.mark.behaviour("project-18")
def test_a_consolidation_runs_by_the_logs_clock() -> None:
    """Not before it is due; step by step; old and unimportant memories are archived, and it says what it did."""
    project = Project(consolidation={"step_memories": 10, "after_days": 30.0}, stores=True)
    for n in range(25):
        added(project, f"Number {n} of the list is kept on the shelf {n}.", importance=0.2)
    early = project.wait(hours=23)
    steps = 0
    project.now += timedelta(days=40)
    while not project.consolidations:
        project.wait()
        steps += 1
    (done,) = project.consolidations

    assert [] == early
    assert 3 <= steps <= 4
    assert (25, 25, "scheduled", 1) == (done.memories_looked_at, done.memories_archived, done.cause, done.run)
    assert 25 == project.stats.archived
    assert done.tokens_reclaimed == sum(memory.tokens for memory in project.items("memory").values())
    assert project.state.head.due(project.policy.projects) is None


def test_a_consolidation_that_was_asked_for_is_answered() -> None:
    """Done at once, whatever the clock; old pending facts go."""
    project = Project()
    added(project)
    project.say(UNSURE)
    project.now += timedelta(days=91)
    project.do(events.ConsolidationAsked, request_id="now")
    (done,) = project.consolidations

    assert ("asked", 1) == (done.cause, done.pending_dropped)
    assert ("now", "done") == (project.stats.results[-1].request_id, project.stats.results[-1].outcome)
    assert {} == project.items("pending")


def test_messages_that_an_older_export_lacks_become_chunks() -> None:
    """They are not lost, and are still counted."""
    project = Project(short_term={"chunk_messages": 4})
    project.say("Something of number 0 was said.")
    older: events.ProjectConversation = project.items("conversation")["s0"]
    for n in range(1, 9):
        project.say(f"Something of number {n} was said.")
    project.do(events.ProjectImported, conversations=[older])
    conversation = project.items("conversation")["s0"]
    chunks = sorted((each.first_turn, each.last_turn, each.messages) for each in project.items("chunk").values())

    assert [(1, 4, 4), (5, 8, 4)] == chunks
    assert ([0], 9, 2, 2) == (
        conversation.recent, conversation.total_turns, conversation.chunks, project.stats.chunks,
    )  # fmt: skip


def test_a_memory_keeps_its_earlier_states() -> None:
    """All that the policy has room for, the latest."""
    for most, left in ((16, 10), (4, 4)):
        project, other = Project(), Project(long_term={"history": most})
        project.do(events.ProjectMemoryAdded, memory_type="fact", content="Fact 10.")
        (memory,) = project.items("memory").values()
        past = [
            events.MemoryRevision(
                recorded_at=NOON, content=f"Fact {n}.", importance=0.5, valid_from=NOON, valid_until=None
            )
            for n in range(10)
        ]
        other.do(events.ProjectImported, memories=[msgspec.structs.replace(memory, history=past)])
        found: events.ProjectMemory = other.items("memory")[memory.id]

        assert past[-left:] == found.history
