"""Which erasure is tried next, and who is waited for: the index at work, and sinks of alerts that are away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from aiokafka import TopicPartition

from models.errors import StoreUnavailable
from models.events import EraseRequested
from models.events.topics import ALERTS, TURNS
from models.policy import IntakePolicy
from streams.erase import executor
from streams.erase.executor import TRY_AGAIN_AFTER_S, Executor
from streams.erase.readers import Readers, ReadersBehind
from streams.erase.record import key_of
from streams.observe.telemetry import metrics
from streams.settings import Settings, load_settings

SETTINGS = Settings()
PREFIX = SETTINGS.topic_prefix
TURN = TopicPartition(TURNS.full_name(PREFIX), 0)
ALERT = TopicPartition(ALERTS.full_name(PREFIX), 0)
OLD, NEW = "index", "index-minilm"


class Groups:
    """An admin client that knows groups by what they have committed, and which of them have members."""

    def __init__(self, committed: Mapping[str, Mapping[TopicPartition, int]], at_work: set[str]) -> None:
        self._committed = {f"{PREFIX}.{name}": offsets for name, offsets in committed.items()}
        self._at_work = {f"{PREFIX}.{name}" for name in at_work}

    async def list_consumer_groups(self) -> list[tuple[str, str]]:
        """All of them."""
        return [(name, "consumer") for name in sorted({*self._committed, *self._at_work})]

    async def list_consumer_group_offsets(self, group: str) -> dict[TopicPartition, Any]:
        """Of one."""
        offsets = self._committed.get(group, {})
        return {place: SimpleNamespace(offset=offset) for place, offset in offsets.items()}

    async def describe_consumer_groups(self, groups: list[str]) -> list[Any]:
        """One group in a request."""
        (name,) = groups
        members = ["a worker"] if name in self._at_work else []
        state = "Stable" if members else "Empty" if name in self._committed else "Dead"
        return [SimpleNamespace(groups=[(0, name, state, "consumer", "", members)])]


def readers(committed: Mapping[str, Mapping[TopicPartition, int]], at_work: set[str] | None = None) -> Readers:
    """Readers that wait no time at all."""

    async def holds_records(_extents: Any) -> bool:
        return True

    async def landed() -> dict[TopicPartition, int]:
        return {}

    logs: Any = SimpleNamespace(
        settings=SETTINGS, admin=Groups(committed, at_work or set()), holds_records=holds_records
    )
    return Readers(logs, landed, within=timedelta(0))


@pytest.mark.parametrize("old", [{}, {OLD: {TURN: 50}}], ids=["expired", "behind"])
async def test_the_generation_at_work_is_the_index(old: dict[str, dict[TopicPartition, int]]) -> None:
    """The archive's settings name one that nobody works for any more."""
    waiting = readers({**old, NEW: {TURN: 100}}, {NEW})
    await waiting.beyond("index", {TURN: 100})

    assert await waiting.works_here("index")
    with pytest.raises(ReadersBehind, match=f"{NEW} has not read 1 records"):
        await waiting.beyond("index", {TURN: 101})
    with pytest.raises(ReadersBehind, match=f"{NEW} has not read 1 records"):
        await waiting.all_beyond({TURN: 101}, roles=["index"])


async def test_all_generations_at_work_are_waited_for() -> None:
    """Readers move over one by one; another group that begins alike is none of them."""
    waiting = readers({OLD: {TURN: 9}, NEW: {TURN: 8}, "indexer": {TURN: 1}}, {OLD, NEW, "indexer"})
    await waiting.beyond("index", {TURN: 8})
    with pytest.raises(ReadersBehind, match=NEW):
        await waiting.beyond("index", {TURN: 9})


async def test_an_index_that_is_away_is_waited_for() -> None:
    """The one that the settings name has read something once."""
    with pytest.raises(ReadersBehind, match=rf"\.{OLD} has not read 1 records"):
        await readers({OLD: {TURN: 8}}).beyond("index", {TURN: 9})


@pytest.mark.parametrize(("group", "waited_for"), [("notify.webhook", True), ("dashboards", False)])
async def test_a_sink_that_is_away_keeps_the_logs(group: str, *, waited_for: bool) -> None:
    """It has alerts still to deliver; a stranger's reader is waited for only while it is at work."""
    waiting = readers({group: {ALERT: 5}})
    if not waited_for:
        await waiting.all_beyond({ALERT: 100}, roles=["sessions"])
        return
    with pytest.raises(ReadersBehind, match=f"{group} has not read 95 records"):
        await waiting.all_beyond({ALERT: 100}, roles=["sessions"])


async def test_a_reader_at_work_is_waited_for_but_not_the_archives_group() -> None:
    """Whosoever it is; of the archive its catalog counts, and its commits are for those who watch the lag."""
    with pytest.raises(ReadersBehind, match="dashboards has not read 95 records"):
        await readers({"dashboards": {ALERT: 5}}, {"dashboards"}).all_beyond({ALERT: 100}, roles=[])

    await readers({"archive": {ALERT: 5}}, {"archive"}).all_beyond({ALERT: 100}, roles=[])


async def test_who_never_committed_is_not_waited_for() -> None:
    """A role that never was here has nothing to forget."""
    never = readers({})
    await never.beyond("memory", {TURN: 3})

    assert not await never.works_here("memory")


async def test_an_offset_that_is_none_is_no_sign_of_a_worker() -> None:
    """Kafka gives -1 for a partition of which nothing was committed."""
    assert not await readers({"index": {TURN: -1}}).works_here("index")


def requested(name: str, hours_ago: int) -> EraseRequested:
    """A request."""
    asked_at = datetime.now(UTC) - timedelta(hours=hours_ago)
    return EraseRequested(request_id=name, timestamp=asked_at, scope="user", user_id="anna")


async def followed(monkeypatch: pytest.MonkeyPatch, looks: list[tuple[float, list[EraseRequested]]]) -> list[str]:
    """Which erasures are tried, when these are pending at these times; all of them fail."""
    tried: list[str] = []
    coming = iter(looks)
    records = MagicMock(refresh=AsyncMock(), proved={}, names=list)
    now_s, records.pending = next(coming)

    def erasure(request: EraseRequested, **_: Any) -> Any:
        tried.append(request.request_id)
        return AsyncMock(run=AsyncMock(side_effect=StoreUnavailable("a role is away")))

    async def sleep(_seconds: float) -> None:
        nonlocal now_s
        if (later := next(coming, None)) is None:
            raise asyncio.CancelledError
        now_s, records.pending = later

    monkeypatch.setattr(executor, "ErasureRecords", lambda: records)
    monkeypatch.setattr(executor, "restore", AsyncMock())
    monkeypatch.setattr(executor, "IdlePartitions", lambda _: AsyncMock())
    monkeypatch.setattr(executor, "Erasure", erasure)
    monkeypatch.setattr(executor, "monotonic", lambda: now_s)
    monkeypatch.setattr("asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await Executor(load_settings(), IntakePolicy(), AsyncMock())._follow(MagicMock())
    return tried


async def test_what_failed_is_tried_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try writes anew to the logs, and waits anew for a role that is away."""
    times = [100.0, 101.0, 100.0 + TRY_AGAIN_AFTER_S, 101.0 + TRY_AGAIN_AFTER_S]

    assert await followed(monkeypatch, [(time, [requested("r", 1)]) for time in times]) == ["r", "r"]


async def test_an_erasure_that_was_not_tried_yet_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails for ever holds up no other; shown is how long the oldest has waited."""
    fails, new = requested("fails", 2), requested("new", 1)
    looks = [(100.0, [fails]), (100.0 + TRY_AGAIN_AFTER_S, [fails, new])]

    assert await followed(monkeypatch, looks) == ["fails", "new", "fails"]
    assert metrics.registry.get_sample_value("turntide_erasures_pending") == 2
    assert metrics.registry.get_sample_value("turntide_erasure_oldest_pending_seconds") == pytest.approx(7200, abs=600)


async def test_a_request_is_out_of_the_log_once_no_record_of_it_has_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the subject; a null record may stay, for its key does not, and other requests are their own."""
    mine, other = key_of("r", EraseRequested), key_of("other", EraseRequested)
    held: list[list[tuple[bytes, bytes | None]]] = [
        [(mine, b"{}")],
        [(mine, b"{}"), (mine, None)],
        [(mine, None), (other, b"{}")],
        [],
    ]
    clean: list[bool] = []

    async def read(_: Any) -> AsyncIterator[Any]:
        for key, value in held[len(clean)]:
            yield SimpleNamespace(key=key, value=value)

    async def purge(*given: Any) -> None:
        while len(clean) < len(held):
            clean.append(await given[-1]())

    monkeypatch.setattr(executor, "purge", purge)
    logs: Any = SimpleNamespace(name=lambda topic: topic.name, extents=AsyncMock(), read=read)
    await Executor(load_settings(), IntakePolicy(), AsyncMock())._purge_requests(logs, MagicMock(), "r")

    assert clean == [False, False, True, True]
