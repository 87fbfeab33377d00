"""Users, spaces and projects of one partition of commands: what is taken up, kept and counted, and what is due."""

from datetime import timedelta
from typing import Any

import pytest

from models.errors import RecoveryFailed
from models.events import (
    CommandEvent,
    MemoriesAccessed,
    MemoryType,
    Position,
    ProjectItemChanged,
    ProjectMemoryAdded,
    UserMemoryChanged,
    UserTurnAdded,
)
from models.events.app import MemoriesPurged
from models.events.erase import SpaceErased, UserErased
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import folded_offset
from models.policy import Policy
from models.session.bounds import STATE_WRITE_BYTES
from models.state.entity import DueEntity
from tests.support.app_driver import Space
from tests.support.entity_driver import NOON, Entities
from tests.support.limits import WIDE, written_bytes
from tests.support.user_driver import added, summarised
from tests.support.user_partition import commands, keep, keep_result

POLICY = Policy()


def said(number: int, user: str = "u") -> UserTurnAdded:
    """One turn of a user."""
    return added("Hello", "s", number, Position("turns", 0, number), NOON + timedelta(minutes=number), user_id=user)


def test_a_command_that_changes_nothing_moves_the_offset() -> None:
    """Else it would be folded again after each restart."""
    entities: Entities = {}
    fold = MemoryPartitionFold(entities, POLICY)
    log = commands(said(0), said(0), summarised(1, 20))
    outputs = [len(keep(entities, fold, [command])) for command in log]

    assert (folded_offset(entities), outputs) == (2, [1, 0, 0])


def test_a_user_whose_state_is_damaged_stops_its_own_command_only() -> None:
    """The role sets the record aside and goes on with a fold made anew; other users are whole."""
    entities: Entities = {}
    keep(entities, MemoryPartitionFold(entities, POLICY), commands(said(0), said(0, "v")))
    entities["user:a/u"]["head"] = b"\xc1"

    with pytest.raises(RecoveryFailed, match="part head is unreadable"):
        keep(entities, MemoryPartitionFold(entities, POLICY), commands(said(1), first=2))
    (stats,) = keep(entities, MemoryPartitionFold(entities, POLICY), commands(said(1, "v"), first=3))
    assert isinstance(stats, UserMemoryChanged)
    assert stats.turn_count == 2


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
    (result,) = fold.fold(commands(SpaceErased(app_id="a", user_id="u", timestamp=NOON, request_id="e"), first=7))
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


def test_accesses_of_more_than_a_write_takes_are_all_counted() -> None:
    """Each once, in several writes; a crash after each of them changes nothing."""
    entities: Entities = {}
    about: dict[str, Any] = {"app_id": "shop", "project_id": "web", "timestamp": NOON, "memory_type": MemoryType.FACT}
    facts = [ProjectMemoryAdded(content=f"{n}: " + WIDE * 900, **about) for n in range(900)]
    added = keep(entities, MemoryPartitionFold(entities, Policy()), commands(*facts))
    ids = [event.item_id for event in added if isinstance(event, ProjectItemChanged)]
    (read,) = commands(MemoriesAccessed(app_id="shop", project_id="web", timestamp=NOON, ids=ids), first=len(facts))
    counted: list[int] = []
    written: list[int] = []
    while folded_offset(entities) < read.position.offset:
        result = next(MemoryPartitionFold(entities, Policy()).fold([read]))
        written.append(written_bytes(result))
        outputs = keep_result(entities, result)
        counted += [
            event.memory.access_count for event in outputs if isinstance(event, ProjectItemChanged) and event.memory
        ]
    fold = MemoryPartitionFold(entities, Policy())

    assert [1] * 900 == counted
    assert {"projects": 1, "project_memories": 900} == fold.progress["project"].totals
    assert 2 < len(written)
    assert max(written) < STATE_WRITE_BYTES / 2
