"""Producers with transactions: what they abort was never said, to no role and to no command."""

from contextlib import closing

import pytest
from aiokafka import AIOKafkaProducer

from models.events.topics import TURNS
from streams.archive.catalog import open_reader, paths_of
from streams.roles.index import IndexRole
from streams.settings import Settings
from streams.settings.http import HttpSettings
from tests.support.fault_driver import assert_equal_to_replay, recorded, records_on, running, said, until


async def in_transactions(settings: Settings, *turns: tuple[int, bool]) -> None:
    """Each of these turns in a transaction of its own, which is committed or aborted."""
    producer = AIOKafkaProducer(bootstrap_servers=settings.kafka.bootstrap, transactional_id=settings.topic_prefix)
    await producer.start()
    try:
        for number, is_said in turns:
            record = recorded(said(number))
            await producer.begin_transaction()
            await producer.send_and_wait(
                TURNS.full_name(settings.topic_prefix), record.value, key=record.key, partition=0
            )
            await (producer.commit_transaction() if is_said else producer.abort_transaction())
    finally:
        await producer.stop()


async def test_what_was_aborted_is_nowhere(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """State, outputs, archive and index have the committed turns; the index is ready though the log ends in markers."""
    caught_up: list[IndexRole] = []
    has_caught_up = IndexRole._has_caught_up

    async def noted(role: IndexRole) -> bool:
        if found := await has_caught_up(role):
            caught_up.append(role)
        return found

    monkeypatch.setattr(IndexRole, "_has_caught_up", noted)
    await in_transactions(settings, (0, True), (1, False), (2, True), (3, True), (4, False))
    mine = settings.model_copy(update={"http": HttpSettings(sessions_port=0, index_port=0, archive_port=0)})

    async with running(mine, "sessions", "archive", "index"):
        await until(lambda: caught_up, "the index's readiness")
        settled = await assert_equal_to_replay(mine)
        await until(lambda: archived(mine) == [0, 2, 3], "the archived turns")

    assert settled.oracle.turns == 3
    assert [record.offset for record in await records_on(settings, TURNS)] == [0, 4, 6]


def archived(settings: Settings) -> list[int]:
    """Numbers of the archive's turns."""
    with closing(open_reader(paths_of(settings))) as lake:
        return [number for (number,) in lake.execute("SELECT turn FROM turns ORDER BY turn").fetchall()]
