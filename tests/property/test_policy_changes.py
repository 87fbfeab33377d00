"""Another policy in the middle of a log, and the first one again: nothing breaks, all stays readable, bounds hold."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.events import CommandEvent, Position
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import LogFold
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from models.session.bounds import STATE_WRITE_BYTES
from models.wire.arrival import Command
from tests.property import test_app_spaces, test_users
from tests.property.test_partition import Event, arrivals, events_of
from tests.support.data_files import data_file
from tests.support.entity_driver import Entities, keep_entities
from tests.support.limits import too_large, written_bytes

SMALL = data_file("policy_changes")["policies"]
OFF = {"users": {"enabled": False}, "apps": {"enabled": False}, "window": {"length": "PT1M", "slide": "PT1S"}}
POLICIES = (Policy(), msgspec.convert(SMALL, Policy), msgspec.convert(OFF, Policy))
STRETCHES = st.lists(st.tuples(st.sampled_from(POLICIES), st.integers(1, 25)), min_size=1, max_size=6)
Stretches = Sequence[tuple[Policy, int]]


def folded(log: Sequence[Any], stretches: Stretches, fold_of: Callable[..., LogFold[Any]]) -> tuple[Entities, Policy]:
    """Fold a log by one policy after the other, over and over; each begins as a role that is started anew."""
    entities: Entities = {}
    position, step, policy = 0, 0, stretches[0][0]
    while position < len(log):
        policy, size = stretches[step % len(stretches)]
        for result in fold_of(entities, policy).fold(log[position : position + size]):
            keep_entities(entities, result.changed)

            assert written_bytes(result) <= STATE_WRITE_BYTES
            assert [output for output in result.outputs if too_large(output)] == []
        position, step = position + size, step + 1
    for each in POLICIES:
        fold_of(entities, each)  # reads what is due in all of them
    return entities, policy


def parts_of(parts: Mapping[str, bytes], kind: str) -> int:
    """How many parts are of a kind: its letter and a number."""
    return sum(name[:1] == kind and name[1:].isdecimal() for name in parts)


def with_vectors(events: Sequence[Event]) -> list[DecodedArrival]:
    """Arrivals with vectors of their own."""
    rng = np.random.default_rng(len(events))
    return [msgspec.structs.replace(each, vector=rng.normal(size=64).astype(np.float32)) for each in arrivals(events)]


@given(events_of(3, 30, 80), STRETCHES)
def test_sessions_stand_a_change_and_the_change_back(events: list[Event], stretches: Stretches) -> None:
    """Whatever comes when."""
    folded(with_vectors(events), stretches, PartitionFold)


@pytest.mark.parametrize("last", POLICIES, ids=["default", "small", "off"])
@pytest.mark.parametrize("middle", POLICIES, ids=["default", "small", "off"])
def test_a_session_keeps_what_the_present_policy_allows(middle: Policy, last: Policy) -> None:
    """Also of what an earlier one let it keep; and what that one dropped does not come back."""
    log = with_vectors([("turn", 1, n, 0.5, 1) for n in range(200)])
    entities, _ = folded(log, [(POLICIES[0], 60), (middle, 60), (last, 80)], PartitionFold)
    (parts,) = (parts for entity, parts in entities.items() if entity)
    memory = last.memory
    remembered = [int.from_bytes(data[:8], "little") for name, data in parts.items() if name[:1] == "v"]

    assert parts_of(parts, "v") == len(remembered) == memory.recent_vectors
    assert min(remembered) >= 200 - 2 * memory.recent_vectors  # every second turn is the user's
    assert parts_of(parts, "b") <= memory.buffer_turns + memory.segment_turns
    assert parts_of(parts, "s") <= memory.segments + 1


@given(test_users.STEPS, st.lists(test_app_spaces.STEP, max_size=30), STRETCHES)
def test_memories_stand_a_change_and_the_change_back(
    said: list[test_users.Step], ended: list[test_app_spaces.Step], stretches: Stretches
) -> None:
    """Users and spaces in one log."""
    talker = test_app_spaces.Talker("a", "u")
    events: list[CommandEvent] = list(test_users.log_of(said))
    events += [event for step in ended for event, _ in talker.makes(step)]
    events.sort(key=lambda event: event.timestamp)
    log = [Command(event, Position("commands", 5, n), event.timestamp) for n, event in enumerate(events)]

    folded(log, stretches, MemoryPartitionFold)
