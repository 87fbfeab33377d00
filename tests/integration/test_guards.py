"""Guards on the real broker: a role that hangs, sinks that are slow."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from faust.types import TP

from models.errors import Stalled
from models.events.topics import TURNS, Topic
from models.policy import IntakePolicy
from streams.archive.buffer import LandingBuffer, Move
from streams.kafka import watchdog
from streams.kafka.watchdog import Watchdog, watched
from streams.roles.archive import Archivist
from streams.settings import Settings
from tests.support.fault_driver import PlainRole, recorded, said, send, until, working

PARTITIONS = 1
KAFKA = {"max_poll_records": 50, "max_fetch_bytes": 1024 * 1024, "stall_after": timedelta(seconds=4)}
"""Little is fetched ahead, and standing still is noticed soon."""


async def produce(settings: Settings, contents: Sequence[str]) -> int:
    """Turns of one session; returns how many."""
    await send(settings, [recorded(said(n, content=content)) for n, content in enumerate(contents)])
    return len(contents)


class SlowRole(PlainRole):
    """A role whose sink takes a record in `pace_s`, or hangs."""

    name = "index"
    sources = (TURNS,)

    def __init__(self, settings: Settings, *, pace_s: float = 0.0) -> None:
        super().__init__(settings, http_port=0)
        self.pace_s = pace_s
        self.hang: asyncio.Event | None = None
        self.taken = 0
        self.most_ahead = 0
        self.most_prefetched_bytes = 0

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Take them at the sink's pace and look at what is ahead meanwhile."""
        if self.hang is not None:
            await self.hang.wait()
            raise OSError("the connection is gone")
        for records in batches.values():
            for _ in records:
                await asyncio.sleep(self.pace_s)
                self._look_ahead()
            self.taken += len(records)

    def _look_ahead(self) -> None:
        ledger = self.consumer.ledger
        for tp in ledger.places():
            self.most_ahead = max(self.most_ahead, ledger.fetched_to(tp) - (ledger.processed(tp) or 0))
        thread: Any = self.consumer._thread
        waiting = sum(map(_raw_bytes, list(thread._consumer._fetcher._records.values())))
        self.most_prefetched_bytes = max(self.most_prefetched_bytes, waiting)


def _raw_bytes(fetched: Any) -> int:
    """Bytes of a fetch answer of which something waits in the client."""
    records = getattr(fetched, "_partition_records", None)
    return records._records.size_in_bytes() if records is not None else 0


@pytest.fixture
async def ends(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """What a stall sets; the process stays."""
    ended = asyncio.Event()
    monkeypatch.setattr(watchdog, "end_hard_soon", ended.set)
    return ended


async def test_a_role_that_hangs_says_so_and_ends(settings: Settings, ends: asyncio.Event) -> None:
    """Liveness fails first and names the place; then the role raises, and the next start goes on from there."""
    await produce(settings, ["Hello?"] * 20)
    role = SlowRole(settings)
    # In place of the hard end, which nothing would survive, the hang itself ends.
    role.hang = ends
    task = asyncio.create_task(role.run(asyncio.Event()))
    said = ""
    async with asyncio.timeout(90):
        while not task.done():
            said = said or ("" if role.watchdog.alive()[0] else role.watchdog.alive()[1])
            await asyncio.sleep(0.1)  # poll liveness

    assert "turns.v1-0 stands at offset 0" in said
    assert isinstance(task.exception(), Stalled)
    assert ends.is_set()

    again = SlowRole(settings)
    async with working(again.run) as (later,):
        await until(lambda: again.taken == 20, "all are taken")
    later.result()


@pytest.mark.slow
async def test_a_slow_sink_holds_up_fetching_and_is_no_stall(settings: Settings, ends: asyncio.Event) -> None:
    """What is fetched ahead stays at two polls and one fetch, though twenty times as much waits in the log."""
    count = await produce(settings, ["x" * 20_000] * 1_000)
    role = SlowRole(settings, pace_s=0.02)
    async with working(role.run) as (task,):
        await until(lambda: role.taken == count, "all are taken", within_s=180)
    task.result()

    assert 50 <= role.most_ahead <= 2 * settings.kafka.max_poll_records
    assert 0 < role.most_prefetched_bytes <= 2 * settings.kafka.max_fetch_bytes
    assert not ends.is_set()


class SlowWriter:
    """Stands for the lake: notes what it is given, takes its time, or hangs until released."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.released = threading.Event()
        if not hangs:
            self.released.set()
        self.landed: list[tuple[int, int]] = []
        self.moves: dict[TopicPartition, Move] = {}

    def offsets(self) -> dict[TopicPartition, Move]:
        """Where the last landings stand."""
        return dict(self.moves)

    def land(self, buffer: LandingBuffer, *, now: datetime) -> dict[str, Any]:
        """Take a buffer, a quarter of a second after `now`."""
        assert now.tzinfo is UTC
        self.released.wait()
        threading.Event().wait(0.25)
        self.landed.append((buffer.records, buffer.bytes))
        self.moves |= {place: move.landed for place, move in buffer.moves.items()}
        return {}


@pytest.fixture
def archived(settings: Settings) -> tuple[Settings, dict[str, Topic]]:
    """Settings with small landings and the one topic that is archived here."""
    small = settings.archive.model_copy(update={"flush_bytes": 1_000_000, "merge_every": timedelta(hours=1)})
    return settings.model_copy(update={"archive": small}), {TURNS.full_name(settings.topic_prefix): TURNS}


@pytest.mark.slow
async def test_a_slow_archive_does_not_gather(archived: tuple[Settings, dict[str, Topic]]) -> None:
    """While a landing takes its time nothing is taken: no buffer exceeds the limit by more than one poll."""
    settings, topics = archived
    count = await produce(settings, ["x" * 20_000] * 600)
    writer: Any = SlowWriter()
    archivist = Archivist(settings, topics, IntakePolicy(), writer)
    async with working(archivist.run) as (task,):
        await until(lambda: sum(records for records, _ in writer.landed) == count, "all are landed", within_s=120)
    task.result()

    one_poll = settings.kafka.max_poll_records * 21_000
    assert max(size for _, size in writer.landed) <= settings.archive.flush_bytes + one_poll


async def test_a_landing_that_hangs_ends_the_archive(archived: tuple[Settings, dict[str, Topic]]) -> None:
    """A disk that never answers is a stall; the watchdog sees it though the role's own loop waits."""
    settings, topics = archived
    await produce(settings, ["x" * 20_000] * 100)
    writer: Any = SlowWriter(hangs=True)
    archivist, dog = Archivist(settings, topics, IntakePolicy(), writer), Watchdog(timedelta(seconds=4))
    with pytest.raises(Stalled, match=r"turns\.v1-0 stands at offset 0"):
        async with asyncio.timeout(90):
            await watched(
                archivist.run(asyncio.Event()), dog, archivist.progress,
                end_soon=writer.released.set,
            )  # fmt: skip

    assert writer.released.is_set()
