"""Sequence signals of escalation: small online signals, updated turn by turn, together `SequenceSignals`.

A signal sees each observed user turn once, in order of arrival (duplicates and late turns are removed before), and
stores a few numbers, so the cost of a turn does not depend on the length of the session. Its name in `SequenceSignals`
is the name that weights, contributions and alerts use. `tests/unit/test_sequence_rules.py` and
`tests/property/test_sequence_signals_property.py` check every signal of `SequenceSignals`: to add one, write a class
and add a field at the end.
"""

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Protocol

from msgspec import Struct, field

from models.state.vectors import TurnMark
from models.text.features import Features


class Observation(Struct, frozen=True, gc=False):
    """One scored user turn, in order of arrival.

    Attributes:
        turn: Turn number.
        risk: Its own risk by the scorer, 0-1.
        features: Kinds of speech in it (questions, orders, suppositions, probes, rewriting of rules).
        marks: Marks from the vectors: bits of `models.state.vectors.TurnMark`.
        nearness: Cosine to the previous user turn, None for the first or without vectors.
        refused: Whether the assistant refused since the previous user turn.
        reading: Result of the second reader (`models.risk.reading`), None without one.
    """

    turn: int
    risk: float
    features: Features
    marks: int = 0
    nearness: float | None = None
    refused: bool = False
    reading: float | None = None

    def is_near(self, mark: int) -> bool:
        """Whether it is `NEAR` the previous user turn, or has this mark."""
        return bool(self.marks & mark or (self.nearness is not None and self.nearness >= NEAR))


LOG_ODDS_BOUND = 6.0
"""Risks are bounded to 0.0025-0.9975: a scorer this small is not calibrated beyond."""
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
    """Factor per observation for a half-life in observations.

    >>> round(fade(3) ** 3, 12)
    0.5
    """
    return math.pow(0.5, 1.0 / half_life_turns)


def clip(value: float) -> float:
    """Limit a value to 0-1."""
    return min(1.0, max(0.0, value))


HALF_LIFE_TURNS = 16
"""Relevant conversations are rarely longer; over thousands of turns old occurrences must not add up."""
_FADE = fade(HALF_LIFE_TURNS)


class Occurrences(Struct, array_like=True, gc=False):
    """A decaying count of occurrences.

    Attributes:
        count: Sum of the occurrences' weights, each halved every `HALF_LIFE_TURNS` observations.
        times: Number of occurrences, without decay.
        turn: Turn of the last one.
    """

    count: float = 0.0
    times: int = 0
    turn: int = 0

    @property
    def value(self) -> float:
        """0-1: one full occurrence is 0.5, two are 0.67, three 0.75."""
        return self.count / (self.count + 1.0)

    def fade_and_add(self, weight: float, turn: int) -> None:
        """Advance by one observation, with an occurrence of this weight (0: none)."""
        self.count *= _FADE
        if weight > 0.0:
            self.count += weight
            self.times += 1
            self.turn = turn

    @property
    def often(self) -> str:
        """Number of occurrences in words, for instance `3 times`."""
        return "1 time" if self.times == 1 else f"{self.times} times"


# --- the level: a running mean of the turns' risk, shrunk towards an ordinary turn

PRIOR_TURNS = 2.0
"""Ordinary turns in the prior, so that one turn alone sets no level: of the variants tried it gained most recall."""
PRIOR_LOG_ODDS = -1.84
"""Log-odds of an ordinary turn's risk (0.14)."""
LEVEL_HALF_LIFE_TURNS = 3
"""The level follows the latest turns of the conversation: a long calm past does not hide a rise."""
_LEVEL_FADE = fade(LEVEL_HALF_LIFE_TURNS)


class Level(Struct, array_like=True, gc=False):
    """Weighted mean of the log-odds of risk, `PRIOR_TURNS` ordinary turns included, as a risk.

    Attributes:
        mean: Mean of the turns' log-odds, without the prior.
        weight: Sum of the turns' weights, of which the last is 1; 0 before the first.
        turn: Last turn.
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
"""Cosine from which two user turns have one subject: follow-up questions reach it, other subjects rarely do."""

ORDINARY_RISK = 0.1
"""Risk up to which a question has weight 0: questions in a row about bread, trains or a cat are ordinary. A small
weight for every question separated the public dialogues as well, and alerted on each of six such ordinary rows."""
QUESTION_GAIN = 2.4
"""Weight of a question per 1 of risk above `ORDINARY_RISK`."""
OPENING = 0.25
"""Factor for the first question of a row: a single question is not a row."""
QUESTION_FADE, OTHER_FADE = 0.9, 0.7
"""Decay of the row per question, and per other turn: it is bounded, and one turn of thanks does not end it."""
FULL_ROW = 1.0
"""Sum of a row at which the signal is 0.5: three questions of a risk of 0.3."""
_NOTHING_LEFT = 0.05


class InformationGathering(Struct, array_like=True, gc=False):
    """Questions in a row (how, what, where, which, who, when) about one subject, weighted by risk.

    A question counts if it is `NEAR` the previous turn or near the risky subject (`TurnMark.GATHERED`).

    Attributes:
        row: Sum of the questions' weights, which decays with every turn.
        questions: Number of questions in the row.
        turn: Turn of the last question.
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
        """Number of questions, in words."""
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
"""Risk of the refused turn at which a refusal has weight 0, and weight 1: a refused bread recipe is no sign of risk by
the user."""


class Refusals(Occurrences, array_like=True, gc=False):
    """How often the assistant refused something risky; a refusal is observed with the next user turn.

    Attributes:
        before: Risk of the previous turn.
    """

    why = "the assistant refused {0.often}, last before turn {0.turn}"
    before: float = 0.0

    def observe(self, seen: Observation) -> None:
        """Take one turn in."""
        self.fade_and_add(self._weight_of(seen) if seen.refused else 0.0, seen.turn)
        self.before = seen.risk

    def _weight_of(self, seen: Observation) -> float:  # noqa: ARG002 - others look at it
        """Weight of the refusal of the previous turn, 0-1."""
        return clip((self.before - LEAST_RISK) / (FULL_RISK - LEAST_RISK))


class RefusedRephrased(Refusals, array_like=True, gc=False):
    """How often the user did not accept a refusal: the next turn asks the same, or something at least as risky.

    A turn near the refused one, or a rephrasing of it, has the weight of the refusal. Another turn of at least the
    refused turn's risk has that weight times its own risk; without vectors only this case can be observed.
    """

    why = "asked on after a refusal {0.often}, last at turn {0.turn}"

    def _weight_of(self, seen: Observation) -> float:
        refusal = super()._weight_of(seen)
        if seen.is_near(TurnMark.REPHRASED):
            return refusal
        return seen.risk * refusal if seen.risk >= self.before else 0.0


# --- all together


class Signal(Protocol):
    """One signal of escalation; the object is its own state."""

    why: str
    """Explanation of the value: one clause with numbers and turn numbers, never text; `{0}` is the signal."""

    def observe(self, seen: Observation) -> None:
        """Update with one user turn, in place, in O(1)."""

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
        """Explanation of each value, by name; meaningless for a signal at 0."""
        return {name: signal.why.format(signal) for name, signal in zip(SIGNAL_NAMES, _all_of(self), strict=True)}


SIGNAL_NAMES: tuple[str, ...] = SequenceSignals.__struct_fields__
"""Names of all signals, in their order."""
OF_COURSE = frozenset({"information_gathering", "refused_rephrased", "refusals"})
"""Signals of the course of a conversation, whatever its subject: `escalation.alone_bound` bounds them without risk."""
_all_of: Callable[[SequenceSignals], tuple[Signal, ...]] = attrgetter(*SIGNAL_NAMES)
_values_of: Callable[[SequenceSignals], tuple[float, ...]] = attrgetter(*(f"{name}.value" for name in SIGNAL_NAMES))
