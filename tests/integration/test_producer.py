"""Acknowledged writes on a real broker: batches by size, wholes as one, refusals as errors."""

from random import Random

import pytest
from aiokafka.admin import NewTopic

from models.errors import DeliveryFailed
from streams.kafka.client import admin, read_to_end
from streams.kafka.producer import MAX_RECORD_BATCH_BYTES, MAX_WHOLE_BATCH_BYTES, Producer, Record, acknowledged
from streams.settings import Settings, load_settings


@pytest.fixture
async def settings(kafka: str, topic_prefix: str) -> Settings:
    """One topic with the broker's usual limit of 1 MiB, named like the prefix."""
    settings = load_settings(kafka={"bootstrap": kafka}, topic_prefix=topic_prefix)
    async with admin(settings.kafka) as client:
        limit = {"max.message.bytes": str(1024 * 1024)}
        await client.create_topics([NewTopic(topic_prefix, 1, 1, topic_configs=limit)])
    return settings


async def values(settings: Settings) -> list[bytes]:
    """Everything on the topic."""
    return [record.value async for record in read_to_end(settings.kafka, settings.topic_prefix)]


async def test_many_records_arrive_in_order_in_batches_the_broker_takes(settings: Settings, producer: Producer) -> None:
    """Several megabytes are cut into record batches below the limit; headers and tombstones survive.

    The broker numbers what this producer sends, so that a retry after a lost answer is recognised (hazard 6).
    """
    manager = producer._producer._txn_manager
    sent = [Record(b"k", b"%04d" % n * 5_000, (("n", b"%d" % n),)) for n in range(200)]
    pending = await producer.write(settings.topic_prefix, 0, sent)
    await acknowledged(pending)

    assert len(pending) >= sum(record.size_bytes for record in sent) // MAX_RECORD_BATCH_BYTES
    assert await values(settings) == [record.value for record in sent]
    assert manager is not None
    assert (manager.producer_id >= 0, manager.transactional_id) == (True, None)


async def test_a_whole_is_one_batch_or_nothing(settings: Settings, producer: Producer) -> None:
    """It says where it begins; what no batch can hold or the broker refuses leaves no part behind."""
    records, megabyte = [Record(b"k", b"v")] * 3, Random(0).randbytes(1024 * 1024)
    begun = [await producer.write_whole(settings.topic_prefix, 0, records) for _ in range(3)]
    for count in (2, MAX_WHOLE_BATCH_BYTES // len(megabyte) + 1):
        with pytest.raises(DeliveryFailed, match=settings.topic_prefix if count > 2 else "acknowledge"):
            await producer.write_whole(settings.topic_prefix, 0, [Record(b"k", megabyte)] * count)

    assert begun == [0, 3, 6]
    assert await values(settings) == [b"v"] * 9
