"""The signals over a session's profile and how they combine into one score (risk memory, Signals A, B, C).

Before them patterns across the turns of one session, seen in their vectors (layer 4, use cases 1-3): each new user turn
is compared with the remembered ones and marked; a signal is how many marks the ring holds, so it fades as turns leave.
Marks are given in the order of arrival: a turn that comes late is compared with those present, and marks given before
it stand. Without vectors no turn is marked and the signals are 0.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import mul

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from models.events import SignalShare, Slope
from models.policy import DetectorPolicy, RiskPolicy, SignalWeights, SuspicionWeights
from models.state.vectors import TurnMark, VectorRing
from models.text.features import Features

_WATCHED = TurnMark.RISKY | TurnMark.PROBING | TurnMark.REFUSED | TurnMark.REPHRASED

_RISKY_MATTER = TurnMark.RISKY | TurnMark.RETURNED | TurnMark.GATHERED
COUNTED = TurnMark.REPHRASED | TurnMark.REPEATED | TurnMark.RETURNED | TurnMark.GATHERED
"""Marks that make a signal."""


class PatternSignals(Struct, array_like=True, frozen=True, gc=False):
    """The three signals, each 0-1."""

    repeated_probing: float = 0.0
    topic_cycling: float = 0.0
    information_gathering: float = 0.0


NO_PATTERN = PatternSignals()


def observe_turn(
    ring: VectorRing, turn: int, vector: NDArray[np.float32], features: Features, *, risky: bool, policy: DetectorPolicy
) -> float | None:
    """Mark a user turn, remember it, and give its cosine to the user turn before it (None for the first).

    - Rephrased: as near as `rephrased` to an earlier question that was risky, refused or probing, or is so itself;
      harmless repetition is marked apart and counts lightly.
    - Returned: the last turn `near` it was risky (or itself a return to a risky one), and after that came at least
      `detour_turns` turns that are neither near nor risky.
    - Gathered: a how, what, where, which, who or when question `near` the centroid of the risky turns.

    Args:
        ring: The remembered user turns; changed in place.
        turn: Its number.
        vector: Its quantised vector, `(64,)`.
        features: What it does.
        risky: Whether its risk reaches `policy.risk.risky_turn`.
        policy: Thresholds.
    """
    cosines = ring.cosines(vector)
    marks = TurnMark.RISKY * risky | TurnMark.PROBING * (features.probing or features.meta_instruction)
    highest = max(cosines, default=0.0)
    if highest >= policy.rephrased:
        same = [m for m, cosine in zip(ring.marks, cosines, strict=True) if cosine >= policy.rephrased]
        if marks or any(m & _WATCHED for m in same):
            marks |= TurnMark.REPHRASED
        elif features.question:
            marks |= TurnMark.REPEATED
    if any(m & TurnMark.RISKY for m in ring.marks):
        if highest >= policy.near and _detour(ring, turn, cosines, policy) >= policy.detour_turns:
            marks |= TurnMark.RETURNED
        if features.wh_question and _near_risky(ring, vector, policy.near):
            marks |= TurnMark.GATHERED
    nearest = _nearness_to_previous(ring, turn, cosines)
    ring.remember(turn, marks, vector)
    return nearest


def _nearness_to_previous(ring: VectorRing, turn: int, cosines: list[float]) -> float | None:
    previous = max(ring.turns, default=None)
    if previous is not None and previous > turn:
        previous = max((t for t in ring.turns if t < turn), default=None)
    return None if previous is None else cosines[ring.turns.index(previous)]


def measure_patterns(ring: VectorRing, policy: DetectorPolicy) -> PatternSignals:
    """The signals of the remembered turns."""
    marks = ring.marks
    rephrased = sum([m & TurnMark.REPHRASED != 0 for m in marks])
    repeated = sum([m & TurnMark.REPEATED != 0 for m in marks])
    returned = sum([m & TurnMark.RETURNED != 0 for m in marks])
    gathered = sum([m & TurnMark.GATHERED != 0 for m in marks])
    return PatternSignals(
        min(1.0, rephrased / policy.repeats_full + repeated * policy.harmless_repeat),
        min(1.0, returned / policy.returns_full),
        min(1.0, gathered / policy.gathering_full) if gathered >= policy.gathering_min else 0.0,
    )


def _detour(ring: VectorRing, turn: int, cosines: list[float], policy: DetectorPolicy) -> int:
    """Unrelated turns since the last one on the same matter, if that matter is a risky one; else 0."""
    detour = 0
    for other, marks, cosine in sorted(zip(ring.turns, ring.marks, cosines, strict=True), reverse=True):
        if other > turn:
            continue
        if cosine >= policy.near:
            return detour if marks & _RISKY_MATTER else 0
        detour += not marks & TurnMark.RISKY
    return 0


def _near_risky(ring: VectorRing, vector: NDArray[np.float32], near: float) -> bool:
    centroid = ring.risky_centroid()
    if centroid is None:
        return False
    scale = (float(centroid @ centroid) * float(vector @ vector)) ** 0.5
    return bool(scale > 0 and float(centroid @ vector) >= near * scale)


SIGNALS = SignalWeights.__struct_fields__
"""Names of the signals, in the order of every tuple here."""


class Behaviour(Struct, array_like=True, gc=False):
    """Counts of what the user does, over the whole session (risk memory, layer 3)."""

    question_count: int = 0
    imperative_count: int = 0
    topic_changes: int = 0
    probing_attempts: int = 0
    hypothetical_count: int = 0
    meta_instruction_count: int = 0


def suspicion_score(behaviour: Behaviour, turn_count: int, weights: SuspicionWeights) -> float:
    """`get_suspicion_score` (risk memory, layer 3), per turn; within 0-1 as a turn counts once for each."""
    return (
        behaviour.probing_attempts * weights.probing
        + behaviour.hypothetical_count * weights.hypothetical
        + behaviour.meta_instruction_count * weights.meta_instruction
    ) / max(turn_count, 1)


def trajectory_risk(slope: Slope, policy: RiskPolicy) -> float:
    """Signal A: `max(0, slope * 10)`, 0 below `trajectory_min` turns. Can exceed 1."""
    return max(0.0, slope.per_turn * policy.trajectory_gain) if slope.n >= policy.trajectory_min else 0.0


def certain_trajectory_risk(slope: Slope, policy: RiskPolicy) -> float:
    """Signal A as it is combined: the slope less its standard error, within 0-1, so that noise is no trend."""
    if slope.n < policy.trajectory_min:
        return 0.0
    certain = slope.per_turn - policy.trajectory_caution * slope.stderr
    return min(1.0, max(0.0, certain * policy.trajectory_gain))


def topic_persistence_risk(repeated_topics: Mapping[str, int], policy: RiskPolicy) -> float:
    """Signal B: 0.1 for each turn on a risky topic, up to 1."""
    return min(sum([repeated_topics.get(t, 0) for t in policy.risky_topics]) * policy.persistence_per_turn, 1.0)


def behavioural_anomaly_risk(behaviour: Behaviour, turn_count: int) -> float:
    """Signal C: mean of the imperative, topic-change and probing ratios."""
    unusual = behaviour.imperative_count + behaviour.topic_changes + behaviour.probing_attempts
    return unusual / max(turn_count, 1) / 3


def risk_level(risks: Sequence[float], half_life_turns: float) -> float:
    """Highest risk of the window, each halved for every `half_life_turns` scored turns since; 0-1."""
    return max(map(mul, risks, _weights_of_the_past(len(risks), half_life_turns)), default=0.0)


@lru_cache(maxsize=256)
def _weights_of_the_past(n: int, half_life_turns: float) -> tuple[float, ...]:
    return tuple(0.5 ** ((n - 1 - i) / half_life_turns) for i in range(n))


class SignalCombination(Struct, frozen=True, gc=False):
    """The signals of a session after a turn: their values and what each adds to `-log(1 - score)`, as `SIGNALS`."""

    values: tuple[float, ...] = (0.0,) * 8
    logs: tuple[float, ...] = (0.0,) * 8

    @property
    def score(self) -> float:
        """Combined score, 0-1."""
        return -math.expm1(-sum(self.logs))

    def shares(self) -> list[SignalShare]:
        """Value and share of every signal; shares add up to 1 when the score is above 0."""
        total = sum(self.logs)
        return [
            SignalShare(name, value, log / total if total > 0.0 else 0.0)
            for name, value, log in zip(SIGNALS, self.values, self.logs, strict=True)
        ]


def combine(
    *,
    risks: Sequence[float],
    slope: Slope,
    behaviour: Behaviour,
    turn_count: int,
    repeated_topics: Mapping[str, int],
    patterns: PatternSignals,
    policy: RiskPolicy,
) -> SignalCombination:
    """Combine the signals by noisy-or: `1 - prod(1 - w * s)` over the bounded signals `s` with their weights `w`.

    So each can raise the score alone and none lowers it, and a signal's share is its part of `-log(1 - score)`. A value
    is the source's, so that of the trajectory can exceed 1; bounded, and less its error, it is only in the combination.
    """
    level = risk_level(risks, policy.level_half_life_turns)
    persistence = topic_persistence_risk(repeated_topics, policy)
    anomaly = behavioural_anomaly_risk(behaviour, turn_count)
    suspicion = suspicion_score(behaviour, turn_count, policy.suspicion)
    rest = (persistence, anomaly, suspicion, *structs.astuple(patterns))
    bounded = (level, certain_trajectory_risk(slope, policy), *rest)
    weights = structs.astuple(policy.weights_in_force)
    logs = tuple([-math.log1p(-min(w * s, _ALMOST_ONE)) if s else 0.0 for w, s in zip(weights, bounded, strict=True)])
    return SignalCombination((level, trajectory_risk(slope, policy), *rest), logs)


_ALMOST_ONE = 1.0 - 2.0**-40
"""A weight of 1 on a signal of 1 would be an infinite log; this is a score of 1 to twelve digits."""


@lru_cache(maxsize=256)
def _centred(n: int) -> tuple[tuple[float, ...], float]:
    """`0..n-1` less their mean, and the sum of their squares."""
    middle = (n - 1) / 2
    return tuple(i - middle for i in range(n)), n * (n * n - 1) / 12


def fit_slope(risks: Sequence[float]) -> Slope:
    """Fit a line to risks against `0..n-1`, as `scipy.stats.linregress` (slope and stderr), in risk per turn.

    The sums run over the window anew: at 20 terms that costs a microsecond more than carrying them along, and they
    cannot drift. The error sums the residuals themselves, where linregress loses digits in `1 - r²` on a straight line.
    Fewer than two risks have no slope, fewer than three no error; both are 0 then.

    Args:
        risks: In the order of their turns, shape `(n,)`.

    >>> fit_slope([0.0, 0.25, 0.5, 0.75])
    Slope(per_turn=0.25, stderr=0.0, n=4)
    """
    n = len(risks)
    if n < 2:  # noqa: PLR2004 - a line needs two points
        return Slope(0.0, 0.0, n)
    xs, sum_xx = _centred(n)
    slope = sum(map(mul, xs, risks)) / sum_xx
    if n == 2:  # noqa: PLR2004
        return Slope(slope, 0.0, n)
    mean = sum(risks) / n
    residuals = [y - mean - slope * x for x, y in zip(xs, risks, strict=True)]
    return Slope(slope, (sum(map(mul, residuals, residuals)) / (n - 2) / sum_xx) ** 0.5, n)
