"""Erasing from Kafka itself: null records where the subject's value is the last, and logs cut off at the erasure."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from unittest.mock import AsyncMock

import pytest
from aiokafka import TopicPartition
from msgspec.structs import replace

from jobs.operate.topics import differences
from models.erasure import ErasureSubject
from models.events import session_key
from models.events.topics import CONVERSATION_TOPICS, PROFILES, TURNS, Topic
from models.policy import IntakePolicy
from models.wire.codec import encode
from streams.erase.logs import Logs, Readers, opened
from streams.erase.purge import purge
from streams.erase.record import KafkaEraseRequests
from streams.erase.sweep import look, sweep
from streams.kafka.producer import Record
from streams.settings import Settings
from tests.support.fault_driver import recorded, records_on, said
from tests.support.lake_records import profile
from tests.support.subjects import of_session, sessions

PARTITIONS = 1

ANNA = ErasureSubject("session", sessions=sessions("anna-1") | sessions("anna-1", app_id="a"))
"""Of the profiles' app and of the turns'."""


@pytest.fixture
async def logs(settings: Settings) -> AsyncIterator[Logs]:
    """The topics."""
    async with opened(settings, IntakePolicy()) as logs:
        yield logs


def place(logs: Logs, topic: Topic) -> TopicPartition:
    """The one partition of a topic."""
    return TopicPartition(logs.name(topic), 0)


async def keep(logs: Logs, topic: Topic, records: Sequence[Record]) -> None:
    """Write records to the one partition."""
    await logs.write({place(logs, topic): records})


def profiled(session_id: str, turns: int = 1) -> Record:
    """A profile as it is written."""
    return Record(session_id.encode(), encode(profile("p", turns=turns, session_id=session_id)))


async def values(settings: Settings, topic: Topic) -> list[tuple[bytes | None, bool]]:
    """Key of each record, and whether it has a value."""
    return [(record.key, record.value is not None) for record in await records_on(settings, topic)]


async def test_a_session_id_is_looked_up_in_all_apps(settings: Settings, logs: Logs) -> None:
    """By its last profile, under the keys of now and of earlier releases; what is forgotten is nobody's any more."""
    told = [replace(profile("p", turns=1, session_id="chat"), app_id=app_id) for app_id in ("shop", "bank", "gone")]
    keys = [session_key("shop", "chat"), "chat", session_key("gone", "chat")]
    await keep(
        logs,
        PROFILES,
        [
            *(Record(key.encode(), encode(event)) for key, event in zip(keys, told, strict=True)),
            profiled("chat-2"),
            Record(keys[-1].encode(), None),
        ],
    )
    found = [await KafkaEraseRequests(settings).apps_of(name) for name in ("chat", "nothing")]

    assert found == [{"shop", "bank"}, set()]


async def test_what_is_said_after_the_erasure_stays(
    settings: Settings, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that is written between the look and the null record belongs to what came later."""
    two_sessions = of_session("anna-1", "anna-2")
    await keep(logs, PROFILES, [profiled("anna-1"), profiled("anna-2"), profiled("bert-1")])
    write, read = logs.write, logs.extents
    looks = 0

    async def extents(_: Logs, topic: Topic, **more: object) -> object:
        nonlocal looks
        looks += 1
        if looks == 2:
            await write({place(logs, PROFILES): [profiled("anna-1", 9)]})
        return await read(topic, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Logs, "extents", extents)

    assert [await sweep(logs, PROFILES, two_sessions.concerns) for _ in range(2)] == [1, 1]
    assert (await values(settings, PROFILES))[3:] == [(b"anna-1", True), (b"anna-2", False), (b"anna-1", False)]


async def test_logs_are_cut_at_the_erasure(settings: Settings, logs: Logs) -> None:
    """Everything before it goes from the partitions concerned; no other topic loses anything."""
    turns, names = place(logs, TURNS), ("anna-1", "bert-1", "anna-1")
    await keep(logs, TURNS, [recorded(said(n, session_id=name)) for n, name in enumerate(names)])
    await keep(logs, CONVERSATION_TOPICS, [Record(b"bert-1", b"{}")])
    residual = await look(logs, TURNS, ANNA.concerns)
    readers = Readers(logs, partial(logs.ends, TURNS), within=timedelta(seconds=30))
    await purge(logs, readers, "r-1", {TURNS: residual.places}, AsyncMock(return_value=True))

    assert (residual.past_count, residual.places) == (2, {turns})
    assert await values(settings, TURNS) == []
    assert await logs.ends(TURNS) == {turns: 4}
    assert await values(settings, CONVERSATION_TOPICS) == [(b"bert-1", True)]
    assert await differences(settings) == []
