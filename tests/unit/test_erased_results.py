"""Erasures are written by themselves, in both folds, so that a store gives up their bytes and nobody else's."""

from collections.abc import Sequence

import msgspec
import pytest

from models.events import InputEvent, Position, SessionErased
from models.partition.log_fold import ERASED_PART, PARTITION_ENTITY, PartitionFolded
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from tests.support.entity_driver import Entities, keep_entities
from tests.support.session_driver import NOON, said


def marks(results: Sequence[PartitionFolded]) -> list[tuple[int, set[str], int | None]]:
    """Of each result: erasures, what it changes, and the erasure it names."""
    return [
        (result.erased, set(result.changed), None if mark is None else msgspec.msgpack.decode(mark, type=int))
        for result in results
        for mark in [result.changed[PARTITION_ENTITY].get(ERASED_PART)]
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
