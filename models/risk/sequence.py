"""Sequence signals of escalation, turn by turn: one small online signal each, together `SequenceSignals`.

A signal sees each observed user turn once, in the order of arrival (duplicates and late turns are kept out before), and
keeps a few numbers, so a turn costs the same however long the session is. Its name in `SequenceSignals` is the name
that weights, contributions and alerts use. All of them go through the same named checks in
`tests/unit/test_sequence_rules.py` and `tests/property/test_sequence_signals_property.py`, just by standing here:
adding one is a class, and a field at the end of `SequenceSignals`.
"""

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Protocol

from msgspec import Struct, field

from models.state.vectors import TurnMark
from models.text.features import Features


class Observation(Struct, frozen=True, gc=False):
    """One weighed user turn, in the order of arrival.

    Attributes:
        turn: Its number.
        risk: Its own risk by the scorer, 0-1.
        features: What it does (asks, orders, supposes, probes, rewrites rules).
        marks: What the vectors say of it: bits of `models.state.vectors.TurnMark`.
        nearness: Cosine to the user turn before it, None for the first or without vectors.
        refused: Whether the assistant refused since the user turn before it.
        reading: What a second reader thinks of it (`models.risk.reading`), None without one.
    """

    turn: int
    risk: float
    features: Features
    marks: int = 0
    nearness: float | None = None
    refused: bool = False
    reading: float | None = None

    def is_near(self, mark: int) -> bool:
        """Whether it is `NEAR` the user turn before it, or marked so by its vector."""
        return bool(self.marks & mark or (self.nearness is not None and self.nearness >= NEAR))


LOG_ODDS_BOUND = 6.0
"""A risk beyond 0.9975 or below 0.0025 says no more: a scorer that small is not calibrated further out."""
_LOWEST = 1.0 / (1.0 + math.exp(LOG_ODDS_BOUND))
_HIGHEST = 1.0 - _LOWEST


def log_odds(risk: float) -> float:
    """Natural logarithm of the odds of a risk, within ±`LOG_ODDS_BOUND`.

    >>> log_odds(0.5), round(log_odds(0.9), 3), round(log_odds(0.0), 3)
    (0.0, 2.197, -6.0)
    """
    if risk <= _LOWEST:
        return -LOG_ODDS_BOUND
    return math.log(risk / (1.0 - risk)) if risk < _HIGHEST else LOG_ODDS_BOUND


def sigmoid(log_odds: float) -> float:
    """Probability of log-odds.

    >>> sigmoid(0.0), sigmoid(-800.0)
    (0.5, 0.0)
    """
    odds = math.exp(-abs(log_odds))
    return 1.0 / (1.0 + odds) if log_odds >= 0 else odds / (1.0 + odds)


def fade(half_life_turns: float) -> float:
    """Factor per observation by which something halves in so many observations.

    >>> round(fade(3) ** 3, 12)
    0.5
    """
    return math.pow(0.5, 1.0 / half_life_turns)


def clip(value: float) -> float:
    """Within 0-1."""
    return min(1.0, max(0.0, value))


HALF_LIFE_TURNS = 16
"""A conversation that matters is seldom longer; in one of thousands of turns old occurrences must not add up."""
_FADE = fade(HALF_LIFE_TURNS)


class Occurrences(Struct, array_like=True, gc=False):
    """How often something happened, the older the less.

    Attributes:
        count: Sum of the occurrences' weights, each halved for every `HALF_LIFE_TURNS` observations since.
        times: Occurrences, unfaded.
        turn: Of the last one.
    """

    count: float = 0.0
    times: int = 0
    turn: int = 0

    @property
    def value(self) -> float:
        """0-1: one full occurrence is 0.5, two are 0.67, three 0.75."""
        return self.count / (self.count + 1.0)

    def fade_and_add(self, weight: float, turn: int) -> None:
        """One observation further, with an occurrence of this weight (0: none)."""
        self.count *= _FADE
        if weight > 0.0:
            self.count += weight
            self.times += 1
            self.turn = turn

    @property
    def often(self) -> str:
        """`3 times`."""
        return "1 time" if self.times == 1 else f"{self.times} times"


# --- the level: a running mean of the turns' risk, shrunk towards an ordinary turn

PRIOR_TURNS = 2.0
"""Ordinary turns supposed beforehand, so that one turn makes no level: of all that was tried it gained most recall."""
PRIOR_LOG_ODDS = -1.84
"""Log-odds of an ordinary turn's risk (0.14)."""
LEVEL_HALF_LIFE_TURNS = 3
"""The level is that of the present stretch of the conversation: a long calm past hides nothing."""
_LEVEL_FADE = fade(LEVEL_HALF_LIFE_TURNS)


class Level(Struct, array_like=True, gc=False):
    """Weighted mean of the log-odds of risk, `PRIOR_TURNS` ordinary turns included, as a risk.

    Attributes:
        mean: Of the turns' log-odds, without the prior.
        weight: Sum of the weights in it, the last turn's being 1; 0 before the first.
        turn: The last one.
    """

    why = "the turns up to {0.turn} are of risk {0.value:.2f} on average"
    mean: float = 0.0
    weight: float = 0.0
    turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.weight = self.weight * _LEVEL_FADE + 1.0
        self.mean += (log_odds(seen.risk) - self.mean) / self.weight
        self.turn = seen.turn

    @property
    def value(self) -> float:
        """The mean as a risk, 0-1; 0 before the first turn."""
        if not self.weight:
            return 0.0
        return sigmoid((self.mean * self.weight + PRIOR_TURNS * PRIOR_LOG_ODDS) / (self.weight + PRIOR_TURNS))


# --- questions that gather on one matter, by vectors of the turns; 0 without them

NEAR = 0.4
"""Cosine from which two user turns are about one matter: follow-up questions reach it, other matters seldom do."""

ORDINARY_RISK = 0.1
"""Risk up to which a question counts nothing: to ask on about bread, trains or a cat is what people do. Counting every
question a little told the public dialogues apart as well, and alerted on each of six such rows of questions."""
QUESTION_GAIN = 2.4
"""What a question counts for each risk of 1 beyond that …"""
OPENING = 0.25
"""… and which part of it the first of a row does: a single question is no row yet."""
QUESTION_FADE, OTHER_FADE = 0.9, 0.7
"""What a question, and another kind of turn, leaves of the row; a word of thanks does not end it, and it is bounded."""
FULL_ROW = 1.0
"""Sum of a row at which the signal is 0.5: three questions of a risk of 0.3."""
_NOTHING_LEFT = 0.05


class InformationGathering(Struct, array_like=True, gc=False):
    """How, what, where, which, who or when asked in a row about one matter, the riskier the more.

    A question counts where it is `NEAR` the turn before it or near the risky matter (`TurnMark.GATHERED`).

    Attributes:
        row: Sum of the questions' weights, fading with every turn.
        questions: In the row.
        turn: The last of them.
    """

    why = "asks for particulars of one matter, {0.asked} up to turn {0.turn}"
    row: float = 0.0
    questions: int = 0
    turn: int = 0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        if seen.features.wh_question and seen.is_near(TurnMark.GATHERED):
            weight = QUESTION_GAIN * max(0.0, seen.risk - ORDINARY_RISK)
            self.row = self.row * QUESTION_FADE + (weight if self.questions else weight * OPENING)
            self.questions += 1
            self.turn = seen.turn
        else:
            self.row *= OTHER_FADE
            if self.row < _NOTHING_LEFT:
                self.row, self.questions = 0.0, 0

    @property
    def asked(self) -> str:
        """How many questions, in words."""
        return "1 question" if self.questions == 1 else f"{self.questions} questions"

    @property
    def value(self) -> float:
        """0-1."""
        return self.row / (self.row + FULL_ROW)


# --- instructions about the assistant's rules, refusals, and what the user asks after them


class Instructions(Occurrences, array_like=True, gc=False):
    """How often the user tried to rewrite the assistant's rules or probed its limits."""

    why = "instructs the assistant about its rules or probes its limits {0.often}, last at turn {0.turn}"

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        features = seen.features
        self.fade_and_add(1.0 if features.meta_instruction or features.probing else 0.0, seen.turn)


LEAST_RISK, FULL_RISK = 0.08, 0.2
"""A refusal counts by the risk of what was refused, from nothing to all: an assistant that refuses bread recipes says
something of itself."""


class Refusals(Occurrences, array_like=True, gc=False):
    """How often the assistant refused something risky, each known with the user turn after it.

    Attributes:
        before: Risk of the turn before.
    """

    why = "the assistant refused {0.often}, last before turn {0.turn}"
    before: float = 0.0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.fade_and_add(self._weight_of(seen) if seen.refused else 0.0, seen.turn)
        self.before = seen.risk

    def _weight_of(self, seen: Observation) -> float:  # noqa: ARG002 - others look at it
        """What the refusal of the turn before this one counts, 0-1."""
        return clip((self.before - LEAST_RISK) / (FULL_RISK - LEAST_RISK))


class RefusedRephrased(Refusals, array_like=True, gc=False):
    """How often a refusal was not taken: the next turn asks the same, or something no less risky.

    A turn near the refused one, or a rephrasing of it, counts as the refusal does. One that is not, but of no
    less risk than the turn before it, counts its risk of that; without vectors that is all there is to see.
    """

    why = "asked on after a refusal {0.often}, last at turn {0.turn}"

    def _weight_of(self, seen: Observation) -> float:
        refusal = super()._weight_of(seen)
        if seen.is_near(TurnMark.REPHRASED):
            return refusal
        return seen.risk * refusal if seen.risk >= self.before else 0.0


# --- all together


class Signal(Protocol):
    """One way to see that a conversation escalates; itself the state it needs for that."""

    why: str
    """Why the value is what it is: one clause with numbers and turn numbers, never text; `{0}` is the signal."""

    def observe(self, seen: Observation) -> None:
        """Take one user turn in, in place, in O(1)."""

    @property
    def value(self) -> float:
        """0-1; 0 before anything was observed."""


class SequenceSignals(Struct, array_like=True, gc=False):
    """The signals as state: a short list in msgpack, of bounded size. Fields are only ever added at the end."""

    level: Level = field(default_factory=Level)
    information_gathering: InformationGathering = field(default_factory=InformationGathering)
    refused_rephrased: RefusedRephrased = field(default_factory=RefusedRephrased)
    refusals: Refusals = field(default_factory=Refusals)
    instructions: Instructions = field(default_factory=Instructions)

    def observe(self, seen: Observation) -> None:
        """Show a user turn to every signal, in place."""
        for signal in _all_of(self):
            signal.observe(seen)

    def values(self) -> dict[str, float]:
        """Every signal's value by its name, each 0-1, in the order of the fields."""
        return dict(zip(SIGNAL_NAMES, _values_of(self), strict=True))

    def phrases(self) -> dict[str, str]:
        """Why each value is what it is, by name; of a signal at 0 it says nothing of use."""
        return {name: signal.why.format(signal) for name, signal in zip(SIGNAL_NAMES, _all_of(self), strict=True)}


SIGNAL_NAMES: tuple[str, ...] = SequenceSignals.__struct_fields__
"""Of all signals, in their order."""
OF_COURSE = frozenset({"information_gathering", "refused_rephrased", "refusals"})
"""Signals of how a talk goes, whatever it is about: `escalation.alone_bound` bounds them where nothing is risky."""
_all_of: Callable[[SequenceSignals], tuple[Signal, ...]] = attrgetter(*SIGNAL_NAMES)
_values_of: Callable[[SequenceSignals], tuple[float, ...]] = attrgetter(*(f"{name}.value" for name in SIGNAL_NAMES))
