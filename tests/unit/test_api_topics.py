"""HTTP routes of topics, without a socket: they say what the session's own state says."""

import random
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import ANY

import pytest
from qdrant_client import AsyncQdrantClient

from models.events import FeedbackGiven, TopicAdjusted
from models.policy import Policy
from models.session.topics.conversation_topics import ConversationTopics
from models.state.buffer import BufferedTurn
from models.state.decay import half_life, memory_type
from streams.api.sessions.topics import TopicReader, TopicStats
from streams.api.sessions.turns import Waiting
from streams.api.users.messages import After
from streams.http.answering import served_routes
from streams.index.server import ServerStore
from tests.support.http_api import api_of, client_of
from tests.support.loaded import loaded_embedder
from tests.support.session_driver import NOON
from tests.support.topic_driver import messages_of
from tests.support.topics_indexed import POLICY, SUBJECTS, IndexedSession

NOW = NOON + timedelta(days=2)


async def at_once(_app: str | None, _after: After) -> bool:
    """Whatever is waited for is there."""
    return True


class Asked(IndexedSession):
    """A session, and a client of what is served of it."""

    def __init__(self, store: ServerStore, policy: Policy = POLICY, now: datetime = NOW) -> None:
        super().__init__(store, loaded_embedder(), policy)
        routes = served_routes(TopicReader(self.memory, policy.topics, Waiting(at_once), now=lambda: now))
        self.client = client_of(api_of(routes), below="/v1/sessions")

    async def got(self, end: str, *, of: str = "s", **params: Any) -> Any:
        """An answer that must be one."""
        answer = await self.client.get(f"/{of}/{end}", params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def store() -> ServerStore:
    """A store without network."""
    return ServerStore(AsyncQdrantClient(":memory:"), embedder="wordllama")


@pytest.fixture
def session(store: ServerStore) -> Asked:
    """A session of at most four topics."""
    return Asked(store)


def statistics(answer: dict[str, Any]) -> dict[str, Any]:
    """The part of an answer that the source names."""
    return {field: answer[field] for field in TopicStats.__dataclass_fields__}


async def assert_as_in_state(session: Asked) -> None:
    """Every route against the topics of the fold."""
    topics, store = session.topics, session.topics.store
    assert topics.active is not None
    active = store.topic(topics.active)
    latest_first = sorted(store.topics(), key=lambda each: each[1].last_active_at, reverse=True)

    listed = await session.got("topics")
    assert [stats_of(topics, slot) for slot, _ in latest_first] == [statistics(each) for each in listed]
    assert stats_of(topics, topics.active) == statistics(await session.got(f"topics/{active.topic_id}"))
    for slot, named in [(topics.active, {}), *((slot, {"topic": each.topic_id}) for slot, each in store.topics())]:
        full = await session.got("messages", **named)
        at_hand = await session.got("messages", include_packed=False, **named)
        summary = store.summary(slot)
        summed_up = [] if summary is None else [{"role": "system", "content": f"Topic summary: {summary.text}"}]
        said = [{"role": turn.role.value, "content": turn.content} for turn in store.active_messages(slot)]
        assert summed_up + said == await session.got("context", **named)
        assert [timed(turn) for turn in messages_of(topics, slot)] == full
        assert [timed(turn) for turn in messages_of(topics, slot, packed=False)] == at_hand
        assert stats_of(topics, slot) == await session.got("stats", **named)


def timed(turn: BufferedTurn) -> dict[str, Any]:
    """A message as a history has it."""
    return {"role": turn.role.value, "content": turn.content, "timestamp": turn.timestamp.timestamp()}


def stats_of(topics: ConversationTopics, slot: int) -> dict[str, Any]:
    """The source's statistics of a topic of the fold."""
    topic = topics.store.topic(slot)
    return {
        "topic_id": topic.topic_id,
        "topic_title": topic.title,
        "active_messages": topic.active_messages,
        "compressed_messages": sum(block.messages for block in topic.packed),
        "total_messages": topic.message_count,
        "has_summary": topics.store.summary(slot) is not None,
        "importance_score": topic.importance,
        "access_count": topic.access_count,
        "memory_type": memory_type(topic.access_count, topics.policy),
        "half_life_days": half_life(topic.access_count, topics.policy) / timedelta(days=1),
        "age_seconds": (NOW - topic.created_at).total_seconds(),
        "inactive_seconds": (NOW - topic.last_active_at).total_seconds(),
    }


@pytest.mark.behaviour("topic-18", "topic-20", "topic-31")
@pytest.mark.parametrize("seed", [0, 3])
async def test_readers_are_told_what_the_state_says(session: Asked, seed: int) -> None:
    """At any point of a conversation with compactions, unpackings, evictions, ratings and feedback."""
    rng = random.Random(seed)
    subjects = list(SUBJECTS)[: 3 + seed % 4]
    await session.talk(*subjects)
    turn, causes = 2 * len(subjects), set[str]()
    for n in range(12):
        for subject in [rng.choice(subjects)] * rng.randint(1, 9):
            await session.talk(subject, first=turn)
            turn += 2
        at = NOON + timedelta(minutes=turn)
        if n % 3 == 1:
            session.put(TopicAdjusted(session_id="s", timestamp=at, importance=rng.random(), tags=["a", "b"]))
        elif n % 3 == 2:
            session.put(FeedbackGiven(session_id="s", timestamp=at, value=-0.5, turn=turn - 1))
        await session.index()
        await assert_as_in_state(session)
        causes |= {topic.cause for topic, _ in session.changes}

    assert {"started", "returned", "compacted", "unpacked", "adjusted", "learnt"} <= causes
    assert ("evicted" in causes) == (len(subjects) > 4)


@pytest.mark.behaviour("topic-30")
async def test_search_finds_topics_by_likeness(session: Asked) -> None:
    """Across the topics of a session or of a time, best first; one that was evicted only when asked for."""
    await session.talk(*SUBJECTS)
    question: dict[str, Any] = {"q": "which strings does my guitar need", "top_k": 2}
    found = await session.got("topics/search", **question)
    sail: dict[str, Any] = {"q": "sails for a boat", "top_k": 1}
    kept_only = await session.got("topics/search", **sail)
    evicted = await session.got("topics/search", include_gone=True, **sail)

    assert found[0]["topic_title"].startswith(SUBJECTS["guitars"])
    assert found[0]["similarity"] > 0.5 > found[1]["similarity"]
    assert kept_only[0]["kept"]
    assert (evicted[0]["topic_title"][:11], evicted[0]["kept"]) == ("Which sails", False)
    assert evicted[0]["similarity"] > kept_only[0]["similarity"]
    until = {"q": "what", "to": evicted[0]["last_active_at"], "top_k": 9}
    assert await session.got("topics/search", include_gone=True, **until) == [
        {**evicted[0], "similarity": ANY, "age_seconds": ANY}
    ]
    assert await session.got("topics/search", q=" ") == []
    assert await session.got("topics/search", of="nobody", **sail) == []


async def test_an_unknown_topic_is_404_with_the_way_out(session: Asked) -> None:
    """Also one of another session."""
    await session.talk("boats")
    ends = ("s/topics/x", "s/context?topic=x", "s/messages?topic=x", "s/stats?topic=x")
    other = f"nobody/topics/{session.changes[0][0].topic_id}"
    answers = [await session.client.get(f"/{each}") for each in (*ends, other)]

    assert [(404, True)] * 5 == [
        (each.status_code, "/topics?include_gone=true" in each.json()["detail"]) for each in answers
    ]
