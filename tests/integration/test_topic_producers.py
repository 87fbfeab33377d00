"""One session driven by many producers at once: the partition's owner is the lock that the source asks for.

The real sessions role on the real broker, with its micro-batches as they come. What it leaves must be what the pure
fold makes of the log, and every message must be in exactly one topic.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from models.events import Role, Turn, session_key
from models.events.topics import CONVERSATION_TOPICS
from models.session.fold import SessionState
from models.session.topics.conversation_topics import ConversationTopics
from streams.settings import Settings
from streams.wiring import policy_of
from tests.support.fault_driver import assert_equal_to_replay, events, recorded, said, send, sessions_role
from tests.support.topic_driver import messages_of
from tests.support.topics_indexed import SUBJECTS

pytestmark = pytest.mark.kafka

PRODUCERS = 6
SESSIONS = ("s", "s/other")
TURNS_EACH = 240
WAVE = 30
"""Turns in the air at once: half of what the fold tells apart as out of order (`session.reorder_reach_turns`)."""
STRETCH = 20
"""Turns on one subject before the next."""
START = datetime.now(UTC) - timedelta(hours=2)
POLICY = """
[topics]
history_bytes = 65536  # all of it: nothing is released to the archive
similarity_threshold = 0.6  # between questions on one subject (0.92) and on two (0.33): each subject is a topic
"""


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    """Rules of its own."""
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    return settings.model_copy(update={"policy_file": policy})


def turn(session_id: str, number: int) -> Turn:
    """Questions and answers on one subject after the other, and round again; every message says which it is."""
    subject = list(SUBJECTS)[number // STRETCH % len(SUBJECTS)]
    asks = number % 2 == 0
    return said(
        number,
        session_id=session_id,
        role=Role.USER if asks else Role.ASSISTANT,
        content=f"{SUBJECTS[subject]} #{number}" if asks else f"That depends. #{number}",
        at=START + timedelta(seconds=number),
    )


async def produce(settings: Settings, turns: Iterable[Turn], seed: int) -> None:
    """One producer of its own connection, sending in an order of its own."""
    mine = random.Random(seed).sample(list(turns), k=len(list(turns)))
    await send(settings, map(recorded, mine))


async def drive(settings: Settings, waves: range = range(0, TURNS_EACH, WAVE)) -> int:
    """All producers at once, wave by wave; gives the duplicates sent. A producer may send what another has sent."""
    rng, duplicates = random.Random(waves.start), 0
    for first in waves:
        wave = [turn(name, number) for name in SESSIONS for number in range(first, first + WAVE)]
        again = rng.sample(wave, k=len(wave) // 5)
        duplicates += len(again)
        shares: list[list[Turn]] = [[] for _ in range(PRODUCERS)]
        for each in wave + again:
            rng.choice(shares).append(each)
        await asyncio.gather(*[produce(settings, share, seed=first + n) for n, share in enumerate(shares)])
    return duplicates


def held(topics: ConversationTopics) -> Counter[int]:
    """How often each turn number is in a topic, at hand or packed."""
    store = topics.store
    at_hand = [number for slot, _ in store.topics() for number in store.active_turns(slot)]
    packed = [n for slot, topic in store.topics() for block in topic.packed for n in store.block_turns(slot, block)]
    return Counter(at_hand + packed)


def numbers_said(topics: ConversationTopics) -> Counter[int]:
    """The same by what the messages themselves say, unpacked."""
    return Counter(
        int(message.content.rpartition("#")[2])
        for slot, _ in topics.store.topics()
        for message in messages_of(topics, slot)
    )


async def test_many_producers_of_one_session_lose_and_double_nothing(settings: Settings) -> None:
    """Interleaved numbers, duplicates, several connections: state as the fold's, every message once, order by time."""
    async with sessions_role(settings) as role:
        duplicates = await drive(settings)
        settled = await assert_equal_to_replay(settings)
        assert not role.done()
    found = {name: parts for entities in settled.state.values() for name, parts in entities.items()}
    causes = Counter(event.cause for event in await events(settings, CONVERSATION_TOPICS))

    for name in SESSIONS:
        state = SessionState.load(found[session_key(turn(name, 0).app_id, name)])
        topics = state.topics(policy_of(settings))
        assert Counter(range(TURNS_EACH)) == held(topics) == numbers_said(topics)
        assert sum(topic.message_count for _, topic in topics.store.topics()) == TURNS_EACH
        for slot, _ in topics.store.topics():
            times = [message.timestamp for message in topics.store.active_messages(slot)]
            assert times == sorted(times)
    assert duplicates > 0
    assert causes["started"] == len(SESSIONS) * len(SUBJECTS)
    assert {"left", "compacted"} <= set(causes)
    assert {"returned", "unpacked"} & set(causes)  # which of them depends on how the producers' turns met
