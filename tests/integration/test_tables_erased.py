"""State tables on a real broker, in RocksDB: what an erasure removed leaves the worker's disk too."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobs.operate.topics import apply_topics
from models.entities import entity_key
from models.events import Position, UserErased, UserTurnAdded
from models.events.topics import COMMANDS, MEMORY_STATE
from models.partition.sessions import ERASED_PART, PARTITION_ENTITY
from models.wire.codec import encode
from streams.kafka.producer import Producer, Record, acknowledged
from streams.settings import Settings, load_settings
from streams.state.table import StateTable
from streams.wiring import ROLES
from tests.unit.test_state_rocksdb_erasure import content
from tests.user_driver import NOON, added, user_erased

pytestmark = pytest.mark.kafka
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


async def table_of(settings: Settings, producer: Producer) -> StateTable:
    """A worker's table, recovered."""
    table = StateTable(settings, MEMORY_STATE.full_name(settings.topic_prefix), producer)
    await table.recover([0])
    return table


def held(folder: Path) -> bool:
    """Whether a file anywhere below holds the canary."""
    return any(CANARY in content(file) for file in folder.rglob("*") if file.is_file())


async def test_an_erasure_reaches_the_disk_of_every_worker(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    """Of the one that folds it before the write is done, of another one when it takes the partition over."""
    first, second = (settings_of(kafka, topic_prefix, tmp_path / name) for name in ("first", "second"))
    await apply_topics(first)
    producer = Producer(first)
    await producer.start()
    earlier = await table_of(first, producer)
    await earlier.write(0, 1, {"user:a/u": {"head": CANARY, "t1": CANARY}, "user:a/v": {"head": b"v"}})
    earlier.close()
    later = await table_of(second, producer)
    assert (held(tmp_path / "first"), held(tmp_path / "second")) == (True, True)

    gone: dict[str, bytes | None] = {"head": None, "t1": None}
    await later.write(0, 2, {"user:a/u": gone, PARTITION_ENTITY: {ERASED_PART: b"\x02"}}, erased=True)
    assert (held(tmp_path / "first"), held(tmp_path / "second")) == (True, False)
    later.close()
    earlier = await table_of(first, producer)

    assert held(tmp_path / "first") is False
    assert dict(earlier.partition(0).entities["user:a/v"]) == {"head": b"v"}
    assert "user:a/u" not in earlier.partition(0).entities
    earlier.close()
    await producer.stop()


async def test_the_role_has_the_disk_give_it_up(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    """A user who is erased among others: once the next user's turn is folded no file holds the text."""
    settings = settings_of(kafka, topic_prefix, tmp_path)
    await apply_topics(settings)
    producer, stop = Producer(settings), asyncio.Event()
    await producer.start()
    role = asyncio.ensure_future(ROLES["memory"](settings, stop))
    said = [
        added(
            f"My name is {CANARY.decode() if user == 'u' else 'Alex'}.", "s", 0, Position("t", 0, n), NOON, user_id=user
        )
        for n, user in enumerate("uvw")
    ]
    try:
        await send(settings, producer, *said[:2])
        await until(settings, {"u", "v"}, role)
        await send(settings, producer, user_erased(), said[2])
        await until(settings, {"v", "w"}, role)
        held_meanwhile = held(tmp_path)
    finally:
        stop.set()
        await asyncio.gather(role, producer.stop())

    assert (held_meanwhile, held(tmp_path)) == (False, False)


async def send(settings: Settings, producer: Producer, *events: UserTurnAdded | UserErased) -> None:
    """Write commands."""
    records = [Record(entity_key(event).encode(), encode(event)) for event in events]
    await acknowledged(await producer.write(COMMANDS.full_name(settings.topic_prefix), 0, records))


async def until(settings: Settings, users: set[str], role: asyncio.Future[None]) -> None:
    """Wait until the changelog holds these users of an app and no others."""
    state = StateTable(settings, MEMORY_STATE.full_name(settings.topic_prefix), None)
    async with asyncio.timeout(60):
        while True:
            assert not role.done()
            await state.recover([0])
            if {*state.partition(0).entities} == {PARTITION_ENTITY, *(f"user:a/{user}" for user in users)}:
                return
            await asyncio.sleep(0.2)  # poll the changelog
