"""Drift of the standing topics from those wanted: pure, the broker is asked elsewhere."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from models.entities import REGISTRY
from models.events.topics import Cleanup, Topic
from streams.kafka.topics import GROWING, BrokerTopic
from streams.settings import Settings

_REPLICAS_FOR_QUORUM = 3


class DriftKind(StrEnum):
    """Kinds of difference."""

    MISSING = "missing"
    TOO_FEW_PARTITIONS = "too_few_partitions"
    TOO_MANY_PARTITIONS = "too_many_partitions"
    REPLICATION = "replication"
    CONFIG = "config"
    CO_PARTITIONING = "co_partitioning"


class TopicDrift(Struct, frozen=True):
    """One difference between the broker and the table.

    Attributes:
        topic: Full name.
        kind: What is different.
        field: Partition count, replication, or the configuration entry.
        standing: As it is; empty for a missing topic.
        wanted: As it should be.
        action: What `apply` does about it.
    """

    topic: str
    kind: DriftKind
    field: str
    standing: str
    wanted: str
    action: str


def wanted_topics(settings: Settings) -> list[BrokerTopic]:
    """The topic table under the settings' prefix, partition count and replication."""
    kafka = settings.kafka
    return [
        BrokerTopic(
            name=topic.full_name(settings.topic_prefix),
            partitions=kafka.partitions or topic.partitions,
            replication=kafka.replication,
            config=_config(topic, kafka.replication, sealed=settings.encryption.keyring is not None),
        )
        for topic in REGISTRY.topics
    ]


def _config(topic: Topic, replication: int, *, sealed: bool) -> dict[str, str]:
    config = {
        "cleanup.policy": topic.cleanup.value,
        # Content that is encrypted is a third larger, of refused records three quarters.
        "max.message.bytes": str(topic.max_message_bytes * (2 if sealed else 1)),
        "message.timestamp.type": "LogAppendTime" if topic.log_append_time else "CreateTime",
    }
    if topic.cleanup is Cleanup.DELETE:
        retention = topic.retention
        config["retention.ms"] = "-1" if retention is None else str(int(retention.total_seconds() * 1000))
    else:
        config["min.compaction.lag.ms"] = str(int(topic.compaction_lag.total_seconds() * 1000))
        config["max.compaction.lag.ms"] = str(int(topic.compacted_within.total_seconds() * 1000))
    if topic.segment is not None:
        config["segment.ms"] = str(int(topic.segment.total_seconds() * 1000))
    if replication >= _REPLICAS_FOR_QUORUM:
        # With acks=all: what was acknowledged outlives one broker.
        config["min.insync.replicas"] = "2"
    return config


def compare(wanted: Sequence[BrokerTopic], standing: Mapping[str, BrokerTopic]) -> list[TopicDrift]:
    """Differences in the order of the table; equal partition counts of all topics are checked last.

    Outputs are keyed like the turns, and a worker keeps a session's state where its turns are: topics of different
    partition counts would put one session in different places.
    """
    found: list[TopicDrift] = []
    for topic in wanted:
        present = standing.get(topic.name)
        if present is None:
            size = f"{topic.partitions} partitions, replication {topic.replication}"
            found.append(TopicDrift(topic.name, DriftKind.MISSING, "topic", "", size, "create"))
        else:
            found += _differ(topic, present)
    return found + _co_partitioning([standing.get(topic.name, topic) for topic in wanted])


def _differ(wanted: BrokerTopic, present: BrokerTopic) -> list[TopicDrift]:
    name = wanted.name
    found: list[TopicDrift] = []
    if present.partitions != wanted.partitions:
        few = present.partitions < wanted.partitions
        kind = DriftKind.TOO_FEW_PARTITIONS if few else DriftKind.TOO_MANY_PARTITIONS
        action = "moves keys: new prefix and `topics copy`" if few else "none, Kafka cannot remove partitions"
        found.append(TopicDrift(name, kind, "partitions", str(present.partitions), str(wanted.partitions), action))
    if present.replication < wanted.replication:
        action = "none, use kafka-reassign-partitions"
        found.append(
            TopicDrift(
                name, DriftKind.REPLICATION, "replication", str(present.replication), str(wanted.replication), action
            )
        )
    for field, value in wanted.config.items():
        if (now := present.config.get(field, "")) != value:
            found.append(TopicDrift(name, DriftKind.CONFIG, field, now, value, "set"))
    return found


def _co_partitioning(topics: Sequence[BrokerTopic]) -> list[TopicDrift]:
    turns, *others = topics
    return [
        TopicDrift(
            topic.name,
            DriftKind.CO_PARTITIONING,
            "partitions",
            str(topic.partitions),
            f"{turns.partitions}, as {turns.name}",
            "none by itself: correct the partition counts",
        )
        for topic in others
        if topic.partitions != turns.partitions
    ]


def refused(found: Sequence[TopicDrift], *, allow_repartition: bool) -> list[str]:
    """Reasons against `apply`, a sentence for all topics with the same reason; empty if there are none."""
    topics: dict[tuple[DriftKind, str, str], list[str]] = {}
    for difference in found:
        topics.setdefault((difference.kind, difference.standing, difference.wanted), []).append(difference.topic)
    reasons: list[str] = []
    for (kind, standing, wanted), names in topics.items():
        counts = f"{', '.join(names)}: {standing} partitions, wanted {wanted}."
        keep = f"TURNTIDE_KAFKA__PARTITIONS={standing} keeps them as they are."
        if kind is DriftKind.TOO_MANY_PARTITIONS:
            reasons.append(f"{counts} Kafka cannot remove partitions; {keep} A new TURNTIDE_TOPIC_PREFIX starts anew.")
        elif kind is DriftKind.TOO_FEW_PARTITIONS and not allow_repartition:
            reasons.append(
                f"{counts} Adding some moves keys, so that sessions in progress would lose their state; {keep} "
                f"{GROWING}. Without any session in progress: stop the workers and use --allow-repartition."
            )
    return reasons
