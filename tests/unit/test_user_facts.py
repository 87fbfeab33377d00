"""What a user says of themselves, from the message to the events: extraction, conflicts, retractions (seed 002)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from models.events import FactCategory, Retraction, Role
from models.events.topics import FACTS
from models.user.facts import part_of
from models.wire.codec import decode_output, encode
from models.wire.envelope import key_of
from tests.user_driver import NOON, User, causes, fact

MINUTE = timedelta(minutes=1)


def test_the_seeds_conflict_example() -> None:
    """Alex is stored, a less sure Al is ignored, and an explicit correction replaces the name."""
    user = User()
    user.say("My name is Alex")
    user.say("Call me Al")
    user.say("My full name is Alexander")

    assert causes(user.changes) == [("name", "Alex", "stored"), ("name", "Alexander", "updated")]
    assert [(c.confidence, c.active, c.valid_until) for c in user.changes] == [(1.0, True, None), (1.0, True, None)]
    (past,) = user.changes[-1].history
    assert (past.value, past.valid_from, past.valid_until) == ("Alex", NOON + MINUTE, NOON + 3 * MINUTE)
    assert user.profile == {"name": "Alexander"}
    assert user.standing.facts == 1


def test_only_what_the_user_says_counts() -> None:
    """An assistant that introduces itself is no fact of the user."""
    user = User(facts={"ask": True})
    user.say("My name is Claude and I live in Paris.", role=Role.ASSISTANT)

    assert (user.changes, user.asked) == ([], [])


def test_facts_stand_before_the_standing_of_their_turn() -> None:
    """Whoever waits for the standing reads the facts."""
    user = User()
    outputs = user.say("My name is Alex and I prefer Python.")

    assert [type(o).__name__ for o in outputs] == ["FactChanged", "FactChanged", "UserMemoryChanged"]
    assert user.standing.facts == 2


def test_a_fact_names_the_turn_that_says_so() -> None:
    """Also when it ends: the turn that takes it back, not the one that said it, in a session that has no such turn."""
    user = User()
    user.chat(3)
    user.say("My name is Alex")
    user.say("Forget my name", session="t", partition=1)

    assert [(c.cause, c.session_id, c.turn, c.extracted_by) for c in user.changes] == [
        ("stored", "s", 3, "rules"),
        ("retracted", "t", 0, "rules"),
    ]


def test_everything_can_be_forgotten() -> None:
    """Each fact tells that it is active no longer; the profile is empty, the history stays."""
    user = User()
    user.say("My name is Alex, I live in Paris and I'm vegetarian.")
    user.say("Forget everything you know about me")

    assert user.profile == {}
    assert sorted((c.key, c.active, c.valid_until) for c in user.changes if c.cause == "retracted") == [
        ("diet", False, NOON + 2 * MINUTE),
        ("location", False, NOON + 2 * MINUTE),
        ("name", False, NOON + 2 * MINUTE),
    ]
    assert user.standing.facts == 0


@pytest.mark.parametrize(
    ("said", "key", "kept"),
    [
        ("I moved", "location", False),
        ("I moved to Oslo", "location", True),
        ("I'm no longer vegetarian", "diet", False),
        ("I'm no longer vegan", "diet", True),
        ("Forget where I live", "location", False),
        ("Forget my name", "location", True),
    ],
)
def test_what_a_message_takes_back(said: str, key: str, kept: bool) -> None:
    """By key, and by value only where it is this value."""
    user = User()
    user.say("I live in Paris and I'm vegetarian.")
    user.say(said)

    assert (key in user.profile) is kept


def test_the_same_fact_said_again_stays_as_it_is() -> None:
    """mem0#1674: saying it twice must not delete it; mem0#4573: a thousand times leave one fact and one event."""
    user = User()
    for n in range(1_000):
        user.say("My name is Alex and I live in Paris." if n % 2 else "my name is ALEX")
    user.store()

    assert causes(user.changes) == [("name", "ALEX", "stored"), ("location", "Paris", "stored")]
    assert [part for part in user.stored if part.startswith("f:")] == [
        part_of(FactCategory.IDENTITY, key) for key in ("name", "location")
    ]
    assert user.changes[0].history == []


def test_places_one_after_the_other_and_back_are_intervals_of_their_own() -> None:
    """graphiti#1865: a value that comes back is another occurrence, the earlier keeps its times."""
    user = User()
    for place in ("Paris", "Oslo", "Paris"):
        user.say(f"I live in {place}")
    change = user.changes[-1]

    assert [(p.value, p.valid_from, p.valid_until) for p in change.history] == [
        ("Paris", NOON + MINUTE, NOON + 2 * MINUTE),
        ("Oslo", NOON + 2 * MINUTE, NOON + 3 * MINUTE),
    ]
    assert (change.value, change.active, change.valid_from, change.valid_until) == (
        "Paris",
        True,
        NOON + 3 * MINUTE,
        None,
    )


def test_unrelated_facts_do_not_retire_each_other() -> None:
    """graphiti#1728: the same value or key elsewhere, of another category, is another fact."""
    user = User()
    user.learn(fact("language", "Go"), fact("language", "Go", category=FactCategory.PREFERENCE), fact("city", "Go"))
    user.learn(fact("language", "Rust", category=FactCategory.PREFERENCE))
    user.forget(Retraction(category=FactCategory.IDENTITY, key="city"))

    assert [(c, key, f.value) for c, key, f in user.state.facts.all() if f.active] == [
        (FactCategory.IDENTITY, "language", "Go"),
        (FactCategory.PREFERENCE, "language", "Rust"),
    ]


def test_an_answer_for_an_older_message_does_not_undo_what_was_said_since() -> None:
    """A language model takes its time: the user moved on before it answers."""
    user = User(facts={"ask": True})
    user.say("Oslo is where you find me these days.")
    then = user.now
    user.say("I live in Paris")
    late = user.learn(fact("location", "Oslo"), timestamp=then)
    gone = user.forget(Retraction(category=FactCategory.IDENTITY, key="location"), timestamp=then)

    assert (late, gone) == ([], [])
    assert user.profile == {"location": "Paris"}


@pytest.mark.parametrize("known", [True, False])
def test_an_answer_for_an_older_message_does_not_bring_back_what_was_forgotten(known: bool) -> None:
    """Whether the address was known when the user took it back, or was on its way only; said anew it counts."""
    user = User()
    if known:
        user.say("I live at 5 Elm Street")
    user.say("Elm Street, number 6, is where my bed stands.")
    then = user.now
    user.say("Forget my address")
    late = user.learn(fact("address", "6 Elm Street"), timestamp=then)
    user.store()
    again = user.learn(fact("address", "6 Elm Street"), timestamp=then)
    user.say("I live at 7 Elm Street")

    assert (late, again) == ([], [])
    assert user.profile == {"address": "7 Elm Street"}


def test_a_slower_extractor_that_finds_the_same_adds_nothing() -> None:
    """What rules found already, with the change spelt out as a retraction too."""
    user = User()
    user.say("I live in Paris")
    user.say("I moved to Oslo")
    before = len(user.changes)
    location = Retraction(category=FactCategory.IDENTITY, key="location")
    found = user.learn(fact("location", "oslo", 0.9), retractions=[location])

    assert (found, len(user.changes)) == ([], before)
    assert user.profile == {"location": "Oslo"}


def test_slower_extractors_are_asked_only_where_the_policy_says_so() -> None:
    """Each message of the user that has any words, cut; not by default."""
    quiet, asking = User(), User(facts={"ask": True, "asked_chars": 100})
    for user in (quiet, asking):
        for content in ("x" * 101, " ", "Hello"):
            user.say(content)

    assert quiet.asked == []
    assert [(r.turn, r.content) for r in asking.asked] == [(0, "x" * 100), (2, "Hello")]


def test_names_of_extractors_and_sessions_are_cut() -> None:
    """What comes from outside does not grow events or state."""
    user = User()
    (change,) = user.learn(fact("name", "Alex"), session_id="s" * 9_999, extracted_by="x" * 9_999)

    assert (len(change.session_id), len(change.extracted_by)) == (256, 256)


def test_ids_are_unique_and_keys_tell_facts_apart() -> None:
    """Many events of one record have ids of their own; a fact's last event survives compaction."""
    user = User()
    user.say("My name is Alex, I live in Paris, I'm vegetarian and I prefer Python.")
    user.say("Forget everything you know about me. My name is Bob.")
    user.say("My name is Alex")
    ids = [output.id for output in user.outputs]
    compacted = {key_of(change): change for change in user.changes}

    assert len(ids) == len(set(ids))
    assert {key: (c.value, c.active) for key, c in compacted.items()} == {
        b"user:a/u/identity/name": ("Alex", True),
        b"user:a/u/identity/location": ("Paris", False),
        b"user:a/u/constraint/diet": ("vegetarian", False),
        b"user:a/u/preference/language": ("Python", False),
    }


def test_events_survive_the_wire() -> None:
    """What a reader decodes is what was told, history and times included."""
    user = User()
    user.say("I live in Paris")
    user.say("I live in 東京")
    user.say("I moved")

    assert [decode_output(FACTS, encode(change)) for change in user.changes] == user.changes
