"""Which erasure is tried next, and who is waited for: the index at work, and sinks of alerts that are away."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from aiokafka import TopicPartition

from models.errors import StoreUnavailable
from models.events import EraseRequested
from models.events.topics import TURNS
from models.policy import IntakePolicy
from streams.erase import executor
from streams.erase.executor import TRY_AGAIN_AFTER_S, Executor
from streams.erase.logs import Readers, ReadersBehind
from streams.erase.record import key_of
from streams.observe.telemetry import metrics
from streams.settings import Settings, load_settings

SETTINGS = Settings()
PREFIX = SETTINGS.topic_prefix
TURN = TopicPartition(TURNS.full_name(PREFIX), 0)
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


def readers(committed: Mapping[str, int], at_work: Sequence[str] = ()) -> Readers:
    """Readers that wait no time at all, of groups by what they have committed."""
    logs: Any = SimpleNamespace(
        settings=SETTINGS,
        admin=Groups({name: {TURN: offset} for name, offset in committed.items()}, {*at_work}),
        holds_records=AsyncMock(return_value=True),
    )
    return Readers(logs, AsyncMock(return_value={}), within=timedelta(0))


def waiting_for(who: str) -> Any:
    """Somebody is waited for; nobody, if it is empty."""
    return pytest.raises(ReadersBehind, match=rf"\.{who} records") if who else nullcontext()


@pytest.mark.parametrize(
    ("committed", "at_work", "end", "who"),
    [
        ({NEW: 100}, [NEW], 100, ""),
        ({NEW: 100}, [NEW], 101, f"{NEW} has not read 1"),
        ({OLD: 50, NEW: 100}, [NEW], 101, f"{NEW} has not read 1"),
        ({OLD: 9, NEW: 8, "indexer": 1}, [OLD, NEW, "indexer"], 8, ""),
        ({OLD: 9, NEW: 8, "indexer": 1}, [OLD, NEW, "indexer"], 9, f"{NEW} has not read 1"),
        ({OLD: 8}, [], 9, f"{OLD} has not read 1"),
        ({}, [], 3, ""),
    ],
    ids=["at work", "behind", "not the old one", "all of them", "one of them", "away", "never here"],
)
async def test_the_index_is_waited_for(committed: dict[str, int], at_work: list[str], end: int, who: str) -> None:
    """Every generation at work, whichever the settings name; else the one that they name, if it ever was here."""
    with waiting_for(who):
        await readers(committed, at_work).beyond("index", {TURN: end})


@pytest.mark.parametrize(
    ("group", "at_work", "roles", "who"),
    [
        (NEW, [NEW], ["index"], f"{NEW} has not read 95"),
        ("notify.webhook", [], [], "notify.webhook has not read 95"),
        ("dashboards", [], [], ""),
        ("dashboards", ["dashboards"], [], "dashboards has not read 95"),
        ("archive", ["archive"], [], ""),
    ],
    ids=["role", "sink that is away", "stranger that is away", "stranger at work", "archive"],
)
async def test_who_keeps_the_logs(group: str, at_work: list[str], roles: list[str], who: str) -> None:
    """A sink has alerts still to deliver; of the archive its catalog counts, not its commits."""
    with waiting_for(who):
        await readers({group: 5}, at_work).all_beyond({TURN: 100}, roles=roles)


@pytest.mark.parametrize(("committed", "here"), [({NEW: 100}, True), ({}, False), ({OLD: -1}, False)])
async def test_a_worker_is_known_by_what_it_committed(committed: dict[str, int], *, here: bool) -> None:
    """Kafka gives -1 for a partition of which nothing was committed."""
    assert here == await readers(committed, [NEW] if here else []).works_here("index")


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
