"""What an erasure removes from a space: all of it, or what was made of some sessions."""

from __future__ import annotations

import pytest

from models.events.app import AppUninstalled, MemoryEdited
from models.events.erase import SpaceErased
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import PARTITION_ENTITY
from models.policy import Policy
from models.state.seen import MOST_SHORT_IDS
from tests.support.app_driver import THINGS, Space
from tests.support.entity_driver import NOON, Entities
from tests.support.user_partition import commands


def test_an_erased_space_leaves_nothing() -> None:
    """No part, no count; what comes next begins a new one."""
    space = Space()
    space.fill(12)
    space.command(AppUninstalled)
    space.store()
    assert space.erase() == []
    space.store()
    assert space.stored == {}
    space.told.clear()
    space.end()

    assert (space.stats.memories, space.stats.created, space.stats.results) == (1, 1, [])
    assert space.stats.energy_units == pytest.approx(10_000, abs=20)


def test_nothing_is_written_of_a_space_that_nobody_knows() -> None:
    """Nor by a late answer, work that is due, or sessions that were never here: a forgotten name does not come back."""
    space = Space()
    assert [space.erase(), space.propose(request=1), space.decide(request=1), space.wait()] == [[], [], [], []]
    assert space.erase("s1") == []
    assert space.state.changed_parts() == {}
    entities: Entities = {}
    erased = SpaceErased(timestamp=NOON, request_id="e", app_id="shop")
    (result,) = MemoryPartitionFold(entities, Policy()).fold(commands(erased))
    assert (set(result.changed), result.outputs, result.erased) == ({PARTITION_ENTITY}, [], 1)


def test_what_is_asked_of_others_is_still_waited_for() -> None:
    """A decision on the candidate is taken though the conversation behind it was erased."""
    space = Space(ask=True, most=2, most_pinned=0)
    for n in range(3):
        space.end(session=f"s{n}")
        space.propose(f"User bought {THINGS[n]}.")
    request = space.state.head.requests
    space.end(session="s3")
    space.erase("s3")
    space.decide("delete", 1, request=request)

    assert (sorted(space.active), space.stats.waiting) == ([2, 3], 0)


def test_a_memory_of_too_many_conversations_goes_with_any() -> None:
    """Where nobody can tell any longer, forgetting comes first."""
    space = Space(ask=True, most=2, most_pinned=0, related=1)
    for n in range(MOST_SHORT_IDS + 4):
        space.end(session=f"s{n}")
        space.propose(f"User bought {THINGS[n % 13]}.")
        if n > 1:
            space.decide("edit", 1, new_content="User buys a lot.")
    space.store()
    assert max(map(len, space.stored.values())) < 2_000
    space.erase("of another")

    assert sorted(space.active) == [2]


def test_erasing_does_not_undo_what_admins_did() -> None:
    """Other memories, their pins and the counts stay."""
    space = Space()
    space.fill(3)
    space.command(MemoryEdited, memory_id=2, pinned=True)
    space.erase("s0")

    assert [(m.memory_id, m.pinned) for m in space.active.values()] == [(2, True), (3, False)]
    assert (space.stats.created, space.stats.edited) == (3, 1)


def test_conversations_beyond_those_that_are_named_are_found() -> None:
    """A memory names the latest of its conversations; an erasure also finds those before."""
    space = Space(ask=True, most=2, most_pinned=0, related=1)
    for n in range(5):
        space.end(session=f"s{n}")
        space.propose(f"User bought {THINGS[n]}.")
        if n > 1:
            space.decide("edit", 1, new_content=f"User bought {THINGS[0]} and {THINGS[n]}.")
    assert space.active[1].related_conversations == ["s4"]
    assert sorted(space.active) == [1, 2]
    space.erase("s2")

    assert sorted(space.active) == [2]
