"""Facts that somebody writes, pins and deletes, and turns that are put right: what is said before and after."""

from __future__ import annotations

from datetime import timedelta

import pytest

from models.events import BY_HAND, FactCategory, FactEdited
from models.events.user import MemoryMode, MemoryModeSet
from tests.support.user_driver import NOON, User, by_hand, causes, corrected, fact

HOUR = timedelta(hours=1)


def test_what_was_said_before_does_not_undo_a_correction() -> None:
    """Neither what rules read in an old turn that comes late, nor a model's late answer about one, however sure."""
    user = User()
    user.say("My name is Alex")
    user.now += HOUR
    user.edit("name", value="Alexa")
    user.learn(fact("name", "Alex", corrects=True), timestamp=user.now - HOUR)
    said = user.changes[-1]

    assert causes(user.changes) == [("name", "Alex", "stored"), ("name", "Alexa", "edited")]
    assert (said.extracted_by, said.by, said.session_id, said.turn, said.confidence) == (BY_HAND, "ops", "", -1, 1.0)
    assert [(past.value, past.made_by, past.by) for past in said.history] == [("Alex", "rules", "")]


@pytest.mark.behaviour("user-17")
@pytest.mark.parametrize("mode", [MemoryMode.READ_ONLY, MemoryMode.OFF])
def test_a_memory_that_is_not_active_learns_nothing(mode: MemoryMode) -> None:
    """Turns are seen, so that nobody waits for them, and left out for good; what is done by hand counts."""
    user = User()
    user.say("My name is Alex")
    user.put(MemoryModeSet(app_id="a", user_id="u", timestamp=user.now, mode=mode, request_id="r"))
    user.say("I live in Oslo")
    seen = user.stats
    user.edit("pet", value="cat")
    again = user.put(MemoryModeSet(app_id="a", user_id="u", timestamp=user.now, mode=MemoryMode.ACTIVE))
    user.say("Call me Lex from now on, I moved to Bergen")

    assert [(seen.turn_count, seen.memory_mode, seen.seen), seen.results[-1].outcome] == [
        (1, mode, {**user.stats.seen, "0": user.stats.seen["0"] - 1}),
        "done",
    ]
    assert again[-1].memory_mode is MemoryMode.ACTIVE
    assert user.profile["location"] == "Bergen"
    assert {"name", "pet"} <= user.profile.keys()
    assert all("Oslo" not in past.value for change in user.changes for past in change.history)


@pytest.mark.parametrize("pinned", [False, True])
def test_what_is_said_later_counts_unless_it_is_pinned(pinned: bool) -> None:
    """However unsure: a correction is of what was said before it. Against a pinned value it stands in the history."""
    user = User()
    user.edit("name", value="Alexa", pinned=pinned)
    user.say("Call me Al")
    user.say("Forget my name")
    last = user.changes[-1]

    if pinned:
        assert user.profile == {"name": "Alexa"}
        assert [(past.value, past.contradicted) for past in last.history] == [("Al", True), ("", True)]
        assert (last.pinned, last.by, last.cause) == (True, "ops", "contradicted")
    else:
        assert user.profile == {}
        assert causes(user.changes)[-2:] == [("name", "Al", "updated"), ("name", "Al", "retracted")]


def test_the_same_contradiction_is_told_once() -> None:
    """A user who insists does not push what was before out of the history."""
    user = User()
    user.edit("location", value="Oslo", pinned=True)
    for _ in range(3):
        user.say("I live in Lima")

    assert [past.value for past in user.changes[-1].history] == ["Lima"]
    assert len(user.changes) == 2


def test_what_comes_of_a_command_is_told() -> None:
    """Done, unchanged, unknown, too many pinned; a deleted fact is not read again in what was said before.

    Pinned facts are never the ones that make room, though they matter least. To pin a fact of nobody leaves no name
    behind: a command makes a user known only by what it says.
    """
    user, small, nobody = User(facts={"most": 4}), User(facts={"most": 2}), User()
    user.say()
    outcomes = [user.edit("name").outcome, user.edit("name", value="Alex").outcome, user.edit("name").outcome]
    outcomes += [user.edit(key, value="x", pinned=True).outcome for key in ("k1", "k2", "k3")]
    user.now += HOUR
    outcomes += [user.delete("name").outcome, user.delete("name").outcome]
    user.learn(fact("name", "Alex"), timestamp=NOON)

    assert outcomes == ["not_found", "done", "unchanged", "done", "done", "too_many_pinned", "done", "not_found"]
    assert user.profile == {"k1": "x", "k2": "x"}

    small.edit("k1", value="x", pinned=True, importance=0.2)
    small.learn(fact("name", "Alex"), fact("location", "Oslo"))
    assert ("k1" in small.profile, len(small.profile)) == (True, 2)

    nobody.put(by_hand(FactEdited, FactCategory.IDENTITY, "name", pinned=True))
    assert not nobody.state.known
    nobody.edit("name", value="Alex")
    assert nobody.profile == {"name": "Alex"}


def test_an_erased_session_takes_what_it_said_and_not_what_was_written() -> None:
    """A fact by hand is no session's, though it was written meanwhile; a pinned one that the session said goes."""
    user = User()
    user.say("My name is Alex. I live in Oslo.")
    user.edit("name", value="Alexa")
    user.edit("location", pinned=True)
    user.erase("s")

    assert user.profile == {"name": "Alexa"}
    assert user.state.facts.get(FactCategory.IDENTITY, "name").history == ()


def test_a_turn_that_is_put_right_says_what_it_says_now() -> None:
    """As of its own time: what was said since stays. What it says no more is withdrawn, and the slower stage asked."""
    user = User(facts={"ask": True})
    first = user.turn("My name is Alex and I live in Oslo.")
    user.put(first)
    user.say("I moved to Lima")
    user.put(corrected(first, "My name is Alexander and I live in Rome.", user.now + HOUR))

    assert causes(user.changes)[-2:] == [("name", "Alex", "withdrawn"), ("name", "Alexander", "stored")]
    assert user.changes[-1].valid_from == first.timestamp
    assert user.profile == {"name": "Alexander", "location": "Lima"}
    assert user.state.turns(1, 1)[0].content == "My name is Alexander and I live in Rome."
    assert [(o.content, o.timestamp) for o in user.asked][-1] == (user.state.turns(1, 1)[0].content, first.timestamp)


def test_a_turn_that_said_nothing_of_the_user_still_says_nothing() -> None:
    """Facts are read anew where the old text's facts hold: else what was said since might be undone."""
    user = User()
    turn = user.turn("The boat needs sails.")
    user.put(turn)
    told = len(user.outputs)
    user.put(corrected(turn, "My name is Alex"))

    assert user.outputs[told:] == []
    assert user.state.turns(1, 1)[0].content == "My name is Alex"


def test_what_nobody_has_is_not_put_right() -> None:
    """A turn of a user or session that was erased, or never came: nothing is emitted, and nobody becomes known."""
    user = User()
    turn = user.turn("My name is Alex")
    user.put(corrected(turn, "My name is Eve"))
    assert not user.state.known

    user.put(turn)
    user.erase("s")
    told = len(user.outputs)
    user.put(corrected(turn, "My name is Eve"))
    assert user.outputs[told:] == []
