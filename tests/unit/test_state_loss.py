"""Lost state is noticed before anything is folded onto nothing, and what only looks like it is not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiokafka import TopicPartition

from models.errors import RecoveryFailed
from models.events import DeadLetter, Position
from models.events.topics import DEAD_LETTERS, SESSION_STATE, TURNS
from models.session.outputs import TOPICS_STAGE
from models.session.turn_numbers import INDEX_STAGE
from models.wire.codec import encode
from streams.kafka import state_loss
from streams.kafka.state_loss import LossRule, committed_offsets, require_whole
from streams.settings import load_settings

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


async def test_a_group_that_is_behind_its_state_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """State is durable before its offset is committed: that is how a killed worker is found."""
    assert await checked(monkeypatch, LAST_FOLDED + 1, []) == []


async def test_what_was_set_aside_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead letters leave no state."""
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
