"""The newest code on what earlier releases left: topics, changelogs, offsets, archive and index, as they wrote them.

The golden files are made by `make.py`, with the code of the release.
"""

import asyncio
import lzma
import tarfile
from collections.abc import AsyncIterator, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.structs import OffsetAndMetadata

from jobs.operate.migrate import Does, Step, apply, steps
from jobs.replay.comparison import Settled
from jobs.shared.role_process import free_port
from jobs.shared.topic_drift import wanted_topics
from models.events import Role, Turn
from models.events.topics import TURNS
from streams.archive.catalog import paths_of, reading
from streams.kafka.client import admin, consumer
from streams.kafka.topics import create, set_config
from streams.settings import KafkaSettings, Settings, load_settings
from streams.settings.http import HttpSettings
from streams.wiring import ROLES
from tests.support.fault_driver import recorded, said, send, settled_quietly
from tests.upgrades.make import KeptRecord, Log

_HERE = Path(__file__).parent
_RELEASES = sorted(folder.name for folder in _HERE.glob("v*"))
_ROLES = ("sessions", "memory", "enrich", "index", "archive")
_MORE_TURNS = 12
_RULES_CHANGED = {
    *(f"{topic}.v1 changed" for topic in ("alerts", "commands", "compactions", "episodes", "facts")),
    *("memories.v1 changed", "profiles.v1 changed", "projects.v1 changed", "windows.v1 changed"),
    *("profiles.v1 false", "profiles.v1 missing", "archive profiles.v1 false", "archive profiles.v1 missing"),
    *("memories.v1 false", "memory-events.v1 missing", "users' state false", "users' state changed", "state changed"),
    *("archive memories.v1 false", "archive memory-events.v1 missing"),
    *("conversation-topics.v1 changed", "commands.v1 missing", "archive commands.v1 missing"),
}
"""Where a replay by today's rules differs from what a release wrote by its own: memories are per user, episodes tell of
a whole session, an alert's rise is told, turns are scored by other weights, "Me llamo" says a name but has no risk,
what was forgotten is counted on from, topics, of importance 1 where nobody rated them, are handed to their user, chunks
and episodes of projects say what summarised them, and a session's first turn has a profile, then every fifth."""


class Left(msgspec.Struct):
    """What a release left, loaded again."""

    log: Log
    settings: Settings


@pytest.fixture(params=[*(pytest.param(each, marks=pytest.mark.slow) for each in _RELEASES[:-1]), _RELEASES[-1]])
async def left(request: pytest.FixtureRequest, kafka: str, tmp_path: Path) -> AsyncIterator[Left]:
    """A release's topics under their own names, its offsets, and its data directory."""
    folder = _HERE / request.param
    log = msgspec.msgpack.decode(lzma.decompress((folder / "log.xz").read_bytes()), type=Log, strict=False)
    settings = load_settings(
        kafka=KafkaSettings(
            bootstrap=kafka,
            partitions=log.partitions,
            session_timeout=timedelta(seconds=6),
            heartbeat_interval=timedelta(seconds=1),
        ),
        http=HttpSettings(**{f"{role}_port": free_port() for role in _ROLES}),
        topic_prefix=log.prefix,
        data_dir=tmp_path / "data",
    )
    for name in ("archive", "vectors"):
        with tarfile.open(folder / f"{name}.tar.xz") as packed:
            packed.extractall(settings.data_dir, filter="data")
    await _load(settings, log)
    yield Left(log, settings)
    async with admin(settings.kafka) as client:
        await client.delete_topics([name for name in await client.list_topics() if name.startswith(f"{log.prefix}.")])


async def _load(settings: Settings, log: Log) -> None:
    """Write every record where it stood, with its time, and commit what the groups had committed.

    Such old records would be retention's at once: it is off. The broker stamps turns only from then on.
    """
    names = {f"{log.prefix}.{name}" for name in log.records}
    topics = [topic for topic in wanted_topics(settings) if topic.name in names]
    kept = {topic.name: {**topic.config, "message.timestamp.type": "CreateTime"} for topic in topics}
    for config in kept.values():
        if "retention.ms" in config:
            config["retention.ms"] = "-1"
    async with admin(settings.kafka) as client:
        await create(client, [msgspec.structs.replace(topic, config=kept[topic.name]) for topic in topics])
        await _write(settings, log)
        await set_config(
            client, {topic.name: {"message.timestamp.type": topic.config["message.timestamp.type"]} for topic in topics}
        )
    for role, committed in log.committed.items():
        places = {
            TopicPartition(f"{log.prefix}.{topic}", number): OffsetAndMetadata(offset, "")
            for topic, offsets in committed.items()
            for number, offset in offsets.items()
        }
        async with consumer(settings.kafka, group_id=f"{log.prefix}.{role}") as client:
            client.assign([*places])
            await client.commit(places)


async def _write(settings: Settings, log: Log) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=settings.kafka.bootstrap, enable_idempotence=True, max_request_size=8 * 1024 * 1024
    ) as producer:
        for topic, partitions in log.records.items():
            for number, records in partitions.items():
                sent = [await _sent(producer, f"{log.prefix}.{topic}", number, record) for record in records]
                assert [place.offset for place in await asyncio.gather(*sent)] == list(range(len(records)))


async def _sent(producer: AIOKafkaProducer, topic: str, number: int, record: KeptRecord) -> Any:
    return await producer.send(
        topic, record.value, key=record.key, partition=number, timestamp_ms=record.timestamp_ms, headers=record.headers
    )


async def _while_running(settings: Settings, test: Coroutine[Any, Any, Settled]) -> Settled:
    """What the test gives while every role of this release runs in this process; one that ends early fails it."""
    stop, doing = asyncio.Event(), asyncio.create_task(test)
    roles = {role: asyncio.ensure_future(ROLES[role](settings, stop)) for role in _ROLES}
    try:
        await asyncio.wait({doing, *roles.values()}, return_when=asyncio.FIRST_COMPLETED)
        for role, running in roles.items():
            assert not running.done(), f"{role} ended: {running.exception()!r}"
        return await doing
    finally:
        doing.cancel()
        stop.set()
        await asyncio.gather(doing, *roles.values(), return_exceptions=True)


def _more(log: Log) -> list[Turn]:
    """The conversation of the project goes on, and a new one begins."""
    at = log.made_at
    return [
        said(
            turn,
            session_id=session_id,
            user_id="u-0",
            app_id="app-0",
            role=Role.USER if turn % 2 == 0 else Role.ASSISTANT,
            content=f"And which trains run to the coast on day {turn}?",
            at=at + timedelta(seconds=turn),
        )
        for session_id, first in (("s-after-the-upgrade", 0), (_last_session(log), 200))
        for turn in range(first, first + _MORE_TURNS // 2)
    ]


def _last_session(log: Log) -> str:
    """Session of the last good turn but the project's: it is open."""
    latest = max(
        (
            record
            for records in log.records[TURNS.name].values()
            for record in records
            if (record.key or b"")[:2] == b"s-"
        ),
        key=lambda record: record.timestamp_ms,
    )
    return (latest.key or b"").decode()


async def test_the_newest_code_goes_on_where_a_release_stopped(left: Left) -> None:
    """State is recovered from the old changelog, new turns are folded; all that no rule changed equals a replay."""
    log, settings = left.log, left.settings
    await _migrate(settings, await asyncio.to_thread(steps, settings))
    after = await asyncio.to_thread(steps, settings)
    await send(settings, [recorded(turn) for turn in _more(log)])
    index_url = f"http://127.0.0.1:{settings.http.index_port}"
    settled = await _while_running(settings, settled_quietly(settings, index_url))
    found = settled.comparison
    with reading(paths_of(settings)) as con:
        ((turns, sessions),) = con.sql("SELECT count(*), count(DISTINCT session_id) FROM turns").fetchall()
        ((alerts,),) = con.sql("SELECT count(DISTINCT alert_id) FROM alerts").fetchall()

    assert (found.not_checked, found.repeats) == ({}, 0), "state was folded anew, not recovered"
    assert set(found.counts) <= _RULES_CHANGED
    assert (len(settled.oracle.turn_keys), turns) == (log.turns + _MORE_TURNS, log.turns + _MORE_TURNS)
    assert sessions > 1
    assert alerts > 0
    assert _left_to_do(after) == []


def _left_to_do(found: list[Step]) -> list[Step]:
    """What `turntide ops migrate` asks for besides the retention that the test turned off."""
    return [step for step in found if step.does is not Does.NOTHING and "retention.ms" not in step.standing]


async def _migrate(settings: Settings, found: list[Step]) -> None:
    """What `turntide ops migrate --apply` does, but for retention, which would take records as old as these at once."""
    assert {step.does for step in _left_to_do(found)} <= {Does.APPLY}
    missing = {step.what.removeprefix("topics ") for step in found if step.standing.endswith("missing")}
    async with admin(settings.kafka) as client:
        await create(client, [topic for topic in wanted_topics(settings) if topic.name in missing])
    await asyncio.to_thread(apply, settings, [step for step in found if step.what == "archive"])
