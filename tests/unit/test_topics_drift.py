"""Comparing topics: every kind of difference is seen, and what would harm sessions is refused."""

from __future__ import annotations

import msgspec
import pytest

from jobs.shared.topic_drift import DriftKind, compare, refused, wanted_topics
from models.entities import REGISTRY
from models.events.topics import JUDGEMENTS, TURNS
from streams.erase.purge import _loosened, _tight
from streams.kafka.topics import BrokerTopic
from streams.settings import load_settings

SETTINGS = load_settings(topic_prefix="p")
WANTED = wanted_topics(SETTINGS)


def standing(**changes: object) -> dict[str, BrokerTopic]:
    """The broker's topics, all as wanted but for changes to the turns."""
    topics = {topic.name: topic for topic in WANTED}
    topics["p.turns.v1"] = msgspec.structs.replace(topics["p.turns.v1"], **changes)
    return topics


def test_an_erasure_leaves_the_tables_file_length_behind() -> None:
    """What it set itself goes, the table's own entry comes back."""
    assert {"segment.ms": "3600000"} == _loosened(JUDGEMENTS, dict(_tight(JUDGEMENTS)))
    assert {"retention.ms": "7"} == _loosened(TURNS, {**_tight(TURNS), "retention.ms": "7"})


def test_empty_broker_lacks_everything() -> None:
    """Each topic is to be created, and nothing is refused."""
    found = compare(WANTED, {})

    assert [DriftKind.MISSING] * len(REGISTRY.topics) == [difference.kind for difference in found]
    assert refused(found, allow_repartition=False) == []


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"config": {**WANTED[0].config, "segment.ms": "1000"}}, set()),  # somebody's own entry
        ({"replication": 5}, set()),  # nobody should be told to give up copies
        ({"config": {**WANTED[0].config, "retention.ms": "1"}}, {DriftKind.CONFIG}),
        ({"config": {**WANTED[0].config, "message.timestamp.type": "CreateTime"}}, {DriftKind.CONFIG}),
        ({"partitions": 6}, {DriftKind.TOO_FEW_PARTITIONS, DriftKind.CO_PARTITIONING}),
        ({"partitions": 24}, {DriftKind.TOO_MANY_PARTITIONS, DriftKind.CO_PARTITIONING}),
        ({"replication": 0}, {DriftKind.REPLICATION}),
    ],
)
def test_each_kind_of_difference(changes: dict[str, object], kinds: set[DriftKind]) -> None:
    """A changed topic is seen, and a changed count also puts turns and outputs apart."""
    assert kinds == {difference.kind for difference in compare(WANTED, standing(**changes))}


@pytest.mark.parametrize(
    ("partitions", "allow", "reasons"), [(6, False, 1), (6, True, 0), (24, False, 1), (24, True, 1)]
)
def test_refusals(partitions: int, allow: bool, reasons: int) -> None:
    """Moving keys needs a flag; removing partitions cannot be had at all."""
    found = compare(WANTED, standing(partitions=partitions))

    assert reasons == len(refused(found, allow_repartition=allow))
