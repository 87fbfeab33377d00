"""What a user says of themselves, from the message to the events: extraction, conflicts, retractions."""

from __future__ import annotations

from datetime import timedelta

from models.events import Role
from models.wire.envelope import key_of
from tests.support.user_driver import NOON, User, causes

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
    assert user.stats.facts == 1


def test_only_what_the_user_says_counts() -> None:
    """An assistant that introduces itself is no fact of the user."""
    user = User(facts={"ask": True})
    user.say("My name is Claude and I live in Paris.", role=Role.ASSISTANT)

    assert (user.changes, user.asked) == ([], [])


def test_facts_stand_before_the_standing_of_their_turn() -> None:
    """Whoever waits for the standing reads the facts; each has a key of its own, by which it survives compaction."""
    user = User()
    outputs = user.say("My name is Alex and I prefer Python.")

    assert [type(o).__name__ for o in outputs] == ["FactChanged", "FactChanged", "UserMemoryChanged"]
    assert [key_of(o) for o in outputs] == [b"user:a/u/identity/name", b"user:a/u/preference/language", b"user:a/u"]
    assert user.stats.facts == 2


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


def test_slower_extractors_are_asked_only_where_the_policy_says_so() -> None:
    """Each message of the user that has any words, cut; not by default."""
    quiet, asking = User(), User(facts={"ask": True, "asked_chars": 100})
    for user in (quiet, asking):
        for content in ("x" * 101, " ", "Hello"):
            user.say(content)

    assert quiet.asked == []
    assert [(r.turn, r.content) for r in asking.asked] == [(0, "x" * 100), (2, "Hello")]
