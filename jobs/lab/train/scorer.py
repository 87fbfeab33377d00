"""Training the scorer's file: turn weights, signals through the real fold, and their calibrated combination.

No randomness: the same data give the same bytes. Scores that calibrate are always of a model that has not seen the
family they are from.

A few families of dialogues each have a format of their own: a free regression over the signals learns the formats.
So the weights start from a prior that says what is plausible, may not be negative, and are moved by the data only as
far as `PRIOR_STRENGTH` lets them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property
from importlib.resources import files
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from scipy.special import expit, logit

from jobs.lab.train.harms import fit_harms
from jobs.lab.train.turns import (
    MessagePair,
    TrainingTurns,
    both_labels,
    evened,
    fit_turns,
    logistic,
    quantised,
    spread,
    turns_of,
)
from jobs.shared.dialogues import LabelledDialogue, folded, judging_policy, read_labelled
from models.events import Role
from models.policy import Policy
from models.policy.escalation import CombinationModel, EscalationPolicy
from models.risk.combination import UNITS
from models.risk.harm import HarmWeights
from models.risk.sequence import SIGNAL_NAMES, sigmoid
from models.risk.turn_model import ModelCard, ScorerFile, SourceCard, TurnModel, write_model
from streams.ports import Embedder

TURN_BASE_RATE = 0.155
"""Share of harmful turns that a turn's risk assumes. Lower than in the training data, higher than in any traffic: the
risk is for the signals, the probability that matters is the session's."""
TURN_SPREAD = 0.5
"""Standard deviation of a turn's log-odds over the halves of the pairs. Fixed, since what a fit gives depends on the
sources at hand (0.1 to 0.4 with one family left out or another), and a single turn tells little: signals count on
that."""
_DECIMALS = 4
_FOLDER = files("jobs.lab.train")


def own_dialogues() -> list[LabelledDialogue]:
    """The project's own, of which most only look risky."""
    return read_labelled(_FOLDER.joinpath("dialogues.jsonl"), LabelledDialogue, "dialogue", name="session_id")


def own_pairs() -> list[MessagePair]:
    """The project's contrasts."""
    return msgspec.json.Decoder(MessagePair).decode_lines(_FOLDER.joinpath("pairs.jsonl").read_bytes())


class Trainer:
    """Trains on dialogues and pairs, also without some of them, and remembers what trainings share."""

    def __init__(self, dialogues: Sequence[LabelledDialogue], pairs: Sequence[MessagePair], embedder: Embedder) -> None:
        self.dialogues = [dialogue for dialogue in dialogues if dialogue.said_by_user]
        self.embedder = embedder
        self.pairs = pairs
        self.turns: TrainingTurns = turns_of(self.dialogues, pairs, embedder)
        self._weights: dict[frozenset[str], Floats] = {}

    def weights(self, without: Collection[str]) -> Floats:
        """Of the features, learnt without these families."""
        key = frozenset(without).intersection(self._taught_by)
        if key not in self._weights:
            self._weights[key] = fit_turns(self.turns, self._families(key))
        return self._weights[key]

    def train(self, version: str, card: ModelCard, without: Collection[str] = ()) -> ScorerFile:
        """A scorer's file, learnt without these families; the card's sources and base rate are filled in."""
        kept = [n for n, dialogue in enumerate(self.dialogues) if dialogue.family not in without]
        long = np.array([n for n in kept if len(self.dialogues[n].said_by_user) > 1], np.int64)
        talks = spread(long, np.array([self.dialogues[n].source for n in long]), _SESSIONS_OF_A_SOURCE)
        slope, offset = self._turn_calibration(without)
        combination, base_rate = fit_combination(
            LabelledSessions(
                [self._signals(n, without, slope, offset) for n in talks],
                np.array([self.dialogues[n].escalating for n in talks]),
                [self.dialogues[n].source for n in talks],
            )
        )
        sources = _sources([self.dialogues[n] for n in kept])
        return ScorerFile(
            version=version,
            turn=quantised(self.weights(without), slope, offset),
            base=combination.base,
            weights=combination.weights,
            harms=self.harms,
            card=structs.replace(card, sources=sources, base_rate=base_rate),
        )

    @cached_property
    def harms(self) -> HarmWeights:
        """What tells kinds of harm; learnt from the pairs alone."""
        return fit_harms(self.pairs, self.turns.features[self.turns.dialogue < 0][::2])

    @cached_property
    def _taught_by(self) -> list[str]:
        """Families that the turn weights are learnt from."""
        return both_labels(self.turns, self._families(()))

    def _families(self, without: Collection[str]) -> list[str]:
        """Of the dialogues, as `fit_turns` wants them: the project's own dialogues do not teach turn weights."""
        return ["" if each.own or each.family in without else each.family for each in self.dialogues]

    def model_without(self, family: str) -> TurnModel:
        """A model that knows nothing of this family; for measuring, its card says nothing."""
        card = ModelCard(trained_on="", seed=0, sources=[], base_rate=0.0)
        file = self.train(f"without-{family}"[:64], card, [family])
        return TurnModel(file, write_model(file))

    def _turn_calibration(self, without: Collection[str]) -> tuple[float, float]:
        """Slope and offset of a turn's log-odds over its score."""
        halves = np.asarray(self.turns.features[self.turns.dialogue < 0] @ self.weights(without))
        slope = TURN_SPREAD / float(halves.std())
        return slope, float(logit(TURN_BASE_RATE)) - slope * float(np.median(halves))

    def _signals(self, index: int, without: Collection[str], slope: float, offset: float) -> Floats:
        """Each signal after each user turn of a dialogue, `(n_user_turns, n_signals)`, each 0-1.

        From risks by weights that have not seen its family either.
        """
        here, dialogue = self.turns.dialogue == index, self.dialogues[index]
        scores = self.turns.features[here] @ self.weights([dialogue.family, *without])
        risks = [round(sigmoid(slope * score + offset), _DECIMALS) for score in scores.tolist()]
        policy = judging_policy(Policy(escalation=EscalationPolicy(model=_UNWEIGHED)))
        rows = []
        for turn, state, _ in folded(dialogue, risks, self.turns.vectors[here], policy):
            escalating = state.escalating(policy)
            if turn.role is Role.USER and escalating is not None:
                values = escalating.values
                rows.append([values[name] for name in SIGNAL_NAMES])
        return np.array(rows)


def _sources(dialogues: Sequence[LabelledDialogue]) -> list[SourceCard]:
    found: dict[str, list[LabelledDialogue]] = {}
    for dialogue in dialogues:
        found.setdefault(dialogue.source, []).append(dialogue)
    return [
        SourceCard(
            name,
            " and ".join(sorted({each.label for each in here})),
            ", ".join(sorted({each.licence for each in here})),
            len(here),
            sum(len(each.said_by_user) for each in here),
        )
        for name, here in sorted(found.items())
    ]


def trainer_with_own(dialogues: Sequence[LabelledDialogue], embedder: Embedder) -> Trainer:
    """A trainer on these dialogues and all of the project's own texts."""
    return Trainer([*dialogues, *own_dialogues()], own_pairs(), embedder)


Floats = NDArray[np.float64]

PRIOR = {"level": 8.0, "information_gathering": 6.0, "instructions": 1.8, "refusals": 1.8, "refused_rephrased": 0.9}
"""Log-odds of a signal at 1, before any data. Set on families left out: a level and questions that gather on one matter
carry nearly all that can be told there; the others say something where they fire, which on those dialogues is rare."""
PRIOR_STRENGTH = 100.0
"""Inverse variance of a weight around its prior; the data weigh 1,000 sessions."""
_SESSIONS = 1_000
_SESSIONS_OF_A_SOURCE = 100
SHARPNESS = 2.8
"""Log-odds of the calibrated probability for one of the weighed sum: what Platt (1999) gives on scores of families left
out, with the threshold held where it is (2.6 to 3.1, whichever family is left out). Fixed, so that leaving a family out
changes what is known and not the scale."""
TARGET_FALSE_ALARMS = 0.03
"""Share of benign sessions, each source weighing the same, that the shipped threshold alerts on in training. The worst
source alone would be no measure: the threshold would move whenever it is left out."""
ALERT_PROBABILITY = 0.45
"""`modes.elevated.enter` of the default policy: the probability that stands for the shipped threshold."""
_UNWEIGHED = CombinationModel(name="signals alone", base=0, weights={})


class LabelledSessions(NamedTuple):
    """Sessions with what the signals said.

    Attributes:
        signals: After each user turn, `(n_turns, n_signals)`.
    """

    signals: list[Floats]
    escalating: NDArray[np.bool_]
    source: list[str]


def fit_combination(sessions: LabelledSessions) -> tuple[CombinationModel, float]:
    """Weights by maximum a posteriori, then scale and base by calibration on the sessions' highest scores.

    Returns:
        The combination, without signals that say nothing, and the share of escalating sessions that it assumes.
    """
    weights = _weights(sessions)
    highest = np.array([float((rows @ weights).max()) for rows in sessions.signals])
    threshold = _threshold(highest, sessions)
    base = float(logit(ALERT_PROBABILITY)) - SHARPNESS * threshold
    units = {name: round(SHARPNESS * weight * UNITS) for name, weight in zip(SIGNAL_NAMES, weights, strict=True)}
    told = {name: weight for name, weight in units.items() if weight}
    learnt = CombinationModel(name="learnt", base=round(base * UNITS), weights=told)
    return learnt, _base_rate(SHARPNESS * highest + base, sessions)


def source_weights(source: Sequence[str], escalating: NDArray[np.bool_]) -> Floats:
    """Both labels weigh 0.5; within a label a source weighs the root of its sessions."""
    counts = Counter(source)
    return evened(np.array([counts[name] ** -0.5 for name in source]), escalating)


def _weights(sessions: LabelledSessions) -> Floats:
    last = np.array([[*rows[-1], 1.0] for rows in sessions.signals])
    balance = source_weights(sessions.source, sessions.escalating) * _SESSIONS
    count = len(SIGNAL_NAMES)
    found = logistic(
        last,
        sessions.escalating,
        balance,
        np.array([PRIOR_STRENGTH] * count + [0.0]),
        prior=np.array([*(PRIOR.get(name, 0.0) for name in SIGNAL_NAMES), -2.0]),
        bounds=[(0.0, None)] * count + [(None, None)],
    )
    return found[:-1]


def _base_rate(log_odds: Floats, sessions: LabelledSessions) -> float:
    """Share of escalating sessions at which the probabilities are right on average; in traffic it is another."""
    balance = source_weights(sessions.source, sessions.escalating)
    probabilities = expit(log_odds)
    of_attacks, of_benign = (
        float(np.average(probabilities[here], weights=balance[here]))
        for here in (sessions.escalating, ~sessions.escalating)
    )
    # share * of_attacks + (1 - share) * of_benign = share
    return round(of_benign / (1 - of_attacks + of_benign), 4)


def _threshold(highest: Floats, sessions: LabelledSessions) -> float:
    """The score that as many benign sessions reach as may, each source weighing the same."""
    benign = ~sessions.escalating
    names, place, counts = np.unique(np.array(sessions.source)[benign], return_inverse=True, return_counts=True)
    shares = 1 / counts[place] / len(names)
    order = np.argsort(-highest[benign])
    scores, alarms = highest[benign][order], np.cumsum(shares[order])
    # Interpolated, so that one session more or less does not move it by a step.
    return float(np.interp(TARGET_FALSE_ALARMS, alarms, scores))
