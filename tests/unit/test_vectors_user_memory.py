"""How users' events become points: which of the log count, whose embedding, and what cannot stop the index."""

from datetime import timedelta

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord

from models.events import FactChanged, UserMemoryChanged, UserOutput
from models.events.topics import FACTS
from models.wire.codec import encode
from models.wire.envelope import key_of
from streams.index.collections import latest_of
from streams.index.server import ServerStore
from tests.support.user_driver import fact
from tests.support.users_indexed import MATTERS, IndexedUser


def records(log: list[tuple[UserOutput, int]]) -> list[ConsumerRecord]:
    """Events as they lie in the log."""
    return [
        ConsumerRecord("t", 0, offset, 0, 1, key_of(event), value := encode(event), None, 1, len(value), ())
        for event, offset in log
    ]


def unit(place: int, length: float = 1.0) -> list[float]:
    """A direction."""
    return [length * (n == place) for n in range(len(MATTERS))]


@pytest.mark.parametrize(
    "answer",
    [
        {"embedding": [], "embedded_by": "matter"},
        {"embedding": unit(2), "embedded_by": "other"},
        {"embedding": unit(2)[1:], "embedded_by": "matter"},
        {"embedding": unit(2, 1e300), "embedded_by": "matter"},
        {"embedding": unit(2, 0.9), "embedded_by": "matter"},
        {"embedding": unit(2, 0.0), "embedded_by": "matter"},
        {"embedding": [float("nan")] * len(MATTERS), "embedded_by": "matter"},
    ],
)
async def test_any_other_embedding_is_made_anew(store: ServerStore, answer: dict[str, object]) -> None:
    """From the summary: of another model, another size or length, or what no store would take."""
    user = IndexedUser(store, high_turns=2, keep_turns=0)
    user.chat(2)
    user.answer(1, 2, "They spoke of boats.", **answer)
    await user.index()
    ((found, _),) = await user.memory.find_episodes("a", "u", "boats", max_distance=0.1, top_k=3)

    assert user.embedder.embedded[:1] == ["They spoke of boats."]
    assert found.turn_range == "turns 1-2"


@pytest.mark.behaviour("user-04")
async def test_made_embeddings_go_to_their_episodes(store: ServerStore) -> None:
    """In a batch where some have one already, which is used as it is: nothing of these is embedded anew."""
    user = IndexedUser(store, high_turns=2, keep_turns=0)
    user.chat(2 * len(MATTERS))
    for n, matter in enumerate(MATTERS):
        own = {} if n % 2 else {"embedding": unit(n, 0.99999), "embedded_by": "matter"}
        user.answer(2 * n + 1, 2 * n + 2, f"They spoke of {matter}.", **own)
    await user.index()
    at_once = set(user.embedder.embedded)
    found = {
        matter: [e.episode for e, _ in await user.memory.find_episodes("a", "u", matter, max_distance=0.4, top_k=9)]
        for matter in MATTERS
    }

    assert found == {matter: [n + 1] for n, matter in enumerate(MATTERS)}
    assert {matter for matter in MATTERS if f"They spoke of {matter}." in at_once} == {*MATTERS[1::2]}


def test_of_a_batch_the_last_event_of_each_key_counts(store: ServerStore) -> None:
    """Facts and standings on one topic are told apart, users too; offsets are those of the records."""
    user = IndexedUser(store)
    other = IndexedUser(store, user="v", first=100)
    user.say("I live in Paris")
    user.say("I live in Oslo. My name is Alex.")
    other.say("I live in Rome")
    log = records([*user.log, *other.log])
    facts = latest_of(FACTS, log, FactChanged)
    all_stats = latest_of(FACTS, log, UserMemoryChanged)

    assert sorted((f.user_id, f.key, f.value, offset) for f, offset in facts) == [
        ("u", "location", "Oslo", 2),
        ("u", "name", "Alex", 3),
        ("v", "location", "Rome", 100),
    ]
    assert sorted((s.user_id, s.turn_count, offset) for s, offset in all_stats) == [("u", 2, 4), ("v", 1, 101)]


async def test_what_an_erasure_takes_from_a_fact_goes(store: ServerStore) -> None:
    """Earlier values that the event no longer names, or the fact with all of them; other facts and users stay."""
    users = [IndexedUser(store), IndexedUser(store, user="v", first=100)]
    for user in users:
        for value in ("Paris", "Oslo", "Rome"):
            user.learn(fact("city", value))
            user.learn(fact("name", value))
            user.now += timedelta(days=1)
        await user.index()
    changes = {event.key: event for event, _ in users[0].log if isinstance(event, FactChanged)}
    kept = [past for past in changes["city"].history if past.value != "Paris"]
    await users[0].memory.add_facts(
        [
            (msgspec.structs.replace(changes["city"], cause="erased", history=kept), 50),
            (msgspec.structs.replace(changes["name"], cause="erased", active=False, value="", history=[]), 51),
        ]
    )
    found = [await user.memory.facts("a", name, include_past=True) for user, name in zip(users, "uv", strict=True)]

    assert [("city", "Rome"), ("city", "Oslo")] == [(each.key, each.value) for each in found[0]]
    assert len(found[1]) == 6
