"""Recovery on a real broker: what stands at the changelog's end, or is gone from it, neither hangs nor misleads."""

import asyncio
import shutil
from datetime import timedelta

import pytest
from aiokafka import AIOKafkaProducer, ConsumerRecord, TopicPartition
from structlog.testing import capture_logs

from jobs.operate.topics import apply_topics
from models.errors import RecoveryFailed
from models.events.topics import SESSION_STATE
from streams.kafka.client import admin, consumer
from streams.kafka.producer import Producer, Record, acknowledged
from streams.kafka.topics import set_config
from streams.settings import Settings, StateSettings
from streams.state import table as recovery
from streams.state.changelog import records_of
from streams.state.table import StateTable
from tests.support.fault_driver import delete_topic

PARTITIONS = 1
_WITHIN_S = 60.0


@pytest.fixture(params=["memory", "rocksdb"])
def settings(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """Fresh topics with one partition, in either store."""
    return settings.model_copy(update={"state": StateSettings(store=request.param)})


def changelog(settings: Settings) -> str:
    """Its name."""
    return SESSION_STATE.full_name(settings.topic_prefix)


def table_of(settings: Settings, producer: Producer) -> StateTable:
    """A table as a worker has it, not recovered."""
    return StateTable(settings, changelog(settings), producer)


def content(table: StateTable) -> dict[str, dict[str, bytes]]:
    """Everything in partition 0."""
    return {entity: dict(parts) for entity, parts in table.partition(0).entities.items()}


async def recovered(settings: Settings, producer: Producer) -> StateTable:
    """A table, recovered."""
    table = table_of(settings, producer)
    await table.recover([0])
    return table


async def log_end(settings: Settings, offset: int) -> None:
    """Wait until the changelog ends there."""
    place = TopicPartition(changelog(settings), 0)
    async with consumer(settings.kafka) as client, asyncio.timeout(30):
        while (await client.end_offsets([place]))[place] < offset:  # noqa: ASYNC110 - a broker has no event to wait for
            await asyncio.sleep(0.02)


async def test_transaction_markers_at_the_end(settings: Settings, producer: Producer) -> None:
    """The end offset lies beyond the last record: recovery ends all the same, and writing goes on."""
    transactional = AIOKafkaProducer(bootstrap_servers=settings.kafka.bootstrap, transactional_id=settings.topic_prefix)
    async with transactional, transactional.transaction():
        (record,) = records_of({b"a\x1fhead": b"1"}, 3)
        await transactional.send_and_wait(changelog(settings), record.value, key=record.key, partition=0)
    await log_end(settings, 2)  # the marker comes after the transaction's end was acknowledged
    table = await recovered(settings, producer)
    await table.write(0, 4, {"b": {"head": b"2"}})
    table.close()

    again = await recovered(settings, producer)
    assert {"a": {"head": b"1"}, "b": {"head": b"2"}} == content(again)
    assert again.partition(0).progress.applied == 3
    again.close()


async def test_a_tail_that_compaction_removed(settings: Settings, producer: Producer) -> None:
    """A log with holes, and with nothing at all before its end, is recovered to its end."""
    tight = {
        "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "delete.retention.ms": "100",
        "min.compaction.lag.ms": "0", "max.compaction.lag.ms": "100",
    }  # fmt: skip
    async with admin(settings.kafka) as client:
        await set_config(client, {changelog(settings): tight})
    table = await recovered(settings, producer)
    offset = 0
    async with asyncio.timeout(_WITHIN_S), consumer(settings.kafka, auto_offset_reset="earliest") as client:
        tp = TopicPartition(changelog(settings), 0)
        client.assign([tp])
        while offset < 5 or not await _has_holes(client, tp):
            offset += 1
            await table.write(0, offset, {"a": {"head": f"{offset}".encode()}, "b": {"head": None}})
            await asyncio.sleep(0.2)  # segments close by time
    table.close()
    shutil.rmtree(settings.data_dir / "state", ignore_errors=True)

    again = await recovered(settings, producer)
    assert {"a": {"head": f"{offset}".encode()}} == content(again)
    assert again.partition(0).progress.applied == 2 * offset
    again.close()


async def _has_holes(client: object, tp: TopicPartition) -> bool:
    client.seek(tp, 0)  # type: ignore[attr-defined]
    polled = await client.getmany(tp, timeout_ms=2_000)  # type: ignore[attr-defined]
    return any(records[0].offset > 0 for records in polled.values())


@pytest.mark.parametrize("records", [0, 1, 5])
async def test_a_changelog_that_was_made_anew(settings: Settings, producer: Producer, records: int) -> None:
    """Shorter than before, as long, or longer: what the table had is dropped, what stands there now is read."""
    table = await recovered(settings, producer)
    await table.write(0, 8, {f"old-{n}": {"head": b"o"} for n in range(3)})
    await delete_topic(settings, SESSION_STATE)
    await apply_topics(settings)
    fresh = Producer(settings)
    await fresh.start()
    new = {f"new-{n}\x1fhead".encode(): b"n" for n in range(records)}
    await acknowledged(await fresh.write(changelog(settings), 0, records_of(dict(new), 2)))
    with capture_logs() as said:
        await table.recover([0])

    assert {f"new-{n}": {"head": b"n"} for n in range(records)} == content(table)
    assert "state_dropped" in [line["event"] for line in said]
    table.close()
    await fresh.stop()


async def test_state_that_was_not_current_for_long_is_read_anew(settings: Settings, producer: Producer) -> None:
    """The broker may have forgotten deletions meanwhile."""
    table = await recovered(settings, producer)
    await table.write(0, 8, {"a": {"head": b"1"}})
    table.close()
    aged = settings.model_copy(update={"state": settings.state.model_copy(update={"max_age": timedelta(0)})})
    table = table_of(aged, producer)
    await table.recover([0])
    kept = table.partition(0)
    await asyncio.sleep(0.01)  # older than nothing at all
    await table.recover([0])

    assert table.partition(0) is not kept
    assert {"a": {"head": b"1"}} == content(table)
    table.close()


async def test_a_record_that_is_none_of_ours(settings: Settings, producer: Producer) -> None:
    """Recovery says where it stands instead of guessing what it means."""
    await acknowledged(await producer.write(changelog(settings), 0, [Record(b"who", b"me")]))
    table = table_of(settings, producer)

    with pytest.raises(RecoveryFailed, match=r"sessions-state\.v1\[0\] up to 0"):
        await table.recover([0])
    table.close()


async def test_a_stale_write_is_mended(settings: Settings, producer: Producer) -> None:
    """What a replaced worker wrote last is written once more as it counts: compaction keeps a key's last record.

    Tools that look at state neither mend nor open a worker's folders.
    """
    table = await recovered(settings, producer)
    await table.write(0, 7, {"a": {"head": b"new"}, "gone": {"head": None}})
    stale = records_of({b"a\x1fhead": b"old", b"gone\x1fhead": b"old"}, 6)
    await acknowledged(await producer.write(changelog(settings), 0, stale))
    reader = StateTable(settings, changelog(settings), producer=None)
    await reader.recover([0])
    await table.recover([0])
    table.close()
    async with consumer(settings.kafka, auto_offset_reset="earliest") as client:
        tp = TopicPartition(changelog(settings), 0)
        client.assign([tp])
        records: list[ConsumerRecord] = []
        async with asyncio.timeout(_WITHIN_S):
            while len(records) < 6:
                records += (await client.getmany(tp, timeout_ms=500)).get(tp, [])

    last = {record.key: record.value and record.value[8:] for record in records}
    assert {b"a\x1fhead": b"new", b"gone\x1fhead": None} == last
    assert len(records) == 6
    assert ({"a": {"head": b"new"}}, 4) == (content(reader), reader.partition(0).progress.applied)


async def test_a_silent_changelog_fails_with_a_message(
    settings: Settings, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record for the set time: which partition, how many are left, and what to do."""
    table = await recovered(settings, producer)
    await table.write(0, 1, {"a": {"head": b"1"}})
    table.close()
    kafka = settings.kafka.model_copy(update={"recovery_silence": timedelta(seconds=1)})
    silent = table_of(settings.model_copy(update={"kafka": kafka}), producer)
    shutil.rmtree(settings.data_dir / "state", ignore_errors=True)

    async def nothing(*_args: object, **_options: object) -> dict[TopicPartition, list[object]]:
        await asyncio.sleep(0.1)
        return {}

    monkeypatch.setattr("aiokafka.AIOKafkaConsumer.getmany", nothing)
    with pytest.raises(RecoveryFailed, match=r"returned nothing for 1 s, partitions 0 \(1 records left\)"):
        await silent.recover([0])
    assert silent.recovering is None
    silent.close()


async def test_progress_is_told(settings: Settings, producer: Producer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records, total, per cent and speed in the log, and a sentence for readiness."""
    table = await recovered(settings, producer)
    await table.write(0, 1, {f"s-{n}": {"head": b"1"} for n in range(300)})
    table.close()
    shutil.rmtree(settings.data_dir / "state", ignore_errors=True)
    monkeypatch.setattr(recovery, "PROGRESS_EVERY_S", 0.0)
    monkeypatch.setattr(recovery, "POLL_RECORDS", 100)
    again, sentences = table_of(settings, producer), set()
    noted = recovery.RecoveryProgress.note

    def note(progress: recovery.RecoveryProgress, records: int, remaining: int) -> None:
        noted(progress, records, remaining)
        sentences.add(again.recovering)

    monkeypatch.setattr(recovery.RecoveryProgress, "note", note)
    with capture_logs() as said:
        await again.recover([0])

    progress = [line for line in said if line["event"] == "recovery_progress"]
    assert [(100, 300, 33), (200, 300, 66), (300, 300, 100)] == [
        (line["records"], line["total"], line["per_cent"]) for line in progress
    ]
    assert all(line["records_per_s"] > 0 for line in progress)
    assert f"recovering {changelog(settings)}: 200 of 300 records (66 %)" in sentences
    again.close()
