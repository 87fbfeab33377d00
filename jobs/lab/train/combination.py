"""Fitting the calibrated combination: how much each sequence signal says, and from when on it is worth waking someone.

Eighteen signals, and a few families of dialogues that each have a format of their own: a free regression learns the
formats (ROC-AUC 0.60 on families left out, where the prior alone gives 0.84). So the weights start from a prior that
says what is plausible, may not be negative, and are moved by the data only as far as `PRIOR_STRENGTH` lets them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from jobs.lab.train.turns import evened, logistic
from jobs.shared.dialogues import LabelledDialogue, folded, judging_policy
from models.events import Role
from models.policy import Policy
from models.policy.escalation import CombinationModel, EscalationPolicy
from models.risk.combination import UNITS
from models.risk.sequence.signals import SIGNAL_NAMES
from streams.ports import Vectors

Floats = NDArray[np.float64]

PRIOR = {
    "level": 4.0,
    "information_gathering": 5.0,
    "instructions": 2.0,
    "refusals": 2.0,
    "refused_rephrased": 1.0,
    "setup_drift": 1.0,
    "topic_cycling": 1.0,
    "cusum": 0.5,
}
"""Log-odds of a signal at 1, before any data. Set by leave-one-family-out on the public dialogues: a level and
questions that gather on one matter carry nearly all that can be told there; the others say something where they fire,
which on those dialogues is hardly ever. Peaks, trends and jumps of single turns only added false alarms."""
PRIOR_STRENGTH = 100.0
"""Inverse variance of a weight around its prior; the data weigh 1,000 sessions."""
_SESSIONS = 1_000
SHARPNESS = 2.2
"""Log-odds of the calibrated probability for one of the weighed sum (Platt 1999, on scores of families left out: 1.7 to
2.7, whichever family is left out). Fixed, so that leaving a family out changes what is known and not the scale."""
TARGET_FALSE_ALARMS = 0.07
"""Share of benign sessions, each source weighing the same, that the shipped threshold alerts on in training. Most of
those sources are hard negatives; of the public benign dialogues, left out, it is 2.4 %."""
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


class LearntCombination(NamedTuple):
    """What was learnt.

    Attributes:
        base: In ten-thousandths of log-odds, as a scorer's file has it.
        weights: By signal, likewise; without those that say nothing.
        base_rate: Share of escalating sessions that the probabilities assume.
    """

    base: int
    weights: dict[str, int]
    base_rate: float


def signals_of(dialogue: LabelledDialogue, risks: Sequence[float], vectors: Vectors) -> Floats:
    """Value of every sequence signal after each user turn, `(n_user_turns, n_signals)`, each 0-1."""
    policy = judging_policy(Policy(escalation=EscalationPolicy(model=_UNWEIGHED)))
    rows = []
    for turn, state, _ in folded(dialogue, risks, vectors, policy):
        escalating = state.escalating(policy)
        if turn.role is Role.USER and escalating is not None:
            values = escalating.values
            rows.append([values[name] for name in SIGNAL_NAMES])
    return np.array(rows)


def fit_combination(sessions: LabelledSessions) -> LearntCombination:
    """Weights by maximum a posteriori, then scale and base by calibration on the sessions' highest scores."""
    weights = _weights(sessions)
    highest = np.array([float((rows @ weights).max()) for rows in sessions.signals])
    threshold = _threshold(highest, sessions)
    base = float(logit(ALERT_PROBABILITY)) - SHARPNESS * threshold
    units = {name: round(SHARPNESS * weight * UNITS) for name, weight in zip(SIGNAL_NAMES, weights, strict=True)}
    return LearntCombination(
        base=round(base * UNITS),
        weights={name: weight for name, weight in units.items() if weight},
        base_rate=_base_rate(SHARPNESS * highest + base, sessions),
    )


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
