"""Rebuilding from logs that still have what was erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from aiokafka import TopicPartition

from jobs.operate.reset import Reset, ResetRole, reset_role, still_in_logs
from jobs.shared import role_groups
from jobs.shared.log_read import Extent
from jobs.shared.role_groups import RoleGroup
from models.errors import ConfigurationError
from models.events import ErasedStore, ErasureProved
from models.events.topics import SESSION_STATE, TURNS, Topic
from streams.settings import KafkaSettings, Settings, load_settings

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
        monkeypatch.setattr(f"jobs.operate.reset.{name}", double)
    try:
        return done, await reset_role(settings, ResetRole.SESSIONS)
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
