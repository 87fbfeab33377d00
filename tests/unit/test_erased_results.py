"""Erasures are written by themselves, in both folds, so that a store gives up their bytes and nobody else's."""

from collections.abc import Sequence

import msgspec
import pytest

from models.events import CommandEvent, InputEvent, Position, SessionErased
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import ERASED_PART, PARTITION_ENTITY, PartitionFolded
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from tests.support.entity_driver import Entities, keep_entities
from tests.support.session_driver import NOON, said
from tests.support.user_driver import User, session_erased, user_erased
from tests.support.user_partition import commands


def marks(results: Sequence[PartitionFolded]) -> list[tuple[int, set[str], int | None]]:
    """Of each result: erasures, what it changes, and the erasure it names."""
    return [
        (result.erased, set(result.changed), None if mark is None else msgspec.msgpack.decode(mark, type=int))
        for result in results
        for mark in [result.changed[PARTITION_ENTITY].get(ERASED_PART)]
    ]


def test_users_erased_among_others() -> None:
    """Two erasures side by side are one result; what was never there counts like the rest."""
    user = User()
    log: list[CommandEvent] = [
        user.turn(),
        user.turn(user_id="v"),
        session_erased("s"),
        user_erased(user_id="nobody"),
        user.turn(user_id="v"),
        user_erased(user_id="v"),
    ]
    results = [*MemoryPartitionFold({}, Policy()).fold(commands(*log))]

    assert marks(results) == [
        (0, {"user:a/u", "user:a/v", ""}, None),
        (2, {""}, 3),
        (0, {"user:a/v", ""}, None),
        (1, {""}, 5),
    ]


@pytest.mark.parametrize("known", [True, False])
def test_a_session_erased_among_others(known: bool) -> None:
    """An erasure of a session that is not there is written alone too."""
    events: list[InputEvent] = [
        said(0),
        said(0, session_id="t"),
        SessionErased(session_id="s" if known else "x", app_id="a", timestamp=NOON, request_id="r"),
        said(1, session_id="t"),
    ]
    entities: Entities = {}
    results = []
    arrivals = [DecodedArrival(event, Position("turns", 0, n), NOON) for n, event in enumerate(events)]
    for result in PartitionFold(entities, Policy()).fold(arrivals):
        results.append(result)
        keep_entities(entities, result.changed)

    s, t = "session:a/s", "session:a/t"
    assert marks(results) == [(0, {s, t, ""}, None), (1, {s, ""} if known else {""}, 2), (0, {t, ""}, None)]
    assert (s in entities) is not known
