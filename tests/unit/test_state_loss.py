"""Lost state is noticed before anything is folded onto nothing; old state is dropped; rebuilding from logs."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiokafka import TopicPartition

from jobs.operate.reindex import Reset, reset_role, still_in_logs
from jobs.shared import role_groups
from jobs.shared.log_read import Extent
from jobs.shared.role_groups import RoleGroup
from models.errors import ConfigurationError, RecoveryFailed
from models.events import DeadLetter, ErasedStore, ErasureProved, Position
from models.events.topics import DEAD_LETTERS, SESSION_STATE, TURNS, Topic
from models.session.outputs import TOPICS_STAGE
from models.session.turn_numbers import INDEX_STAGE
from models.wire.codec import encode
from streams.kafka import state_loss
from streams.kafka.state_loss import LossRule, committed_offsets, require_whole
from streams.settings import KafkaSettings, Settings, load_settings
from streams.state.memory import MemoryTable
from streams.state.partition import Tail
from streams.state.table import Outdated, Recovery

SETTINGS = load_settings()
SOURCE = TURNS.full_name(SETTINGS.topic_prefix)
LAST_FOLDED = 4
RULE = LossRule(
    "sessions",
    TURNS,
    SESSION_STATE,
    lambda _: LAST_FOLDED,
    lambda records: [Position(SOURCE, 0, record.offset) for record in records],
)


def letter(offset: int, *, topic: str = SOURCE, stage: str = "decode") -> bytes:
    """A dead letter of a record."""
    return encode(
        DeadLetter(
            id="letter", topic=topic, partition=0, offset=offset, stage=stage, reason="not_json", detail="", key=None,
            value=b"{", headers=[], appended_at=datetime(2026, 1, 5, tzinfo=UTC),
        )
    )  # fmt: skip


async def checked(monkeypatch: pytest.MonkeyPatch, committed: int, letters: list[bytes]) -> list[str]:
    """Topics that are read to find out whether what was folded up to the commit is lost."""
    asked: list[str] = []

    async def read(_: Any, topic: str, *, first: int = 0, before: int = 0, **__: Any) -> AsyncGenerator[Any, None]:
        asked.append(topic)
        if topic == DEAD_LETTERS.full_name(SETTINGS.topic_prefix):
            for each in letters:
                yield SimpleNamespace(value=each)
        for offset in range(first, before):
            yield SimpleNamespace(offset=offset)

    monkeypatch.setattr(state_loss, "read_to_end", read)
    await require_whole(SETTINGS, RULE, committed={0: committed}, entities=lambda _: {})
    return asked


async def test_what_was_set_aside_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead letters leave no state. A group that is behind its state, as after a kill, is asked for nothing."""
    assert await checked(monkeypatch, LAST_FOLDED + 1, []) == []
    assert await checked(monkeypatch, LAST_FOLDED + 3, [letter(5), letter(6)])


@pytest.mark.parametrize(
    "letters",
    [
        [letter(6)],
        [letter(5), letter(6, topic="another")],
        *([letter(5), letter(6, stage=stage)] for stage in (TOPICS_STAGE, INDEX_STAGE)),
    ],
    ids=["none of the first", "of another topic", "of a topic's history, which was folded", "of the index, likewise"],
)
async def test_what_was_folded_is_lost(monkeypatch: pytest.MonkeyPatch, letters: list[bytes]) -> None:
    """By its offset, and with what mends it."""
    with pytest.raises(RecoveryFailed, match=r"from offset [56] on.*`turntide ops reset sessions"):
        await checked(monkeypatch, LAST_FOLDED + 3, letters)


@pytest.mark.parametrize("start", [0, 1])
async def test_a_changelog_whose_head_was_cut_off_is_no_state(monkeypatch: pytest.MonkeyPatch, start: int) -> None:
    """Records were deleted from it; which, nobody knows. A partition of which nothing was committed is left out."""
    name = SESSION_STATE.full_name(SETTINGS.topic_prefix)
    client = AsyncMock()
    client.beginning_offsets.return_value = {TopicPartition(name, 0): 0, TopicPartition(name, 1): start}
    client.committed = lambda place: AsyncMock(return_value=9 if place.partition else None)()

    @asynccontextmanager
    async def consumer(*_: Any, **__: Any) -> AsyncIterator[Any]:
        yield client

    monkeypatch.setattr(state_loss, "require_topic", AsyncMock())
    monkeypatch.setattr(state_loss, "consumer", consumer)
    if not start:
        assert await committed_offsets(SETTINGS, RULE, [0, 1]) == {1: 9}
        return
    with pytest.raises(RecoveryFailed, match=r"begins after offset 0 on partitions \[1\].*must be compact"):
        await committed_offsets(SETTINGS, RULE, [0, 1])


_HOUR_MS = 3_600_000
_NOW_MS = 1_000 * _HOUR_MS


@pytest.mark.fault("F13")
@pytest.mark.parametrize(("hours", "is_outdated"), [(-13, True), (-11, False), (0, False), (1, False), (13, True)])
def test_how_old_state_is_must_be_known(hours: int, is_outdated: bool) -> None:
    """State of a clock that was far ahead would count as current for as long as the clock was ahead."""
    table = MemoryTable()
    table.apply({}, offset=1, applied=2, tail=Tail(1, 1), now_ms=_NOW_MS + hours * _HOUR_MS)
    recovery = Recovery(load_settings().kafka, "state", timedelta(hours=12))
    try:
        recovery._check({0: table}, {0: (0, 5)}, _NOW_MS)
    except Outdated as outdated:
        found = outdated.numbers
    else:
        found = []

    assert found == ([0] if is_outdated else [])


NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)


def proof(expires_at: datetime | None, store: str = "topic turns.v1") -> ErasureProved:
    """An erasure whose records on one topic wait for retention until then."""
    waits = ErasedStore(store=store, looked_at=9, removed=0, remaining=1, expires_at=expires_at)
    gone = ErasedStore(store="archive turns", looked_at=9, removed=3, remaining=0)
    return ErasureProved(
        request_id="r", timestamp=NOW, scope="user", subject="", by="", requested_at=NOW, sessions=1,
        stores=[gone, waits], complete=expires_at is None,
    )  # fmt: skip


def test_erasures_that_the_logs_still_hold_are_counted() -> None:
    """Until retention has removed the records, reading the log again brings them back; null records bring nothing."""
    later, before = NOW + timedelta(days=1), NOW - timedelta(days=1)
    proofs = [proof(later), proof(later), proof(before), proof(None), proof(later, "keys facts.v1")]

    assert still_in_logs(proofs, NOW) == 2


async def reset_with(monkeypatch: pytest.MonkeyPatch, state: str) -> tuple[list[str], Reset | None]:
    """What is done in which order where the group is in that state, and what is told; None if it is refused."""
    done: list[str] = []
    settings = load_settings()

    async def extent(_: Settings, _topic: Topic) -> Extent:
        return {0: (5, 9), 1: (0, 3)}

    @asynccontextmanager
    async def admin(_: KafkaSettings) -> AsyncIterator[None]:
        yield

    async def group(_client: None, _name: str) -> RoleGroup:
        return RoleGroup(state, 1)

    async def proofs(*_: object) -> AsyncIterator[ErasureProved]:
        yield proof(datetime.now(UTC) + timedelta(days=1))

    async def commit(_: Settings, _group: str, offsets: Mapping[TopicPartition, int]) -> None:
        done.extend(f"{place.topic} {place.partition} {offset}" for place, offset in offsets.items())

    async def recreate(_: Settings, topic: str) -> None:
        done.append(topic)

    monkeypatch.setattr(role_groups, "admin", admin)
    monkeypatch.setattr(role_groups, "_described", group)
    doubles = {"log_extent": extent, "events_on": proofs, "commit_offsets": commit}
    for name, double in {**doubles, "_recreate": recreate}.items():
        monkeypatch.setattr(f"jobs.operate.reindex.{name}", double)
    try:
        return done, await reset_role(settings, "sessions")
    except ConfigurationError:
        return done, None


async def test_offsets_go_back_before_the_state_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut short in between, the state stands; what retention took is told, for it cannot be folded again."""
    done, told = await reset_with(monkeypatch, "Empty")

    turns, state = (topic.full_name(load_settings().topic_prefix) for topic in (TURNS, SESSION_STATE))
    assert done == [f"{turns} 0 5", f"{turns} 1 0", state]
    assert told is not None
    assert (told.partitions, told.records, told.expired_records, told.erasures_in_log) == (2, 7, 5, 1)


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance"])
async def test_nothing_is_set_back_under_a_worker(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """It would commit what it has, and write into a changelog that begins anew."""
    assert await reset_with(monkeypatch, state) == ([], None)
