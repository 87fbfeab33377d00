"""Carrying out erasures from `erasures.v1`: tried again until proved, and proved once."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

import pytest
from aiokafka import TopicPartition

from models.erasure import ErasureSubject, digest
from models.errors import StoreUnavailable
from models.events import DEFAULT_APP, ErasedStore, EraseRequested, ErasureProved, SessionName
from models.events.topics import ERASURES, PROFILES
from models.policy import IntakePolicy
from streams.erase import executor
from streams.erase.archive import Spoke, WriterArchive
from streams.erase.executor import Executor
from streams.erase.logs import opened
from streams.erase.purge import tightened
from streams.erase.record import KafkaEraseRequests
from streams.kafka.topics import existing_topics, set_config
from streams.settings import Settings
from tests.support.fault_driver import recorded, records_on, said, send, until
from tests.support.subjects import sessions

PARTITIONS = 1

ROWS = ErasedStore(store="archive turns", looked_at=3, removed=2, remaining=0)


class Everything(dict[TopicPartition, int]):
    """Whatever is asked for is landed."""

    def get(self, place: TopicPartition, default: int = 0) -> int:  # type: ignore[override]  # noqa: ARG002
        """Beyond any end."""
        return 2**62


class ArchiveThatFailsOnce(WriterArchive):
    """Has landed everything, knows no session, and cannot erase at the first time."""

    def __init__(self) -> None:
        self.asked: list[ErasureSubject] = []

    async def landed(self) -> dict[TopicPartition, int]:
        """Everything."""
        return Everything()

    async def sessions_of(self, request: EraseRequested) -> Sequence[Spoke]:  # noqa: ARG002 - as the real one
        """None."""
        return []

    async def namesakes_of(self, sessions: Collection[SessionName]) -> set[SessionName]:
        """One app has such a session."""
        return {SessionName("a", each.session_id) for each in sessions if each.session_id == "s-1"}

    async def erase(self, subject: ErasureSubject) -> list[ErasedStore]:
        """At the second time."""
        self.asked.append(subject)
        if len(self.asked) == 1:
            raise StoreUnavailable("the disk is full")
        return [ROWS]


@asynccontextmanager
async def executing(settings: Settings, archive: ArchiveThatFailsOnce) -> AsyncIterator[None]:
    """An executor, stopped at the end."""
    running = Executor(settings, IntakePolicy(), archive)
    running.start()
    try:
        yield
    finally:
        await running.stop()


async def on_erasures(settings: Settings) -> list[tuple[str, bool]]:
    """Key of each record of `erasures.v1`, and whether it has a value."""
    found = await records_on(settings, ERASURES)
    return [(record.key.decode(), record.value is not None) for record in found]


async def test_an_erasure_is_tried_until_it_is_proved(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails stays pending; then one proof, the request goes, and nothing is begun again."""
    monkeypatch.setattr(executor, "TRY_AGAIN_AFTER_S", 0.0)
    await send(settings, [recorded(said(n, session_id=name)) for n, name in enumerate(["s-1", "s-1", "s-2"])])
    requests, archive = KafkaEraseRequests(settings), ArchiveThatFailsOnce()
    # As of a release that named no app.
    request = EraseRequested(request_id="r-1", timestamp=datetime.now(UTC), scope="session", session_id="s-1", by="me")
    await requests.request(request)
    async with executing(settings, archive):
        proof: ErasureProved = await until(partial(requests.proof, "r-1"), "the proof")
        await until(partial(_request_is_gone, settings), "the request's null record")
    after = await on_erasures(settings)
    async with executing(settings, archive):
        await requests.request(
            EraseRequested(request_id="r-2", timestamp=datetime.now(UTC), scope="session", session_id="nobody's")
        )
        nothing: ErasureProved = await until(partial(requests.proof, "r-2"), "the second proof")
    lines = {store.store: (store.removed, store.remaining) for store in proof.stores}

    assert after == [
        ("r-1/erase_requested", True),
        *[("r-1/vectors_erasure_due", True)] * 2,  # without an index too: the next try knows the sessions from it
        ("r-1/erasure_proved", True),
        ("r-1/erase_requested", False),
        ("r-1/vectors_erasure_due", False),
    ]
    assert (proof.subject, proof.by, proof.sessions) == (digest("session", "", "", "s-1"), "me", 1)
    assert [subject.sessions for subject in archive.asked] == [
        *[sessions("s-1", app_id="a")] * 2,
        sessions("nobody's", app_id=DEFAULT_APP),
    ]
    assert lines["archive turns"] == (2, 0)
    assert lines["topic turns.v1"] == (0, 4)  # two turns, and what told the sessions role to forget them, twice
    assert all(store.expires_at for store in proof.stores if store.remaining)
    assert {store.store for store in nothing.stores if store.remaining} == set()


async def _request_is_gone(settings: Settings) -> bool:
    return ("r-1/erase_requested", False) in await on_erasures(settings)


async def test_what_a_killed_erasure_had_set_goes_when_an_executor_starts(settings: Settings) -> None:
    """Topics are compacted as before, whether or not anything is asked for; what an operator set stays."""
    name = PROFILES.full_name(settings.topic_prefix)
    async with opened(settings, IntakePolicy()) as logs:

        async def set_on_it() -> dict[str, str]:
            return dict((await existing_topics(logs.admin, [name]))[name].own_config)

        async def as_before() -> bool:
            return await set_on_it() == before

        await set_config(logs.admin, {name: {"segment.bytes": "1048576"}})
        before = await set_on_it()
        abandoned = tightened(logs, [PROFILES])
        await abandoned.__aenter__()
        tight = await set_on_it()
        async with executing(settings, ArchiveThatFailsOnce()):
            await until(as_before, "the configuration of before")

    assert (tight["min.cleanable.dirty.ratio"], before["segment.bytes"]) == ("0.0", "1048576")
