"""Patterns across the turns of one session, seen in their vectors (risk memory, layer 4, use cases 1-3).

Each new user turn is compared with the remembered ones and marked; a signal is how many marks the ring holds, so it
fades as turns leave. Marks are given in the order of arrival: a turn that comes late is compared with those present,
and marks given before it stand. Without vectors no turn is marked and the signals are 0.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from models.policy import DetectorPolicy
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
    if ring.holds(TurnMark.RISKY):
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
    seen = sorted(zip(ring.turns, ring.marks, cosines, strict=True))
    detour, back_at = 0, False
    for other, marks, cosine in reversed(seen):
        if other > turn:
            continue
        if cosine >= policy.near:
            back_at = marks & _RISKY_MATTER != 0
            break
        if not marks & TurnMark.RISKY:
            detour += 1
    return detour if back_at else 0


def _near_risky(ring: VectorRing, vector: NDArray[np.float32], near: float) -> bool:
    centroid = ring.risky_centroid()
    if centroid is None:
        return False
    scale = (float(centroid @ centroid) * float(vector @ vector)) ** 0.5
    return bool(scale > 0 and float(centroid @ vector) >= near * scale)
