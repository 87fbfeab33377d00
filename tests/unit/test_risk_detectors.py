"""Patterns across turns, on plain made-up vectors: one axis per matter."""

import math
from itertools import count

import numpy as np
import pytest

from models.policy import DetectorPolicy
from models.risk.signals import NO_PATTERN, PatternSignals, measure_patterns, observe_turn
from models.state.parts import Parts
from models.state.vectors import TurnMark, VectorRing, quantise
from models.text.features import Features

POLICY = DetectorPolicy()
QUESTION = Features(question=True, wh_question=True)
STATEMENT = Features()


class Talk:
    """User turns one after the other; `matter` is an axis, `near` the cosine to it."""

    def __init__(self) -> None:
        self.ring = VectorRing(Parts({}), 32)
        self.turns = count(0, 2)
        self.aside = count(20)

    def say(self, matter: int, *, near: float = 1.0, risky: bool = False, features: Features = QUESTION) -> int:
        """One turn; gives its marks."""
        vector = np.zeros(64, dtype=np.float32)
        vector[matter] = near
        vector[next(self.aside) % 44 + 20] = math.sqrt(1 - near * near)
        quantised = quantise(vector)
        assert quantised is not None
        turn = next(self.turns)
        observe_turn(self.ring, turn, quantised, features, risky=risky, policy=POLICY)
        return self.ring.marks[self.ring.turns.index(turn)]

    @property
    def signals(self) -> PatternSignals:
        """The signals now."""
        return measure_patterns(self.ring, POLICY)


@pytest.mark.behaviour("risk-19")
def test_rephrasing_a_risky_question() -> None:
    """Asked again in other words, each time counts; four times is full. Another question about the matter is none."""
    talk = Talk()
    talk.say(0, risky=True)
    other = talk.say(0, near=0.6, features=STATEMENT) & TurnMark.REPHRASED
    marks = [talk.say(0, near=0.9) & TurnMark.REPHRASED for _ in range(4)]

    assert (0, [TurnMark.REPHRASED] * 4, 1.0) == (other, marks, talk.signals.repeated_probing)


def test_rephrasing_after_a_refusal() -> None:
    """A harmless-looking question that was refused and comes back is probing."""
    talk = Talk()
    talk.say(0)
    talk.ring.mark(0, TurnMark.REFUSED)
    talk.say(0, near=0.9)

    assert pytest.approx(0.25) == talk.signals.repeated_probing


def test_repeating_a_harmless_question_counts_lightly() -> None:
    """Six repetitions of an ordinary question stay below two rephrasings of a risky one."""
    talk = Talk()
    for _ in range(7):
        talk.say(0, near=0.95)

    assert pytest.approx(0.3) == talk.signals.repeated_probing


def test_harmless_repetition_of_statements_is_nothing() -> None:
    """Thanks said again and again is no question."""
    talk = Talk()
    for _ in range(7):
        talk.say(0, features=STATEMENT)

    assert NO_PATTERN == talk.signals


@pytest.mark.behaviour("risk-19")
def test_returning_after_a_detour() -> None:
    """Risky matter, three other turns, back again."""
    talk = Talk()
    talk.say(0, risky=True)
    for matter in (1, 2, 3):
        talk.say(matter)

    assert TurnMark.RETURNED == talk.say(0, near=0.5, features=STATEMENT)
    assert pytest.approx(1 / 3) == talk.signals.topic_cycling


@pytest.mark.parametrize(
    ("risky", "detour", "times", "cycling"),
    [(True, [1, 2], 1, 0.0), (False, [1, 2, 3, 4], 1, 0.0), (True, [1, 0, 2], 1, 0.0), (True, [1, 2, 3], 3, 1.0)],
    ids=["too short", "nothing risky", "never really left", "again and again"],
)
def test_what_counts_as_a_return(risky: bool, detour: list[int], times: int, cycling: float) -> None:
    """Each, though it looks harmless; a short aside, a harmless matter, or one that was never left is no cycling."""
    talk = Talk()
    talk.say(0, risky=risky)
    for _ in range(times):
        for matter in detour:
            talk.say(matter, near=0.7 if matter == 0 else 1.0, features=STATEMENT)
        talk.say(0, near=0.7, features=STATEMENT)

    assert cycling == talk.signals.topic_cycling


@pytest.mark.behaviour("risk-18")
def test_gathering_information() -> None:
    """How, what and where around a risky matter grow from the third on."""
    talk = Talk()
    talk.say(0, risky=True)
    levels = []
    for _ in range(8):
        talk.say(0, near=0.55)
        levels.append(talk.signals.information_gathering)

    assert pytest.approx([0.0, 0.0, 3 / 8, 4 / 8, 5 / 8, 6 / 8, 7 / 8, 1.0]) == levels


def test_questions_elsewhere_gather_nothing() -> None:
    """Questions about other matters, and statements on the risky one, are no chain."""
    talk = Talk()
    talk.say(0, risky=True)
    for matter in range(1, 9):
        talk.say(matter)
        talk.say(0, near=0.55, features=STATEMENT)

    assert 0.0 == talk.signals.information_gathering
