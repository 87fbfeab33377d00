"""Users and spaces of one partition of commands, and what the memory role sees of the spaces."""

from __future__ import annotations

from datetime import timedelta

from models.events import CommandEvent, Position, UserMemoryChanged
from models.events.app import MemoriesPurged
from models.events.erase import SpaceErased, UserErased
from models.partition.commands import MemoryPartitionFold
from models.policy import Policy
from models.state.entity import DueEntity
from tests.support.app_driver import Space
from tests.support.entity_driver import NOON, Entities
from tests.support.user_driver import added
from tests.support.user_partition import commands, keep


def test_users_and_spaces_do_not_touch_each_other() -> None:
    """They share the partition and its clock, and the names of an app and a user."""
    space, entities = Space(app="a", user="u"), Entities()
    log: list[CommandEvent] = []
    for n in range(3):
        log += [space.ended(), added("I live in Oslo.", "s", n, Position("turns", 0, n), NOON)]
    fold = MemoryPartitionFold(entities, Policy())
    outputs = keep(entities, fold, commands(*log))
    assert sorted(entities) == ["", "app:a/u", "user:a/u"]
    assert [o.turn_count for o in outputs if isinstance(o, UserMemoryChanged)] == [1, 2, 3]
    keep(entities, fold, commands(UserErased(app_id="a", user_id="u", timestamp=NOON, request_id="e"), first=6))
    assert sorted(entities) == ["", "app:a/u"]
    (result,) = fold.fold(
        commands(SpaceErased(app_id="a", user_id="u", timestamp=NOON, request_id="e"), first=7),
    )
    assert (set(result.changed["app:a/u"].values()), result.erased) == ({None}, 1)


def test_only_spaces_that_were_spoken_to_are_written() -> None:
    """And of them only what changed."""
    entities: Entities = {}
    fold = MemoryPartitionFold(entities, Policy())
    spaces = [Space(app=f"app{n}") for n in range(5)]
    keep(entities, fold, commands(*[space.ended() for space in spaces]))
    (result,) = fold.fold(commands(spaces[3].ended(), first=5))

    assert {key: set(parts) for key, parts in result.changed.items()} == {"": {"clock"}, "app:app3": {"head", "m1"}}


def test_due_spaces_are_known() -> None:
    """The longest due first; after a recovery as before; not before their time, nor after what waits was purged."""
    entities: Entities = {}
    space = Space(ask=True)
    fold = MemoryPartitionFold(entities, space.policy)
    spaces = [Space(app=f"app{n}", user="u" if n else "") for n in range(3)]
    log = []
    for number, each in enumerate(spaces):
        each.now = NOON + timedelta(minutes=number)
        log.append(each.ended())
    keep(entities, fold, commands(*log))
    first = NOON + timedelta(minutes=5)
    minute = timedelta(minutes=1)
    expected = [
        DueEntity(first, "app0", "", awaits_answer=True),
        DueEntity(first + minute, "app1", "u", awaits_answer=True),
    ]

    for progress in (fold.progress["app"], MemoryPartitionFold(entities, space.policy).progress["app"]):
        assert progress.due(first - timedelta(seconds=1)) == []
        assert progress.due(first + minute) == expected
        assert progress.totals["app_memories_waiting"] == 3
    keep(entities, fold, commands(MemoriesPurged(app_id="app0", timestamp=NOON), first=3))
    assert [due.app_id for due in fold.progress["app"].due(first + 9 * minute)] == ["app1", "app2"]
