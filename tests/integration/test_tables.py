"""State tables on a real broker: written through, rebuilt, fenced; and what an erasure removed leaves every disk."""

from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest

from jobs.operate.topics import apply_topics
from models.errors import Fenced
from models.events.topics import MEMORY_STATE, SESSION_STATE, Topic
from models.partition.log_fold import ERASED_PART, PARTITION_ENTITY
from streams.kafka.producer import Producer
from streams.settings import Settings, load_settings
from streams.state.table import StateTable
from tests.unit.test_state_rocksdb_erasure import content


@pytest.fixture
async def producer(settings: Settings) -> AsyncIterator[Producer]:
    """A started producer."""
    producer = Producer(settings)
    await producer.start()
    yield producer
    await producer.stop()


async def table(
    settings: Settings, producer: Producer, of: Topic = SESSION_STATE, partitions: Collection[int] = (0, 1)
) -> StateTable:
    """A worker's table, its partitions recovered."""
    table = StateTable(settings, of.full_name(settings.topic_prefix), producer)
    await table.recover(partitions)
    return table


async def test_state_is_rebuilt_from_the_changelog(settings: Settings, producer: Producer) -> None:
    """What one table wrote, a second one recovers: changes, deletions and all, per partition; megabytes at once."""
    first = await table(settings, producer)
    await first.write(0, 5, {"a": {"head": b"1", "b0": b"x"}, "b": {"head": b"2"}})
    await first.write(0, 9, {"a": {"head": b"3", "b0": None}, "b": {"head": None}})
    large: dict[str, bytes | None] = {f"b{n}": bytes([n]) * 256 * 1024 for n in range(10)}
    await first.write(1, 1, {"c": large})

    second = await table(settings, producer)

    assert second.partition(0).entities == {"a": {"head": b"3"}}
    assert second.partition(1).entities == {"c": large}
    assert second.partition(0).size_bytes == first.partition(0).size_bytes == 1


async def test_foreign_write_fences(settings: Settings, producer: Producer) -> None:
    """A worker whose partition another one wrote to must not go on."""
    zombie = await table(settings, producer)
    owner = await table(settings, producer)
    await owner.write(0, 7, {"a": {"head": b"new"}})

    with pytest.raises(Fenced):
        await zombie.write(0, 6, {"a": {"head": b"old"}})
    recovered = await table(settings, producer)

    assert recovered.partition(0).entities == {"a": {"head": b"new"}}


async def test_recovery_keeps_what_nobody_else_wrote_to(settings: Settings, producer: Producer) -> None:
    """A second recovery takes in what another worker wrote, and releases partitions that moved away."""
    first = await table(settings, producer)
    second = await table(settings, producer)
    await first.write(0, 1, {"a": {"head": b"1"}})
    kept = first.partition(0)

    await first.recover([0, 1])
    await second.recover([0])

    assert first.partition(0) is kept
    assert second.partition(0).entities == {"a": {"head": b"1"}}
    with pytest.raises(KeyError):
        second.partition(1)


CANARY = b"canary-0123456789"


def settings_of(kafka: str, prefix: str, data_dir: Path) -> Settings:
    """Settings of a worker with a disk of its own."""
    return load_settings(
        kafka={"bootstrap": kafka, "partitions": 1},
        topic_prefix=prefix,
        data_dir=data_dir,
        state={"store": "rocksdb"},
        http={"memory_port": 0},
    )


def held(folder: Path) -> bool:
    """Whether a file anywhere below holds the canary."""
    return any(CANARY in content(file) for file in folder.rglob("*") if file.is_file())


async def test_an_erasure_reaches_the_disk_of_every_worker(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    """Of the one that folds it before the write is done, of another one when it takes the partition over."""
    first, second = (settings_of(kafka, topic_prefix, tmp_path / name) for name in ("first", "second"))
    await apply_topics(first)
    producer = Producer(first)
    await producer.start()
    earlier = await table(first, producer, MEMORY_STATE, [0])
    await earlier.write(0, 1, {"user:a/u": {"head": CANARY, "t1": CANARY}, "user:a/v": {"head": b"v"}})
    earlier.close()
    later = await table(second, producer, MEMORY_STATE, [0])
    assert (held(tmp_path / "first"), held(tmp_path / "second")) == (True, True)

    gone: dict[str, bytes | None] = {"head": None, "t1": None}
    await later.write(0, 2, {"user:a/u": gone, PARTITION_ENTITY: {ERASED_PART: b"\x02"}}, erased=True)
    assert (held(tmp_path / "first"), held(tmp_path / "second")) == (True, False)
    later.close()
    earlier = await table(first, producer, MEMORY_STATE, [0])

    assert held(tmp_path / "first") is False
    assert dict(earlier.partition(0).entities["user:a/v"]) == {"head": b"v"}
    assert "user:a/u" not in earlier.partition(0).entities
    earlier.close()
    await producer.stop()
