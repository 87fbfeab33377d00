"""Turns to measure with: the demo's conversations over and over, many at a time, each session under an id of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from aiokafka import AIOKafkaProducer

from jobs.demo.conversations import Conversation, load_conversations
from models.codec import encode
from models.events import Turn
from models.topics import TURNS
from streams.kafka.client import client_options
from streams.settings import Settings

SESSIONS_AT_ONCE = 100
"""So many conversations are open at any time; where one ends another begins."""
_SPACING = timedelta(milliseconds=200)
"""Event time between turns of the log: twenty seconds between those of a session."""
_SENDS_AT_ONCE = 2_000


def backlog(count: int, *, ends_at: datetime, seed: int = 0) -> Iterator[Turn]:
    """`count` turns of interleaved sessions without an upstream risk, in event-time order.

    Each prefix of the log is of the same kind, so contenders may be stopped early.

    Args:
        count: How many turns.
        ends_at: Event time after the last of them, aware.
        seed: Of the interleaving.
    """
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    conversations = load_conversations()
    open_sessions = [_session(n, conversations) for n in range(SESSIONS_AT_ONCE)]
    begun = SESSIONS_AT_ONCE
    began = ends_at - count * _SPACING
    for n in range(count):
        place = rng.randrange(SESSIONS_AT_ONCE)
        turn = next(open_sessions[place], None)
        if turn is None:
            open_sessions[place] = _session(begun, conversations)
            begun += 1
            turn = next(open_sessions[place])
        yield _said(turn, began + n * _SPACING)


def alarming(count: int, *, turns_per_session: int = 10) -> Iterator[Turn]:
    """Endless short sessions one after the other whose last turn raises an alert by its upstream risk."""
    conversations = load_conversations()
    for n in range(count):
        number, turn = divmod(n, turns_per_session)
        said = conversations[number % len(conversations)].turns[turn]
        yield _turn(conversations[number % len(conversations)], f"alarming-{number}", turn, said, risk=_risk(turn))


def _risk(turn: int) -> float:
    return 0.97 if turn == 9 else 0.05  # noqa: PLR2004 - above the policy's single_turn_risk


def _session(number: int, conversations: list[Conversation]) -> Iterator[Turn]:
    conversation = conversations[number % len(conversations)]
    for turn, said in enumerate(conversation.turns):
        yield _turn(conversation, f"bench-{number}", turn, said, risk=None)


def _turn(conversation: Conversation, session_id: str, turn: int, said: dict[Any, str], *, risk: float | None) -> Turn:
    ((role, content),) = said.items()
    return Turn(
        session_id=session_id,
        user_id=f"user-of-{session_id}",
        app_id=conversation.app_id,
        turn=turn,
        role=role,
        content=content,
        timestamp=datetime.now(UTC),
        risk=risk,
    )
