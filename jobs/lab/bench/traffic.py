"""Turns to measure with: the demo's conversations over and over, each session under an id of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from jobs.demo.conversations import DemoConversation, load_conversations
from jobs.shared.sending import input_record, send_to_turns
from models.events import Role, SessionEnded, Turn
from models.events.topics import TURNS, Topic
from streams.kafka.client import client_options, consumer, require_topic
from streams.kafka.producer import Record
from streams.settings import Settings

SESSIONS_AT_ONCE = 100
"""So many conversations are open at any time; where one ends another begins."""
SPACING = timedelta(milliseconds=200)
"""Event time between turns of the log, so about twenty seconds between those of a session."""
TURNS_PER_ALARM = 10
"""Length of an alarming session; its last turn raises the alert."""
_ALARMING_RISK = 0.97
_QUIET_RISK = 0.05
_Item = TypeVar("_Item")


def conversation_of(app_id: str, turns: list[dict[Role, str]]) -> DemoConversation:
    """A conversation for `TurnTraffic`, which names sessions and users itself."""
    nobody: dict[str, Any] = {"session_id": "", "user_id": "", "title": "", "starts_minute": 0}
    return DemoConversation(app_id=app_id, turns=turns, expected_alert=False, ends=False, **nobody)


class TurnTraffic:
    """Makes turns of conversations (the demo's, unless given), so many at once, interleaved by the seed."""

    def __init__(
        self, seed: int = 0, conversations: Sequence[DemoConversation] = (), *, at_once: int = SESSIONS_AT_ONCE
    ) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._conversations = conversations or load_conversations()
        self._harmless = [each for each in self._conversations if not each.expected_alert]
        self._at_once = at_once

    def backlog(self, count: int, *, ends_at: datetime, spacing: timedelta = SPACING) -> Iterator[Turn]:
        """`count` turns of interleaved sessions without an upstream risk, in event-time order, up to `ends_at`.

        From about turn 9,000 on sessions that fell silent time out (half an hour of event time), which costs extra: the
        contenders that work per event see none of it.
        """
        events = self.events(count, ends_at=ends_at, spacing=spacing)
        return (event for event in events if isinstance(event, Turn))

    def events(self, count: int, *, ends_at: datetime, spacing: timedelta = SPACING) -> Iterator[Turn | SessionEnded]:
        """The same turns, and behind the last one of each session its end."""
        said, sessions = [0] * self._at_once, list(range(self._at_once))
        for n in range(count):
            place = self._rng.randrange(self._at_once)
            session, turn, at = sessions[place], said[place], ends_at - (count - n) * spacing
            conversation = self._conversations[session % len(self._conversations)]
            said[place] += 1
            yield _turn(conversation, f"bench-{session}", turn, at)
            if said[place] == len(conversation.turns):
                yield SessionEnded(session_id=f"bench-{session}", app_id=conversation.app_id, timestamp=at)
                sessions[place] += self._at_once
                said[place] = 0

    def alarming(self, n: int, timestamp: datetime) -> Turn:
        """Turn `n` of endless short sessions, one after the other, whose last turn alone alerts: by its upstream risk.

        What is said in them is harmless: a session that alerts by its words would have its alert before.
        """
        session, turn = divmod(n, TURNS_PER_ALARM)
        risk = _ALARMING_RISK if self.alarms(n) else _QUIET_RISK
        said = self._harmless[session % len(self._harmless)]
        return _turn(said, f"alarming-{session}", turn, timestamp, risk)

    def alarms(self, n: int) -> bool:
        """True if turn `n` of the alarming sessions is one that alerts."""
        return n % TURNS_PER_ALARM == TURNS_PER_ALARM - 1


def _turn(said: DemoConversation, session_id: str, turn: int, at: datetime, risk: float | None = None) -> Turn:
    ((role, content),) = said.turns[turn].items()
    return Turn(
        session_id=session_id,
        user_id=f"user-of-{session_id}",
        app_id=said.app_id,
        turn=turn,
        role=role,
        content=content,
        timestamp=at,
        risk=risk,
    )


@asynccontextmanager
async def producing(settings: Settings, **options: Any) -> AsyncIterator[AIOKafkaProducer]:
    """A producer for the cluster."""
    producer = AIOKafkaProducer(**client_options(settings.kafka), **options)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def reading(settings: Settings, *topics: Topic, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer of these topics, all partitions from their beginning."""
    names = [topic.full_name(settings.topic_prefix) for topic in topics]
    async with consumer(settings.kafka, auto_offset_reset="earliest", **options) as client:
        client.assign([TopicPartition(name, n) for name in names for n in await require_topic(settings.kafka, name)])
        yield client


async def send(producer: AIOKafkaProducer, settings: Settings, event: Turn | SessionEnded) -> Any:
    """Write an event to `turns.v1`; the result ends when it is acknowledged."""
    record = input_record(event)
    topic = TURNS.full_name(settings.topic_prefix)
    return await producer.send(topic, record.value, key=record.key, headers=record.headers)


async def paced(
    items: Iterable[_Item], per_s: float | None, *, tick_s: float = 0.0
) -> AsyncIterator[tuple[float, _Item]]:
    """Each item when it is due, with that time (`perf_counter`), so that a sender that falls behind hides nothing.

    So many come a second (None: at once); no sleep is shorter than `tick_s`.
    """
    began_s = perf_counter()
    for n, item in enumerate(items):
        due_s = began_s if per_s is None else began_s + n / per_s
        if per_s is not None and (early_s := due_s - perf_counter()) > 0:
            await asyncio.sleep(max(early_s, tick_s))
        yield due_s, item


async def send_backlog(
    settings: Settings, seed: int, turns: int, conversations: Sequence[DemoConversation] = ()
) -> float:
    """Write a backlog (`TurnTraffic.backlog`) that ends now to `turns.v1`, all acknowledged on return.

    Returns:
        Mean bytes of a record's value.
    """
    backlog = TurnTraffic(seed, conversations).backlog(turns, ends_at=datetime.now(UTC))
    records = [Record(*input_record(turn)[:2]) for turn in backlog]
    await send_to_turns(settings, records)
    return sum(len(record.value or b"") for record in records) / len(records)
