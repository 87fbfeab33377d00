"""Parts of a saved project that come back to one that went on since."""

from __future__ import annotations

import msgspec

from models.events import MemoryRevision, ProjectConversation, ProjectImported, ProjectMemory, ProjectMemoryAdded
from tests.support.entity_driver import NOON
from tests.support.project_driver import Project


def bring(project: Project, **items: object) -> None:
    """Import items."""
    project.put(msgspec.convert({"timestamp": project.now, **project.ids, **items}, ProjectImported))


def test_messages_that_an_older_export_lacks_become_chunks() -> None:
    """They are not lost, and are still counted."""
    project = Project(short_term={"chunk_messages": 4})
    project.say("Something of number 0 was said.")
    older: ProjectConversation = project.items("conversation")["s0"]
    for n in range(1, 9):
        project.say(f"Something of number {n} was said.")
    bring(project, conversations=[older])
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
        project.do(ProjectMemoryAdded, memory_type="fact", content="Fact 10.")
        (memory,) = project.items("memory").values()
        past = [
            MemoryRevision(recorded_at=NOON, content=f"Fact {n}.", importance=0.5, valid_from=NOON, valid_until=None)
            for n in range(10)
        ]
        bring(other, memories=[msgspec.structs.replace(memory, history=past)])
        found: ProjectMemory = other.items("memory")[memory.id]

        assert past[-left:] == found.history
