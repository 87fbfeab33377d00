"""The archive role on a real broker: every record of every topic once, whatever happens to the role."""

import asyncio
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiokafka.admin import RecordsToDelete
from aiokafka.structs import TopicPartition
from msgspec.structs import replace

from jobs.lab.chaos.traffic import traffic
from models.errors import ConfigurationError
from models.events import ClockTicked, DeadLetter, SessionEnded
from models.events.topics import ALERTS, DEAD_LETTERS, PROFILES, TURNS
from models.risk.scorer import RuleScorer
from models.wire.codec import encode
from streams.archive.buffer import LandingBuffer, Move
from streams.archive.catalog import open_reader, paths_of, reading
from streams.archive.inputs import archived_count, archived_inputs
from streams.archive.rows import Rows
from streams.archive.verify import Verification, verify
from streams.archive.writer import LakeWriter
from streams.kafka.client import admin, consumer
from streams.kafka.producer import Record
from streams.oracle.replay import SessionReplay, feed_log
from streams.roles import archive
from streams.settings import Settings
from streams.settings.archive import ArchiveSettings
from streams.wiring import embedder_of, policy_of
from tests.support.fault_driver import WITHIN_S, recorded, running, send, until, write
from tests.support.lake_records import example, profile, turn

PARTITIONS = 3


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """An archive that lands and merges all the time."""
    eager = ArchiveSettings(flush_age=timedelta(milliseconds=100), merge_every=timedelta(seconds=1))
    return settings.model_copy(update={"archive": eager})


async def archived(settings: Settings) -> Verification:
    """Wait until everything that is in the log now is archived, then verify."""
    names = [topic.full_name(settings.topic_prefix) for topic in (TURNS, PROFILES, ALERTS, DEAD_LETTERS)]
    async with consumer(settings.kafka) as client:
        await client.topics()
        partitions = [TopicPartition(name, p) for name in names for p in range(PARTITIONS)]
        ends = {p: end for p, end in (await client.end_offsets(partitions)).items() if end}

    def landed() -> Verification | None:
        with suppress(ConfigurationError), closing(open_reader(paths_of(settings))) as con:
            rows = con.execute("SELECT topic, kafka_partition, next_offset FROM raw.offsets").fetchall()
            stats = {TopicPartition(topic, partition): next_ for topic, partition, next_ in rows}
            if all(stats.get(p, 0) >= end for p, end in ends.items()):
                return verify(con, prefix=settings.topic_prefix, now=datetime.now(UTC))
        return None

    found: Verification = await until(landed, "everything is archived")
    return found


def ask(settings: Settings, sql: str) -> list[tuple[Any, ...]]:
    """Ask as an analyst."""
    with closing(open_reader(paths_of(settings))) as con:
        return con.execute(sql).fetchall()


@pytest.mark.behaviour("card-06")
async def test_the_archive_replays_like_the_log(settings: Settings) -> None:
    """The same state, outputs and turns; late, doubled and broken records, controls and U+0000 among them."""
    sent = traffic(5, turns=600, ends_at=datetime.now(UTC), span=timedelta(hours=1))
    ticked = ClockTicked(session_id="clock-0", timestamp=datetime.now(UTC))
    odd = turn(0, session_id="odd", content="a\x00b", metadata={"a": 1, "b": "\u2400"}, project_id="p", risk=0.25)
    extra = [recorded(odd), recorded(ticked)]
    await send(settings, [*(each.record for each in sent), *extra])
    async with running(settings, "archive"):
        await archived(settings)
    policy, embedder = policy_of(settings), embedder_of(settings)
    replay = SessionReplay(policy, embedder, RuleScorer())
    with reading(paths_of(settings)) as lake:
        for record in archived_inputs(lake, TURNS.full_name(settings.topic_prefix)):
            replay.take(record)
        count = archived_count(lake)
    found, wanted = replay.result(), await feed_log(settings, SessionReplay(policy, embedder, RuleScorer()))

    letters = {id_ for id_, event in wanted.outputs.items() if isinstance(event, DeadLetter)}
    assert found.entities == wanted.entities
    assert found.outputs == {id_: event for id_, event in wanted.outputs.items() if id_ not in letters}
    assert found.turn_keys == wanted.turn_keys
    assert letters
    assert count > wanted.turns > 600


async def test_every_topic_is_archived(settings: Settings) -> None:
    """Turns, controls, outputs, dead letters; bad input and bad output are accounted for."""
    letter = replace(example(DeadLetter), topic=TURNS.full_name(settings.topic_prefix), partition=0, offset=0)
    letter = replace(letter, key=None, value=b"\xff", appended_at=datetime.now(UTC))
    async with running(settings, "archive"):
        turns = [turn(n % 10, session_id=f"s-{n // 10}") for n in range(200)]
        ended = SessionEnded(session_id="s-1", timestamp=datetime.now(UTC))
        await send(settings, [*map(recorded, turns), recorded(ended), Record(b"s-1", b"{broken")])
        for topic, *values in (
            (PROFILES, encode(profile("p-1", turns=3)), None),
            (DEAD_LETTERS, encode(letter)),
            (ALERTS, b"no alert"),
        ):
            await write(settings, topic, [Record(b"s-1", value) for value in values])
        found = await archived(settings)

    assert found.findings == []
    assert found.waiting_dead_letters == 1
    assert ask(settings, "SELECT count(*), count(DISTINCT session_id) FROM turns") == [(200, 20)]
    assert ask(settings, "SELECT type, reason FROM controls") == [("session_ended", "ended")]
    assert ask(settings, "SELECT count(*) FROM risk_points") == [(3,)]
    assert ask(settings, "SELECT value FROM dead_letters") == [(b"\xff",)]
    assert ask(settings, "SELECT reason, value FROM raw.skipped ORDER BY ALL") == [
        ("not_json", None),
        ("tombstone", None),
        ("undecodable_output", b"no alert"),
    ]


async def test_stop_lands_what_is_buffered(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clean stop leaves nothing behind, however long a flush might wait."""
    taken, all_taken = 0, asyncio.Event()
    take = LandingBuffer.take

    def counted(buffer: LandingBuffer, landed: Mapping[str, Rows]) -> None:
        nonlocal taken
        take(buffer, landed)
        taken += sum(map(len, landed.values()))
        if taken == 200:
            all_taken.set()

    monkeypatch.setattr(LandingBuffer, "take", counted)
    patient = settings.model_copy(update={"archive": ArchiveSettings(flush_age=timedelta(hours=1))})
    async with running(patient, "archive"):
        await send(settings, [recorded(turn(n)) for n in range(200)])
        await asyncio.wait_for(all_taken.wait(), 60)
        before = ask(settings, "SELECT count(*) FROM raw.turns")

    assert before == [(0,)]
    assert ask(settings, "SELECT count(*), count(DISTINCT kafka_offset) FROM raw.turns") == [(200, 200)]


async def test_workers_that_come_and_go(settings: Settings) -> None:
    """Each rebalance lands, hands over and seeks, also while files are merged: nothing is lost or doubled."""
    async with running(settings, "archive"):
        for n in range(3):
            async with running(settings, "archive"):
                await send(settings, [recorded(turn(k, session_id=f"s-{n}-{k % 9}")) for k in range(500)])
                await archived(settings)
        found = await archived(settings)

    assert found.findings == []
    assert ask(settings, "SELECT count(*) FROM raw.turns") == [(1_500,)]


async def test_records_lost_to_retention_are_a_finding(settings: Settings) -> None:
    """The broker removed them before they were archived: said, not hidden."""
    name = TURNS.full_name(settings.topic_prefix)
    async with running(settings, "archive"):
        await send(settings, [recorded(turn(n)) for n in range(10)])
        await archived(settings)
    await send(settings, [recorded(turn(n)) for n in range(10, 20)])
    partition = int(ask(settings, "SELECT DISTINCT kafka_partition FROM raw.turns")[0][0])
    async with admin(settings.kafka) as client:
        await client.delete_records({TopicPartition(name, partition): RecordsToDelete(15)})
    async with running(settings, "archive"):
        found = await archived(settings)

    assert found.findings == [
        f"{name}-{partition}: 5 records were removed by retention before they were archived: lost"
    ]
    assert ask(settings, "SELECT count(*) FROM raw.turns") == [(15,)]


async def test_recreated_topic_is_refused(settings: Settings) -> None:
    """An archive that is ahead of the log belongs to another one: better stop than guess."""
    place = TopicPartition(TURNS.full_name(settings.topic_prefix), 0)
    buffer = LandingBuffer()
    buffer.moves[place] = Move(None, 0, 1_000)
    writer = LakeWriter(paths_of(settings))
    writer.land(buffer, now=datetime.now(UTC))
    writer.close()

    with pytest.raises(ConfigurationError, match=r"up to offset 1000, but the topic ends at 0"):
        await asyncio.wait_for(archive.run(settings, policy_of(settings), stop=asyncio.Event()), WITHIN_S)
