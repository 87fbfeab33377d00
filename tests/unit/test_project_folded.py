"""A project without a log: what its view shows after each event."""

from __future__ import annotations

from datetime import timedelta

from models.events import MemoryType, ProjectErased, ProjectMemoryAdded
from models.policy import Policy
from models.project.fold import FoldedProject
from tests.support.entity_driver import NOON


def test_the_first_event_of_a_new_life_is_seen() -> None:
    """Nothing of the life before, and everything that comes after it."""
    folded = FoldedProject("shop", "web", Policy())
    for n in range(3):
        folded.take(memory(f"Fact {n}."), NOON + timedelta(seconds=n))
    erased = ProjectErased(app_id="shop", project_id="web", timestamp=NOON, request_id="e")
    folded.take(erased, NOON + timedelta(seconds=4))
    before = folded.view.size
    folded.take(memory("Fact 9."), NOON + timedelta(seconds=5))

    assert (0, ["Fact 9."]) == (before, [each.content for each in folded.view.memories.values()])
    assert folded.view.stats is not None
    assert 1 == folded.view.stats.memories


def memory(content: str) -> ProjectMemoryAdded:
    """Somebody adds it."""
    return ProjectMemoryAdded(
        app_id="shop", project_id="web", timestamp=NOON, memory_type=MemoryType.FACT, content=content
    )
