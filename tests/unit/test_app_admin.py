"""What admins and erasures do to a space: edit, pin, share, delete, forget; each command is audited and answered."""

from datetime import timedelta
from typing import Any

import pytest

from models.events.app import AppUninstalled, MemoriesPurged, MemoriesRead, MemoryDeleted, MemoryEdited
from models.events.erase import SpaceErased
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import PARTITION_ENTITY
from models.policy import Policy
from models.state.seen import MOST_SHORT_IDS
from tests.support.app_driver import THINGS, Space, causes
from tests.support.entity_driver import NOON, Entities
from tests.support.user_partition import commands


@pytest.mark.parametrize(
    ("kind", "fields", "outcome"),
    [
        (MemoryEdited, {"memory_id": 1, "content": "x"}, "not_found"),
        (MemoryDeleted, {"memory_id": 1}, "not_found"),
        (MemoriesPurged, {}, "unchanged"),
        (AppUninstalled, {"purge_memories": True}, "done"),
    ],
)
def test_a_command_to_an_unknown_space_is_answered(kind: type, fields: dict[str, Any], outcome: str) -> None:
    """Whoever waits for the answer finds it."""
    space = Space()
    audited = space.command(kind, **fields)

    assert (audited.outcome, audited.count, audited.request_id, audited.by) == (outcome, 0, "r0", "root")
    assert [(r.request_id, r.outcome, r.count) for r in space.stats.results] == [("r0", outcome, 0)]


@pytest.mark.parametrize("known", [False, True])
def test_a_read_is_audited_and_changes_nothing(known: bool) -> None:
    """Neither the state nor the standing, and it leaves no trace of a space that nothing is known of."""
    space = Space()
    space.fill(2 if known else 0)
    space.store()
    before, told = dict(space.stored), len(space.outputs)
    audited = space.command(MemoriesRead, how="list", count=2)
    space.store()

    assert (audited.action, audited.outcome, audited.count, audited.by) == ("memories_read", "list", 2, "root")
    assert (space.stored, len(space.outputs)) == (before, told + 1)


def test_an_edit_changes_what_it_names() -> None:
    """And nothing else; what is written by hand says so, on one line. A text that is too long changes nothing."""
    space = Space()
    space.end(said="I decided to buy a red bicycle.")
    before = space.active[1]
    space.now += timedelta(hours=1)
    at = space.now
    audited = space.command(MemoryEdited, memory_id=1, content=" User wants\n a blue bicycle. ")
    after = space.active[1]

    assert (audited.outcome, audited.count, after.cause) == ("done", 1, "edited")
    assert (after.content, after.made_by, after.updated_at) == ("User wants a blue bicycle.", "admin", at)
    assert (after.importance, after.tags, after.created_at) == (before.importance, before.tags, before.created_at)
    assert space.command(MemoryEdited, memory_id=1, content="x" * 401, pinned=True).outcome == "too_long"
    assert space.active[1] == after
    space.command(MemoryEdited, memory_id=1, content="x" * 400, importance=1.0, tags=["bike", "bike", " wheels "])
    assert (space.active[1].importance, space.active[1].tags) == (1.0, ["bike", "wheels"])
    assert space.stats.edited == 2


def test_pinned_memories_are_never_compacted() -> None:
    """However weak and old; there may be so many that two others are left."""
    space = Space()
    space.fill()
    outcomes = [space.command(MemoryEdited, memory_id=n, pinned=True, importance=0.0).outcome for n in range(1, 10)]
    assert outcomes == ["done"] * 8 + ["too_many_pinned"]
    for _ in range(12):
        space.end()

    assert sorted(space.active)[:8] == [*range(1, 9)]
    assert [m.pinned for _, m in sorted(space.active.items())] == [True] * 8 + [False] * 2
    assert space.command(MemoryEdited, memory_id=3, pinned=True).outcome == "unchanged"
    space.command(MemoryEdited, memory_id=3, pinned=False)
    assert space.command(MemoryEdited, memory_id=max(space.active), pinned=True).outcome == "done"


def test_sharing_is_explicit_and_ends_where_texts_are_merged() -> None:
    """App memory, phase 3. A merged text goes no further than both of its parts did."""
    space = Space(ask=True, most=2, most_pinned=0)
    for n in range(3):
        space.end()
        space.propose(f"User likes thing {'abc'[n]}.")
        if n < 2:
            space.command(MemoryEdited, memory_id=n + 1, shared_with=["x", "shop", "y", "x"][n:])
    assert [m.shared_with for m in space.active.values()] == [["x", "y"], ["y", "x"]]
    space.decide("edit", 1, new_content="User likes thing a and thing c.")
    assert space.active[1].shared_with == []
    space.command(MemoryEdited, memory_id=2, shared_with=[])
    assert space.active[2].shared_with == []


@pytest.mark.behaviour("app-32")
def test_memories_that_contradict_each_other_are_marked() -> None:
    """App memory, phase 3: on both sides, when one comes, is edited, and until one goes."""
    space = Space()
    space.end(said="I prefer calls after 2pm.")
    space.end(said="I decided to buy a red bicycle.")
    space.end(said="I prefer calls after 4pm.")
    assert {n: m.conflicts_with for n, m in space.active.items()} == {1: [3], 2: [], 3: [1]}
    assert causes(space.outputs)[-2:] == [(3, "created"), (1, "conflict")]
    space.command(MemoryEdited, memory_id=3, content="User prefers calls after 2pm.")
    assert {n: m.conflicts_with for n, m in space.active.items()} == {1: [], 2: [], 3: []}
    space.command(MemoryEdited, memory_id=2, content="User prefers calls after 4pm.")
    assert {n: m.conflicts_with for n, m in space.active.items()} == {1: [2], 2: [1, 3], 3: [2]}
    space.command(MemoryDeleted, memory_id=2)
    assert {n: m.conflicts_with for n, m in space.active.items()} == {1: [], 3: []}
    assert space.memories[1].conflicts_with == ()


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
