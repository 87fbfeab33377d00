"""The fold of a partition of commands: what it takes up, keeps and counts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from models.errors import RecoveryFailed
from models.events import Position, UserMemoryChanged, UserTurnAdded
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import folded_offset
from models.policy import Policy
from tests.support.entity_driver import Entities
from tests.support.user_driver import NOON, added, summarised
from tests.support.user_partition import commands, keep

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
