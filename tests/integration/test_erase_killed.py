"""An archive role that is killed −9 while it erases somebody: started again, it brings the erasure to its end."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.shared.role_process import RoleProcess
from models.events import EraseRequested, ErasureProved, Turn
from models.events.topics import FACTS, MEMORY_STATE, SESSION_STATE, Topic
from models.partition.log_fold import PARTITION_ENTITY
from streams.archive.catalog import open_reader, paths_of
from streams.erase.record import KafkaEraseRequests
from streams.settings import Settings
from streams.state.table import StateTable
from tests.support import erase_child
from tests.support.fault_driver import WITHIN_S, recorded, records_on, running, said, send, until

PARTITIONS = 1

EAGER = {"TURNTIDE_ARCHIVE__FLUSH_AGE": "PT0.1S"}
OF_BERT = "session:a/of-bert"
TURNS_EACH = 4


class Archive(RoleProcess):
    """The role as a child, which dies at a step; none: it lives."""

    def __init__(self, settings: Settings, folder: Path, *, dies_at: str = "") -> None:
        super().__init__(
            "archive", settings, log=folder / "archive.log", worker_id="archivist", extra_environment=EAGER
        )
        self._dies_at = dies_at

    def _command(self) -> list[str]:
        return [sys.executable, "-m", erase_child.__name__, self._dies_at] if self._dies_at else super()._command()


def talk(user: str) -> Iterator[Turn]:
    """A conversation that leaves a fact."""
    for n in range(TURNS_EACH):
        yield said(n, session_id=f"of-{user}", user_id=user, content=f"My name is {user.title()}.")


async def live(settings: Settings, topic: Topic) -> set[str]:
    """Keys of a compacted topic that have a value."""
    values = {record.key.decode(): record.value for record in await records_on(settings, topic)}
    return {key for key, value in values.items() if value is not None}


async def remembered(settings: Settings) -> bool:
    """Whether both users' facts are known."""
    return {"user:a/anna/identity/name", "user:a/bert/identity/name"} <= await live(settings, FACTS)


async def entities(settings: Settings, topic: Topic) -> set[str]:
    """Whose state there is."""
    state = StateTable(settings, topic.full_name(settings.topic_prefix), None)
    await state.recover([0])
    return {*state.partition(0).entities} - {PARTITION_ENTITY}


def archived(settings: Settings) -> list[tuple[Any, ...]]:
    """Turns of each user in the archive."""
    with closing(open_reader(paths_of(settings))) as con:
        return con.execute("SELECT user_id, count(*) FROM turns GROUP BY ALL ORDER BY ALL").fetchall()


async def killed_at(settings: Settings, folder: Path, step: str) -> int:
    """Run the archive until it dies; gives its exit code."""
    archive = Archive(settings, folder, dies_at=step)
    archive.start()
    try:
        return await asyncio.to_thread(archive.wait, WITHIN_S)
    finally:
        archive.stop()


async def proved(settings: Settings, folder: Path) -> ErasureProved:
    """Run the archive until the proof is there."""
    archive = Archive(settings, folder)
    archive.start()
    try:
        proof: ErasureProved = await until(partial(KafkaEraseRequests(settings).proof, "r"), "the proof")
    finally:
        archive.stop()
    return proof


@pytest.mark.slow
async def test_a_killed_erasure_is_brought_to_its_end(settings: Settings, tmp_path: Path) -> None:
    """Once when state and topics have forgotten and the archive has not, once when only the proof is missing."""
    bert, both = ("bert", TURNS_EACH), [("anna", TURNS_EACH), ("bert", TURNS_EACH)]
    request = EraseRequested(request_id="r", timestamp=datetime.now(UTC), scope="user", user_id="anna")
    async with running(settings, "sessions", "memory"):
        await send(settings, map(recorded, (*talk("anna"), *talk("bert"))))
        await until(partial(remembered, settings), "facts of both users")
        await KafkaEraseRequests(settings).request(request)
        first = await killed_at(settings, tmp_path, "_forget_vectors")
        meanwhile = (await entities(settings, SESSION_STATE), archived(settings))
        second = await killed_at(settings, tmp_path, "_proof")
        unproved = (await KafkaEraseRequests(settings).proof("r"), archived(settings))
        proof = await proved(settings, tmp_path)
        facts = {key.split("/", 2)[1] for key in await live(settings, FACTS)}
        states = (await entities(settings, SESSION_STATE), await entities(settings, MEMORY_STATE))

    assert (first, second) == (-9, -9)
    assert meanwhile == ({OF_BERT}, both)
    assert unproved == (None, [bert])
    assert archived(settings) == [bert]
    assert states[0] == {OF_BERT}
    assert not [key for key in states[1] if "anna" in key]
    assert "user:a/bert" in states[1]
    assert facts == {"bert"}
    assert [store.store for store in proof.stores if store.remaining and store.expires_at is None] == []
    assert proof.sessions == 1
