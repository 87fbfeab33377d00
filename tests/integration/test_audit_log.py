"""The audit on a real broker: records arrive as they are, and one that is away costs no more than the wait."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from models.errors import DeliveryFailed
from models.events import AccessAudited
from models.events.topics import AUDIT
from models.wire.codec import decode_output, encode
from streams.http.audit import AuditLog
from streams.http.audit_log import KafkaAudit
from streams.kafka.client import admin, read_to_end
from streams.kafka.topics import BrokerTopic, create
from streams.settings import load_settings

pytestmark = pytest.mark.kafka


def event(number: int) -> AccessAudited:
    """A record."""
    return AccessAudited(
        id=f"{number:032}", timestamp=datetime.now(UTC), kind="acted", by="b", method="GET", route="/x", status=200
    )


async def test_records_arrive(kafka: str, topic_prefix: str) -> None:
    """What is waited for, and what is left when the role ends."""
    settings = load_settings(kafka={"bootstrap": kafka}, topic_prefix=topic_prefix)
    async with admin(settings.kafka) as client:
        await create(client, [BrokerTopic(name=AUDIT.full_name(topic_prefix), partitions=3, replication=1, config={})])
    log = KafkaAudit(settings)
    sent = [event(n) for n in range(5)]
    async with log.running():
        await log.write(sent[0])
        for each in sent[1:]:
            log.record(each)
    topic = AUDIT.full_name(topic_prefix)
    found = [encode(decode_output(AUDIT, record.value)) async for record in read_to_end(settings.kafka, topic)]

    assert isinstance(log, AuditLog)
    assert sorted(found) == sorted(map(encode, sent))


async def test_a_broker_that_is_away_is_told(topic_prefix: str) -> None:
    """A required record fails with a reason; the role ends in time."""
    log = KafkaAudit(load_settings(kafka={"bootstrap": "127.0.0.1:9"}, topic_prefix=topic_prefix))
    async with asyncio.timeout(60), log.running():
        with pytest.raises(DeliveryFailed, match="cannot reach Kafka"):
            await log.write(event(1))
