"""What holds for the memory of every user, whatever is said, answered and repeated, and wherever the log is cut."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import events
from models.policy import FactPolicy, Policy, UserPolicy
from models.user.state import UserHead
from models.wire.envelope import tag_of
from tests.support.cut_log import assert_cuts_change_nothing, come_of
from tests.support.limits import too_large
from tests.support.user_driver import (
    NOON,
    User,
    added,
    by_hand,
    corrected,
    fact,
    flat,
    session_erased,
    summarised,
    user_erased,
)
from tests.support.user_partition import commands

SMALL = UserPolicy(
    high_turns=4,
    keep_turns=2,
    waiting_episodes=2,
    turn_chars=100,
    asked_chars=100,
    summary_chars=60,
    facts=FactPolicy(most=4, history=2, ask=True, asked_chars=100),
)
"""Small numbers, so that everything happens often."""
POLICY = Policy(users=SMALL)
TEXTS = (
    "My name is Alex",
    "Call me Al",
    "My full name is Alexander. I live in Oslo.",
    "I moved to Lima and I'm vegan",
    "I moved",
    "Forget everything you know about me",
    "I prefer Python. Always answer in French.",
    "",
    "Ünïcödé \U0001f984 " * 30,
    "What sails does a boat need?",
)
USERS = (("a", "u"), ("b", "u"), ("a", "v/1"))
KEYS = ("name", "location", "age", "k1", "k2", "k3")
CATEGORIES = tuple(events.FactCategory)

SAY = st.tuples(st.just("say"), st.integers(0, len(TEXTS) - 1), st.integers(0, 5), st.integers(-90, 90))
OTHER = st.tuples(
    st.sampled_from(["answer", "answer", "learn", "forget", "repeat", "edit", "edit", "delete", "correct"]),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(-90, 90),
)
Step = tuple[str, int, int, int]
ERASE = st.tuples(st.just("erase"), st.integers(0, 9), st.integers(0, 9), st.integers(-90, 90))
STEP = st.one_of(SAY, SAY, SAY, OTHER)
STEPS = st.one_of(st.lists(STEP, max_size=15), st.lists(STEP, min_size=30, max_size=70))


class Speaker:
    """Makes the commands of one user from steps; the clock wanders, also backwards."""

    def __init__(self, app: str = "a", user: str = "u") -> None:
        self.ids = {"app_id": app, "user_id": user}
        self.now = NOON
        self.turns: list[events.UserTurnAdded] = []
        self._offsets = Counter[int]()

    def makes(self, step: Step) -> list[events.UserEvent | events.UserErasure]:  # noqa: PLR0911 - one for each kind
        """What one step puts on the log."""
        kind, pick, other, minutes = step
        self.now = max(NOON, self.now + timedelta(minutes=minutes))
        match kind:
            case "say":
                return [self._turn(TEXTS[pick], other)]
            case "answer":
                first = 4 * (max(len(self.turns) // 4 - pick // 3, 0)) + 1
                return [summarised(first, first + 3 + other // 9, f"Summary {other}.", timestamp=self.now, **self.ids)]
            case "learn":
                return [self._found(facts=[self._fact(pick, other), self._fact(other, pick)])]
            case "forget":
                value = f"value {other % 2}" if pick % 4 == 3 else None
                category = CATEGORIES[other % 4] if pick % 2 else None
                retraction = events.Retraction(category=category, key=(*KEYS, None)[pick % 7], value=value)
                return [self._found(retractions=[retraction], facts=[self._fact(other, other)] if pick > 6 else [])]
            case "edit":
                value = f"value {pick % 3}" if other % 4 else None
                changed = {"value": value, "pinned": (None, True, False)[pick % 3], "importance": other / 9}
                return [
                    by_hand(events.FactEdited, CATEGORIES[pick % 4], KEYS[other % 6], self.now, **changed, **self.ids)
                ]
            case "delete":
                return [by_hand(events.FactDeleted, CATEGORIES[pick % 4], KEYS[other % 6], self.now, **self.ids)]
            case "correct":
                turns = self.turns[-1 - pick :][:1]
                return [corrected(turn, TEXTS[other], self.now) for turn in turns]
            case "erase" if other == 9:
                return [user_erased(timestamp=self.now, **self.ids)]
            case "erase":
                minute = round((self.now - NOON) / timedelta(minutes=1))
                return [session_erased(f"s{pick}", minute - 60 * other, minute, timestamp=self.now, **self.ids)]
        # A crash of the sessions role: one partition's turns from somewhere to the end come again.
        again = [turn for turn in self.turns if turn.source.partition == pick % 2]
        return list(again[-other - 1 :])

    def _turn(self, content: str, where: int) -> events.UserTurnAdded:
        session, partition = f"s{where}", where % 2
        source = events.Position("turns", partition, self._offsets[partition])
        self._offsets[partition] += 1
        role = events.Role.ASSISTANT if where == 5 else events.Role.USER
        self.turns.append(added(content, session, len(self.turns), source, self.now, role=role, **self.ids))
        return self.turns[-1]

    def _fact(self, pick: int, other: int) -> events.ExtractedFact:
        confidence, importance = (0.3, 0.4, 0.6, 0.9, 1.0)[(pick + other) % 5], (0.1, 0.2, 0.5, 0.9)[other % 4]
        more = {"category": CATEGORIES[pick % 4], "importance": importance, "corrects": other == 7}
        return fact(KEYS[other % 6], f"value {pick % 2}", confidence, **more)

    def _found(self, **found: object) -> events.FactsExtracted:
        return events.FactsExtracted(timestamp=self.now, extracted_by="llm", **self.ids, **found)  # type: ignore[arg-type]


def log_of(steps: Sequence[Step], *, repeats: bool = True) -> list[events.UserEvent | events.UserErasure]:
    """The commands of three users, one step of each in turn."""
    speakers = [Speaker(app, user) for app, user in USERS]
    return [
        event
        for number, step in enumerate(steps)
        for event in speakers[number % 3].makes(step)
        if repeats or step[0] != "repeat"
    ]


@pytest.mark.behaviour("user-02")
@given(
    st.one_of(STEPS, st.lists(st.one_of(STEP, STEP, STEP, ERASE), min_size=9, max_size=70)),
    st.lists(st.integers(1, 9), min_size=1),
    st.lists(st.integers(0, 9), min_size=1),
    st.booleans(),
)
def test_batches_and_crashes_change_nothing(
    steps: list[Step], cuts: list[int], rewinds: list[int], small_chunks: bool
) -> None:
    """One call over the whole log equals many, each by a fresh fold, some done again as their state was lost.

    With erasures among them, too.
    """
    assert_cuts_change_nothing(commands(*log_of(steps)), POLICY, cuts, rewinds, small_chunks=small_chunks)


@given(STEPS)
def test_turns_that_come_again_change_nothing(steps: list[Step]) -> None:
    """After a crash of the sessions role: the same turns at later offsets leave the same memory and no events."""
    once, again = (come_of(commands(*log_of(steps, repeats=repeats)), POLICY) for repeats in (False, True))

    before, after = ({key: placed_nowhere(parts) for key, parts in found[0].items()} for found in (once, again))

    assert before == after
    assert once[1:] == again[1:]


def placed_nowhere(parts: dict[str, bytes]) -> dict[str, bytes | UserHead]:
    """A user's state without the offsets of commands in its head: they are later ones where turns came again."""
    head = msgspec.msgpack.decode(parts["head"], type=UserHead) if "head" in parts else UserHead()
    return {**parts, "head": msgspec.structs.replace(head, since=-1, erased_offset=-1)}


ENDING = {"retracted", "evicted", "deleted", "withdrawn"}


class Watched(User):
    """A user whose tiers and facts are held against what was told."""

    def __init__(self) -> None:
        super().__init__(POLICY)
        self.told: dict[tuple[str, str], events.FactChanged] = {}

    def check(self, turns: Sequence[events.UserTurnAdded]) -> None:
        """Every turn is somewhere, none is twice; facts told are the facts kept."""
        head, said = self.state.head, [(turn.session_id, turn.turn) for turn in turns]
        ranges = sorted((e.first_turn, e.last_turn) for e in self.episodes)
        assert head.turn_count == len(said)
        assert [e.episode for e in self.episodes] == list(range(1, len(ranges) + 1))
        in_episodes = [n for first, last in ranges for n in range(first, last + 1)]
        assert sorted(in_episodes) == sorted(set(in_episodes))
        for episode in self.episodes:
            assert flat(episode.turns) == said[episode.first_turn - 1 : episode.last_turn]
        open_turns = [n for n in range(1, len(said) + 1) if n not in set(in_episodes)]
        kept = {n: self.state.turns(n, n)[0] for n in [*open_turns, *range(max(1, len(said) - 1), len(said) + 1)]}
        assert {n: (turn.session_id, turn.turn) for n, turn in kept.items()} == {n: said[n - 1] for n in kept}
        waiting = [n for first, last in head.waiting for n in range(first, last + 1)]
        at_hand = flat(self.state.at_hand())
        assert at_hand == said[len(said) - len(at_hand) :]
        (backlog,) = self.state.figures(head, self.state.parts.count)
        assert backlog == head.requested - min([first - 1 for first, _ in head.waiting] or [head.requested])
        assert set(open_turns) <= {*waiting, *range(len(said) - len(at_hand) + 1, len(said) + 1)}
        assert min(len(said), SMALL.keep_turns) <= len(at_hand) < SMALL.high_turns
        assert len(head.waiting) <= SMALL.waiting_episodes

    def check_facts(self, outputs: Sequence[object]) -> None:
        """One active value per key, times that never overlap."""
        for change in (output for output in outputs if isinstance(output, events.FactChanged)):
            times = [(past.valid_from, past.valid_until) for past in change.history if not past.contradicted]
            times.append((change.valid_from, change.valid_until or datetime.max.replace(tzinfo=NOON.tzinfo)))
            edges = [edge for pair in times for edge in pair]
            assert edges == sorted(edges)
            assert change.active is (change.valid_until is None) is (change.cause not in ENDING)
            assert len(change.history) <= SMALL.facts.history
            self.told[change.category, change.key] = change
        kept = {(c.value, key): (f.value, f.valid_from) for c, key, f in self.state.facts.all() if f.active}
        assert kept == {place: (f.value, f.valid_from) for place, f in self.told.items() if f.active}
        assert len(list(self.state.facts.all())) <= SMALL.facts.most
        assert len(kept) == self.state.head.facts


@given(STEPS, st.data())
def test_no_turn_is_lost_or_doubled_and_facts_never_overlap(steps: list[Step], data: st.DataObject) -> None:
    """After every step, whether or not the state was stored in between."""
    speaker, user = Speaker(), Watched()
    for step in steps:
        for event in speaker.makes(step):
            user.check_facts(user.put(event))
        user.check(speaker.turns)
        if data.draw(st.booleans()):
            user.store()
            assert len([part for part in user.stored if part[0] == "t"]) <= SMALL.most_turns
    assert [output for output in user.outputs if too_large(output)] == []


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, "name", "age", "age"])), max_size=12), st.randoms())
def test_what_was_said_last_counts_whoever_understands_it_first(
    said: list[tuple[int, str | None]], random: Random
) -> None:
    """Statements and retractions of two keys, in any order of arrival: the same profile in the end."""
    messages: list[events.FactsExtracted] = []
    for n, (kind, key) in enumerate(said):
        at = NOON + timedelta(minutes=n)
        facts = [fact(key or "name", f"value {n}")] if kind else []
        retractions = [] if kind else [events.Retraction(key=key)]
        messages.append(
            events.FactsExtracted(app_id="a", user_id="u", timestamp=at, facts=facts, retractions=retractions)
        )
    in_order, shuffled = User(), User()
    for message in messages:
        in_order.put(message)
    random.shuffle(messages)
    for message in messages:
        shuffled.put(message)

    assert shuffled.profile == in_order.profile


_STEPS_OF_A_RUN = (
    *("say", "say", "say", "learn", "answer", "edit"),
    *("forget", "repeat", "learn", "correct", "delete", "learn"),
)


def test_the_steps_reach_everything() -> None:
    """These properties would hold of a silent user too: a fixed run shows that each kind of thing happens."""
    speaker, user, random = Speaker(), Watched(), Random(1)
    for n in range(1_200):
        kind = _STEPS_OF_A_RUN[n % 12]
        for event in speaker.makes(
            (kind, random.randrange(10), random.randrange(6 if kind == "say" else 10), random.randint(-20, 90))
        ):
            user.put(event)
    kinds = Counter(tag_of(type(output)) for output in user.outputs)

    assert {change.cause for change in user.changes} == {*get_args(events.FactCause)} - {"erased"}
    assert {e.summarised_by for e in user.episodes} == {"extractive", "llm"}
    assert set(kinds) == {
        "episode_requested",
        "facts_requested",
        "episode_compressed",
        "fact_changed",
        "user_memory_changed",
    }
