"""Vector memory of topics: what is kept of their events, and what is found again."""

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from msgspec import structs

from models.events import RestoredMessage, Role, SessionName, TopicChanged, TopicRestored
from models.events.topics import CONVERSATION_TOPICS
from models.policy import MemoryPolicy
from models.wire.arrival import SessionTimedOut
from models.wire.codec import encode
from streams.index.collections import TOPICS, latest_of
from streams.index.server import ServerStore
from streams.index.session_memory import forget_before
from tests.support.session_driver import NOON
from tests.support.topics_indexed import POLICY, SUBJECTS, IndexedSession
from tests.support.zero_embedder import ZeroEmbedder

S = SessionName("a", "s")


@pytest.fixture
def session(store: ServerStore) -> IndexedSession:
    """A session of at most four topics."""
    return IndexedSession(store, ZeroEmbedder())


def _subject(title: str) -> str:
    return next(name for name, text in SUBJECTS.items() if title.startswith(text))


def record(change: tuple[TopicChanged, int], value: bytes | None = None) -> ConsumerRecord:
    """An event as it lies in the log."""
    value = encode(change[0]) if value is None else value
    return ConsumerRecord("t", 0, change[1], 0, 1, b"s", value, None, 1, len(value), ())


def last(log: Iterable[ConsumerRecord]) -> list[tuple[TopicChanged, int]]:
    """The last event of each topic."""
    return latest_of(CONVERSATION_TOPICS, log, TopicChanged, key=TOPICS.key)


async def test_every_turn_is_in_one_topic_before_any_event_names_it(session: IndexedSession) -> None:
    """Turns above the last event's number belong to the active topic, whatever the event was."""
    await session.talk("boats", "bread", "bread", "bread", "boats", "boats")

    found = {_subject(topic.title): topic.active_turns for topic in (await session.memory.topics(S)).kept}

    assert found == {"boats": [0, 1, 8, 9, 10, 11], "bread": [2, 3, 4, 5, 6, 7]}
    assert [len(session.changes), session.changes[-1][0].turn] == [5, 8]


@pytest.mark.parametrize("seed", range(5))
async def test_any_cut_of_the_log_ends_on_the_same_topics(store: ServerStore, seed: int) -> None:
    """Batches of any size, some repeated as after a crash, end on what the events say one by one."""
    rng = random.Random(seed)
    session = IndexedSession(store, ZeroEmbedder())
    await session.talk(*rng.choices(list(SUBJECTS), k=40))
    one_by_one = await session.memory.topics(S)
    gone = await session.memory.gone(S, one_by_one, 100)
    log = session.changes
    while log:
        size = rng.randint(1, 12)
        for _ in range(rng.randint(1, 2)):
            latest = last([record(change) for change in log[:size]])
            await session.memory.add_changes(latest, ZeroEmbedder().embed(latest))
        del log[:size]

    assert one_by_one == await session.memory.topics(S)
    assert gone == await session.memory.gone(S, one_by_one, 100)
    assert {topic.topic_id for topic in one_by_one.kept} == {t.topic_id for _, t in session.topics.store.topics()}


async def test_an_evicted_topic_is_found_by_id_and_when_asked_for(session: IndexedSession) -> None:
    """It left the list with the reason, and its turns can still be read."""
    await session.talk(*SUBJECTS)
    found = await session.memory.topics(S)
    gone = await session.memory.gone(S, found, 100)
    first = await session.memory.topic(S, gone[-1].topic_id)

    assert [_subject(topic.title) for topic in found.kept] == ["taxes", "tulips", "guitars", "visas"]
    assert [(_subject(topic.title), topic.kept, topic.cause) for topic in gone] == [
        ("bread", False, "evicted"),
        ("boats", False, "evicted"),
    ]
    assert first == gone[-1]
    assert [turn.turn for turn in await session.memory.messages(gone[-1], include_packed=True)] == [0, 1]


async def test_a_gone_topic_goes_when_none_of_its_turns_is_indexed(store: ServerStore) -> None:
    """Kept topics stay however old they are; gone ones would else gather without end."""
    policy = structs.replace(POLICY, memory=MemoryPolicy(stored_vectors=10))
    session = IndexedSession(store, ZeroEmbedder(), policy)
    await session.talk(*SUBJECTS)
    at_first = await store.count(TOPICS.name)
    await session.talk(*["taxes"] * 4, "visas", first=12)

    assert at_first == len(SUBJECTS)
    assert await store.count(TOPICS.name) == len(session.topics.store.index.slots) == 4


async def test_topics_of_a_forgotten_life_are_gone(session: IndexedSession) -> None:
    """A session that comes back after its retention knows nothing of before, nor do its readers mix the two."""
    await session.talk("boats", "bread", "bread", "bread")
    session.end(minute=20)
    assert session.state is not None
    session.put(SessionTimedOut("s", session.deadline))
    session.state = None
    await session.index()
    later = NOON + timedelta(days=3)
    await session.ask(0, "visas", timestamp=later)
    await session.ask(1, "boats", timestamp=later)
    found = await session.memory.topics(S)

    assert [(_subject(topic.title), topic.active, topic.active_turns) for topic in found.kept] == [
        ("boats", True, [1]),
        ("visas", False, [0]),
    ]
    assert [_subject(topic.title) for topic in await session.memory.gone(S, found, 100)] == ["bread", "boats"]


async def test_what_is_no_event_is_passed(session: IndexedSession) -> None:
    """Whoever wrote it: the index goes on, and the last event of each topic counts."""
    await session.talk("boats", "bread", "boats")
    log = [record(change) for change in session.changes]
    strange: list[Any] = [b"", b"{", encode(structs.replace(session.changes[0][0], id="x"))[:-9], b"null"]
    found = last([record(session.changes[0], value) for value in strange] + log)

    assert [(topic.cause, offset) for topic, offset in found] == [("returned", 4), ("left", 3)]


async def test_a_restored_topic_is_found_again_whatever_its_id(session: IndexedSession) -> None:
    """Ids of restored topics are the sender's."""
    await session.talk(*SUBJECTS)  # the first of them, with turn 0, is evicted
    name, at = '_1 "x"\n/\\', NOON + timedelta(minutes=12)
    said = [RestoredMessage(turn=0, role=Role.USER, content="x", timestamp=NOON)]
    session.put(TopicRestored(session_id="s", timestamp=at, topic_id=name, title="Old", created_at=NOON,
                              importance=1.0, access_count=3, messages=said))  # fmt: skip
    await session.index()
    topic = await session.memory.topic(S, name)
    assert topic is not None

    assert (topic.title, topic.kept, topic.active, topic.cause) == ("Old", True, False, "restored")
    assert [turn.turn for turn in await session.memory.messages(topic, include_packed=True)] == [0]


async def test_an_erasure_takes_topics_by_what_caused_them(store: ServerStore, session: IndexedSession) -> None:
    """Offsets of their own events are of another topic's log; what later turns caused is of a new life."""
    await session.talk("boats", "bread", "boats")
    left = []
    for offset in (4, 5):
        await forget_before(store, {(S, 0): offset})
        left.append(await store.count(TOPICS.name))

    assert [(3, 4), (4, 4)] == sorted((at, event.source.offset) for event, at in last(map(record, session.changes)))
    assert left == [2, 0]
