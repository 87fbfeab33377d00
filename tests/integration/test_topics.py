"""Topics on a real broker: applied once, compared exactly, and nothing of others undone."""

import pytest

from jobs.operate.topics import apply_topics, differences
from jobs.shared.topic_drift import DriftKind, wanted_topics
from models.entities import REGISTRY
from models.errors import ConfigurationError, StoreUnavailable
from streams.kafka.client import admin, require_topic
from streams.kafka.topics import BrokerTopic, existing_topics, set_config
from streams.settings import Settings, load_settings


def settings_for(kafka: str, prefix: str, partitions: int = 2) -> Settings:
    """Settings of one test."""
    return load_settings(kafka={"bootstrap": kafka, "partitions": partitions}, topic_prefix=prefix)


async def standing(settings: Settings) -> dict[str, BrokerTopic]:
    """The test's topics on the broker."""
    async with admin(settings.kafka) as client:
        return await existing_topics(client, [topic.name for topic in wanted_topics(settings)])


async def test_apply_creates_mends_and_widens(kafka: str, topic_prefix: str) -> None:
    """Asking makes no topic with the broker's defaults; after the first apply nothing differs, and none is needed.

    A changed retention goes back; an entry that an operator set beside it survives Kafka's replace-all request. More
    partitions would move keys: refused without the flag and nothing changed, done with it.
    """
    settings = settings_for(kafka, topic_prefix)
    await differences(settings)
    with pytest.raises(ConfigurationError, match="turntide topics apply"):
        await require_topic(settings.kafka, f"{topic_prefix}.turns.v1")
    asked = await standing(settings)
    first = await apply_topics(settings)
    second = await apply_topics(settings)
    topics = await standing(settings)

    assert [difference.kind for difference in first] == [DriftKind.MISSING] * len(REGISTRY.topics)
    assert (asked, second) == ({}, [])
    assert await differences(settings) == []
    assert {topic.partitions for topic in topics.values()} == {2}

    name = f"{topic_prefix}.turns.v1"
    async with admin(settings.kafka) as client:
        await set_config(client, {name: {"retention.ms": "1000", "segment.ms": "3600000"}})
    found = await differences(settings)
    await apply_topics(settings)
    own = (await standing(settings))[name].own_config

    assert [(d.kind, d.field, d.standing, d.wanted) for d in found] == [
        (DriftKind.CONFIG, "retention.ms", "1000", "2592000000")
    ]
    assert (own["retention.ms"], own["segment.ms"]) == ("2592000000", "3600000")

    wider = settings_for(kafka, topic_prefix, partitions=4)
    with pytest.raises(ConfigurationError, match="--allow-repartition"):
        await apply_topics(wider)
    before = {topic.partitions for topic in (await standing(wider)).values()}
    await apply_topics(wider, allow_repartition=True)
    after = {topic.partitions for topic in (await standing(wider)).values()}

    assert (before, after) == ({2}, {4})


async def test_broker_that_does_not_answer() -> None:
    """The error names the address, not a stack of the client library."""
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:9"):
        await differences(settings_for("127.0.0.1:9", "x"))
