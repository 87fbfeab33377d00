"""What a log still holds of somebody, and how it stands in the proof."""

from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiokafka import TopicPartition
from msgspec.structs import replace

from jobs.memory.erase import summary, waits_for
from jobs.shared.role_groups import RoleGroup
from models.events import ErasedStore, EraseRequested, ErasureProved, VectorsErased, VectorsErasureDue
from models.events.topics import ERASURES, PROFILES, SESSION_STATE, TURNS, Topic
from streams.erase import purge
from streams.erase.purge import IdlePartitions, due
from streams.erase.record import ErasureRecords, key_of
from streams.erase.residual import ResidualRecord, ResidualRecords, Tally, compacted_by, count_found, expiry, stores_of
from streams.kafka.client import Extent
from tests.support.lake_records import example

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PLACE = TopicPartition("t.profiles.v1", 0)
WEEK_MS, DAY_MS = str(7 * 86_400_000), str(86_400_000)
CLEANED = {"max.compaction.lag.ms": WEEK_MS, "delete.retention.ms": DAY_MS}


def mine(offset: int, *, owned: bool = True) -> ResidualRecord:
    """A record of the subject."""
    return ResidualRecord(offset, NOW + timedelta(seconds=offset), owned)


def test_the_last_value_of_a_key_is_live_and_earlier_ones_are_past() -> None:
    """A null record, or somebody else's value under the same key, makes it past; a log is clean without the keys."""
    residual, shared, cleaned, before = (ResidualRecords(keys={*keys}) for keys in ([], [], [b"a"], [b"a"]))
    for key, record in ((b"a", mine(0)), (b"a", mine(1)), (b"b", mine(2)), (b"b", None), (b"c", mine(4))):
        residual.take(PLACE, key, record)
    residual.take_null(PLACE, b"c")
    residual.take_null(PLACE, b"somebody else's")
    for offset in (0, 1):  # of what others share only the past counts
        shared.take(PLACE, b"space", mine(offset, owned=False))
    before.take_null(PLACE, b"a")

    assert residual.live == {PLACE: {b"a": 1}}
    assert (residual.past_count, residual.newest) == (3, NOW + timedelta(seconds=4))
    assert dict(residual.nulls) == {PLACE: 1}
    assert (shared.live_count, shared.past_count) == (0, 1)
    assert (cleaned.is_clean, before.is_clean, before.places) == (True, False, {PLACE})


def test_a_compacted_topic_has_two_lines() -> None:
    """What readers find by key went; the broker has the old value until it compacts."""
    tally, before, after = Tally(), ResidualRecords(looked_at=4), ResidualRecords(looked_at=5)
    before.take(PLACE, b"a", mine(0))
    count_found(PROFILES, before, tally)
    after.take(PLACE, b"a", mine(0))
    after.take_null(PLACE, b"a")

    assert stores_of(PROFILES, after, tally, CLEANED, NOW) == [
        ErasedStore(store="topic profiles.v1", looked_at=5, removed=1, remaining=0),
        ErasedStore(store="log profiles.v1", looked_at=5, removed=0, remaining=1, expires_at=NOW + timedelta(days=8)),
        ErasedStore(store="keys profiles.v1", looked_at=5, removed=0, remaining=1, expires_at=NOW + timedelta(days=15)),
    ]


def test_a_changelog_stands_for_its_roles_state() -> None:
    """Whoever reads the proof asks what the role remembers; the keys of what is gone stay for a day and a cleaning."""
    residual = ResidualRecords(lasting_nulls=2)
    lines = stores_of(SESSION_STATE, residual, Tally(), CLEANED, NOW)

    assert [(line.store, line.remaining) for line in lines] == [
        ("state sessions", 0),
        ("log sessions-state.v1", 0),
        ("keys sessions-state.v1", 2),
    ]
    assert (residual.is_clean, residual.places) == (True, set())


@pytest.mark.parametrize("name", ["max.compaction.lag.ms", "delete.retention.ms"])
def test_a_topic_that_is_never_cleaned_has_no_date(name: str) -> None:
    """A broker that was not told otherwise compacts when it likes: that is said, and the exit code is 1."""
    assert compacted_by(NOW, CLEANED | {name: str(2**63 - 1)}) == (None, None)


@pytest.mark.parametrize(
    ("config", "gone_by"),
    [
        ({"retention.ms": WEEK_MS, "segment.ms": DAY_MS}, NOW + timedelta(days=8)),
        ({"retention.ms": "-1", "segment.ms": DAY_MS}, None),
        ({"retention.ms": str(2**63 - 1), "segment.ms": DAY_MS}, None),
        ({}, None),
    ],
)
def test_what_expires_says_when(config: dict[str, str], gone_by: datetime | None) -> None:
    """A file of the log goes as a whole; what is kept for ever has no date."""
    assert expiry(TURNS, NOW, config) == gone_by


def test_a_second_try_counts_what_the_first_removed() -> None:
    """A role was away after the topics were swept: the proof must not say that nothing was there."""
    tally, first, second = Tally(), ResidualRecords(), ResidualRecords()
    first.take(PLACE, b"a", mine(0))
    for residual in (first, second):
        count_found(PROFILES, residual, tally)
    rows = ErasedStore(store="archive turns", looked_at=9, removed=2, remaining=0)
    none = ErasedStore(store="archive turns", looked_at=7, removed=0, remaining=0)

    assert stores_of(PROFILES, second, tally, {}, NOW)[0].removed == 1
    assert [tally.erased([rows])[0].removed, tally.erased([none])[0].removed] == [2, 2]


def proved(*stores: ErasedStore) -> ErasureProved:
    """A proof with these stores."""
    complete = not any(store.remaining for store in stores)
    return replace(example(ErasureProved), request_id="r-1", timestamp=NOW, stores=list(stores), complete=complete)


def left_in(store: str, removed: int = 0, remaining: int = 3, expires_at: datetime | None = None) -> ErasedStore:
    """A line of a proof."""
    return ErasedStore(store=store, looked_at=9, removed=removed, remaining=remaining, expires_at=expires_at)


GOING, KEYS = left_in("log turns.v1", expires_at=NOW), left_in("keys memory-state.v1", expires_at=NOW)


@pytest.mark.parametrize(
    ("stores", "said"),
    [
        ([left_in("topic turns.v1", 3, 0)], "complete: 3 entries removed, nothing remains in 1 stores"),
        ([GOING], "what remains goes by itself until 2026-05-01, or now with --purge-logs"),
        (
            [GOING, left_in("log facts.v1")],
            "in log facts.v1 something remains that nothing removes by itself: --purge-logs does",
        ),
        ([KEYS], "keys memory-state.v1 go by themselves until 2026-05-01"),
        (
            [KEYS, GOING],
            "keys memory-state.v1 go by themselves until 2026-05-01, the rest likewise or now with --purge-logs",
        ),
    ],
    ids=["complete", "going", "staying", "keys", "keys and more"],
)
def test_a_proof_says_what_stays_and_for_how_long(stores: list[ErasedStore], said: str) -> None:
    """Complete, gone by itself, or there for good; what a purge leaves is not offered to another one."""
    assert said == summary(proved(*stores)).removeprefix("0 entries removed; ")


@pytest.mark.parametrize(
    ("days", "since"),
    [
        (6, {}),
        (8, {ERASURES: 7.0, PROFILES: 7.0}),
        (14, {ERASURES: 7.0, PROFILES: 7.0}),
        (40, {ERASURES: 14.5, PROFILES: 14.5}),
    ],
)
def test_quiet_partitions_are_woken_when_they_are_due(days: int, since: dict[Topic, float]) -> None:
    """Where something was left to time: when values may be cleaned, and again for the null records."""
    left, kept = left_in("log profiles.v1", expires_at=NOW), left_in("topic turns.v1", expires_at=NOW)
    found = due([proved(left, left_in("log facts.v1", 1, 0), kept)], NOW + timedelta(days=days))

    assert found == {topic: NOW + timedelta(days=passed) for topic, passed in since.items()}


HERE, AWAY, NEVER = RoleGroup("Stable", 1), RoleGroup("Empty", 0), RoleGroup("Dead", 0)


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"archive": NEVER}, "no archive worker is running"),
        ({"memory": AWAY}, "role memory holds data to erase"),
        ({"judge": AWAY}, "role judge holds data to erase"),
        ({"judge": NEVER}, "sessions, users and topics"),
        ({"enrich": NEVER}, "sessions, users and topics"),
    ],
)
def test_the_operator_is_told_who_is_waited_for(groups: dict[str, RoleGroup], said: str) -> None:
    """A role that was never here is not waited for."""
    all_groups = {**dict.fromkeys(("archive", "sessions", "memory", "enrich", "judge", "index"), HERE), **groups}

    assert said in waits_for(ErasureRecords(), "r-1", all_groups)


def test_answers_of_the_index_are_one() -> None:
    """A retry asks again: what each try removed counts, the last says what is left; a mere repeat adds nothing."""
    records = ErasureRecords()
    for offset, (removed, remaining) in enumerate([(3, 0), (0, 0), (2, 1)], 5):
        turns = ErasedStore(store="vectors turns", looked_at=9 - offset, removed=removed, remaining=remaining)
        answer = VectorsErased(request_id="r-1", timestamp=NOW, stores=[turns])
        records.take_event(answer, offset=offset)

    assert records.vectors["r-1"].stores == [ErasedStore(store="vectors turns", looked_at=2, removed=5, remaining=1)]
    assert records.answered_at == {"r-1": 7}


def test_a_request_that_comes_twice_is_one_and_a_null_record_ends_it() -> None:
    """The first counts: by it the proof says when it was asked for. What is gone names nobody any more."""
    first = EraseRequested(request_id="r-1", timestamp=NOW, scope="user", user_id="anna")
    asked = VectorsErasureDue(request_id="r-1", timestamp=NOW, scope="user", user_id="anna", session_ids=[])
    records, null = ErasureRecords(), SimpleNamespace(event_of=lambda *_: None)
    for event in (first, replace(first, timestamp=NOW + timedelta(days=1)), asked):
        records.take_event(event, offset=0)
    pending = records.pending
    records.take_event(proved(), offset=1)
    still = records.pending
    names = list(records.names())
    for key in names:
        records.take(null, SimpleNamespace(key=key))  # type: ignore[arg-type]

    assert (pending, still) == ([first], [])
    assert names == [key_of("r-1", EraseRequested), key_of("r-1", VectorsErasureDue)]
    assert list(records.names()) == []


class QuietLogs:
    """Three partitions of every topic, of which the first is empty, and when the last record of each was written."""

    def __init__(self, *written: datetime) -> None:
        self.written = written

    async def extents(self, topic: Topic) -> dict[TopicPartition, Extent]:
        """Of nine records."""
        return {TopicPartition(topic.name, number): Extent(0, 9 * bool(number)) for number in range(3)}

    async def read(self, extents: Mapping[TopicPartition, Extent]) -> AsyncGenerator[Any, None]:
        """Records before the last one came a year later."""
        for place, (start, end) in extents.items():
            for offset in range(start, end):
                at = self.written[place.partition] if offset == end - 1 else NOW + timedelta(days=365)
                yield SimpleNamespace(timestamp=int(at.timestamp() * 1000))


async def test_only_partitions_that_are_quiet_are_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their last record; those that were written to are left alone until the null records' time."""
    proof, fill = proved(), AsyncMock()
    monkeypatch.setattr(purge, "fill", fill)
    (since,) = due([proof], NOW + timedelta(days=10)).values()
    early = since - timedelta(seconds=1)
    logs: Any = QuietLogs(early, early, since)
    partitions = IdlePartitions(logs)
    woken = [await partitions.wake([proof], NOW + timedelta(days=10))]
    logs.written = (early, since, since)
    woken += [await partitions.wake([proof], NOW + timedelta(days=days)) for days in (10, 365)]
    filled = [[each.partition for places in call.args[2].values() for each in places] for call in fill.call_args_list]

    assert (woken, filled) == ([1, 0, 2], [[1], [1, 2]])
