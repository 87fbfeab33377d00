"""What becomes of facts, row by row of the table in `models.user.facts`, from the message to the events."""

from datetime import timedelta

import pytest

from models.events import ExtractedFact, FactCategory, Retraction, Role
from models.policy import FactPolicy
from models.state.parts import Parts
from models.user.fact import Fact, FactChange, FactProvenance
from models.user.facts import Facts
from models.wire.envelope import key_of
from tests.support.user_driver import NOON, User, causes, fact

IDENTITY, PREFERENCE = FactCategory.IDENTITY, FactCategory.PREFERENCE
NAME = Retraction(category=IDENTITY, key="name")


class Kept:
    """The facts of one user; each message is said a minute after the one before, by default."""

    def __init__(self, **policy: float) -> None:
        self.parts = Parts({})
        self.facts = Facts(self.parts, FactPolicy(**policy))  # type: ignore[arg-type]
        self.minute = 0

    def take(self, *facts: ExtractedFact, back: tuple[Retraction, ...] = (), minute: int | None = None) -> list[str]:
        """One message; gives what became of which value."""
        return [f"{c.cause} {c.fact.value}" for c in self.changes(*facts, back=back, minute=minute)]

    def changes(
        self, *facts: ExtractedFact, back: tuple[Retraction, ...] = (), minute: int | None = None
    ) -> list[FactChange]:
        """One message; gives every change."""
        self.minute += 1
        at = NOON + timedelta(minutes=self.minute if minute is None else minute)
        return self.facts.take(facts, back, FactProvenance(at, "s", self.minute, "rules"))

    def name(self) -> Fact:
        """What is kept of the name."""
        known = self.facts.get(IDENTITY, "name")
        assert known is not None
        return known

    def times(self) -> list[tuple[str, int, int | None]]:
        """Every value of the name, with the minutes from and until which it was valid."""
        now = self.name()
        values = [
            *((p.value, p.valid_from, p.valid_until) for p in now.history),
            (now.value, now.valid_from, now.valid_until),
        ]
        return [(value, _minute(begins), None if ends is None else _minute(ends)) for value, begins, ends in values]


def _minute(at: object) -> int:
    return int((at - NOON) / timedelta(minutes=1))  # type: ignore[operator]


@pytest.mark.behaviour("user-09", "user-13")
@pytest.mark.parametrize(
    ("confidence", "importance", "stored"),
    [(0.4, 0.2, True), (0.39, 1.0, False), (1.0, 0.19, False), (0.0, 0.0, False), (1.0, 1.0, True)],
)
def test_what_is_not_sure_or_important_enough_is_never_stored(
    confidence: float, importance: float, stored: bool
) -> None:
    """The source's bounds are inside; a correction that is not sure enough is none either."""
    kept = Kept()

    assert bool(kept.take(fact("name", "Alex", confidence, importance=importance))) is stored
    assert bool(kept.take(fact("name", "Bob", confidence, importance=importance, corrects=True))) is stored


@pytest.mark.behaviour("user-13")
@pytest.mark.parametrize(
    ("facts", "value"),
    [
        ([("A", 0.6), ("B", 0.9), ("C", 0.7)], "B"),
        ([("A", 0.9), ("B", 0.9)], "B"),
        ([("A", 0.9), ("B", 0.3)], "A"),
        ([("A", 0.5), ("a", 0.8)], "a"),
        ([("a correction", 0.5), ("B", 0.99)], "a correction"),
    ],
)
def test_one_value_of_a_message_counts(facts: list[tuple[str, float]], value: str) -> None:
    """A correction whatever its confidence, else the surest, of equals the later; one event."""
    said = [fact("name", v, c, corrects=v == "a correction") for v, c in facts]

    assert Kept().take(*said) == [f"stored {value}"]


def test_the_active_value_said_surer_is_confirmed() -> None:
    """It was true from the beginning; the higher importance stays, and there is no history of the same value.

    As sure or less sure, in any case of letters, it changes nothing.
    """
    kept = Kept()
    kept.take(fact("name", "alex", 0.6, importance=0.9))
    before = kept.parts.changes()

    assert kept.take(fact("name", "alex", 0.6)) == kept.take(fact("name", "ALEX", 0.5)) == []
    assert kept.parts.changes() == before
    assert kept.take(fact("name", "Alex", 0.8, importance=0.3)) == ["confirmed Alex"]
    assert (kept.name().confidence, kept.name().importance, kept.times()) == (0.8, 0.9, [("Alex", 1, None)])
    assert kept.take(fact("name", "Al", 0.7)) == []


@pytest.mark.behaviour("user-08")
@pytest.mark.parametrize(
    ("confidence", "became"), [(0.79, []), (0.8, ["updated Bob"]), (1.0, ["updated Bob"]), (0.4, [])]
)
def test_another_value_must_be_as_sure_as_the_stored_one(confidence: float, became: list[str]) -> None:
    """The written rule of the source."""
    kept = Kept()
    kept.take(fact("name", "Alex", 0.8))

    assert kept.take(fact("name", "Bob", confidence)) == became


def test_a_correction_counts_as_certain() -> None:
    """It replaces what is certain, and only what is certain replaces it."""
    kept = Kept()
    kept.take(fact("name", "Alex", 1.0))

    assert kept.take(fact("name", "Alexander", 0.95, corrects=True)) == ["updated Alexander"]
    assert kept.take(fact("name", "Sandy", 0.99)) == []
    assert kept.take(fact("name", "Sandra", 1.0)) == ["updated Sandra"]
    assert kept.times() == [("Alex", 1, 2), ("Alexander", 2, 4), ("Sandra", 4, None)]


@pytest.mark.parametrize(
    ("retraction", "gone"),
    [
        (Retraction(category=IDENTITY, key="name"), {"name"}),
        (Retraction(category=IDENTITY, key="name", value="ALEX"), {"name"}),
        (Retraction(category=IDENTITY, key="name", value="Bob"), set()),
        (Retraction(category=IDENTITY), {"name", "city"}),
        (Retraction(key="city"), {"city", "favourite city"}),
        (Retraction(value="oslo"), {"city", "favourite city"}),
        (Retraction(category=PREFERENCE, value="Oslo"), {"favourite city"}),
        (Retraction(key="unknown"), set()),
        (Retraction(), {"name", "city", "favourite city"}),
    ],
)
def test_what_a_retraction_names_is_active_no_longer(retraction: Retraction, gone: set[str]) -> None:
    """By category, key, value, any of them, or everything."""
    kept = Kept()
    kept.take(fact("name", "Alex"), fact("city", "Oslo"), fact("city", "Oslo", category=PREFERENCE))
    changes = kept.changes(back=(retraction,))
    names = {(IDENTITY, "name"): "name", (IDENTITY, "city"): "city", (PREFERENCE, "city"): "favourite city"}

    assert {names[c.category, c.key] for c in changes} == gone
    assert {names[c, key] for c, key, f in kept.facts.all() if not f.active} == gone
    assert kept.facts.count_active() == 3 - len(gone)


@pytest.mark.parametrize(("again", "sure", "minute"), [("Al", 0.4, 5), ("Alex", 1.0, 9)])
def test_a_value_after_a_retraction_is_stored_however_sure(again: str, sure: float, minute: int) -> None:
    """Also the retracted one (graphiti#1865): its confidence is past, its times stay; in between nothing is valid."""
    kept = Kept()
    kept.take(fact("name", "Alex", 1.0))
    kept.take(back=(NAME,))

    assert kept.take(fact("name", again, sure), minute=minute) == [f"stored {again}"]
    assert kept.times() == [("Alex", 1, 2), (again, minute, None)]


@pytest.mark.parametrize(
    ("said", "became", "times"),
    [
        ("Al", ["retracted Alex", "stored Al"], [("Alex", 1, 2), ("Al", 2, None)]),
        ("alex", [], [("Alex", 1, None)]),
    ],
)
def test_a_message_takes_back_before_it_says(
    said: str, became: list[str], times: list[tuple[str, int, int | None]]
) -> None:
    """As in "Forget my name, call me Al"; but not what it says itself, as models spell out "I moved to Oslo"."""
    kept = Kept()
    kept.take(fact("name", "Alex", 1.0))

    assert kept.take(fact("name", said, 0.6), back=(NAME,)) == became
    assert kept.times() == times


@pytest.mark.behaviour("user-08")
def test_history_is_kept_up_to_the_policys_number() -> None:
    """The oldest go from the state; the archive has them."""
    kept = Kept(history=3)
    for n in range(6):
        kept.take(fact("name", f"Alex {n}"))

    assert kept.times() == [(f"Alex {n}", n + 1, n + 2) for n in (2, 3, 4)] + [("Alex 5", 6, None)]
    assert [past.value for past in kept.name().past()] == ["Alex 2", "Alex 3", "Alex 4"]


def test_beyond_the_bound_past_facts_go_first_then_the_least_important() -> None:
    """The oldest retracted one goes without a word, as it was told; who is active still is told to be evicted."""
    kept = Kept(most=3)
    kept.take(fact("a", "1", importance=0.9), fact("b", "2", importance=0.5), fact("c", "3", importance=0.7))
    kept.take(back=(Retraction(key="a"),))

    assert kept.take(fact("d", "4", importance=0.6)) == ["stored 4"]
    assert kept.take(fact("e", "5", importance=0.8)) == ["stored 5", "evicted 2"]
    assert kept.take(fact("f", "6", importance=0.3)) == ["stored 6", "evicted 6"]
    assert [key for _, key, _ in kept.facts.all()] == ["c", "d", "e"]


MINUTE = timedelta(minutes=1)


@pytest.mark.behaviour("user-14")
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


@pytest.mark.behaviour("user-11")
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


@pytest.mark.behaviour("user-11")
def test_slower_extractors_are_asked_only_where_the_policy_says_so() -> None:
    """Each message of the user that has any words, cut; not by default."""
    quiet, asking = User(), User(facts={"ask": True, "asked_chars": 100})
    for user in (quiet, asking):
        for content in ("x" * 101, " ", "Hello"):
            user.say(content)

    assert quiet.asked == []
    assert [(r.turn, r.content) for r in asking.asked] == [(0, "x" * 100), (2, "Hello")]
