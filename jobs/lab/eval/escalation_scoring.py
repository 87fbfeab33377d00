"""Figures of a detector over labelled sessions: how well it tells them apart, and what its alerts are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Row = dict[str, float | int | str | None]
"""Figures by name; None where there is nothing to reckon with."""
FALSE_ALARM_RATES = (0.01, 0.05)
ESCALATING, BENIGN, BOTH = "escalating", "benign", "benign and escalating"
_RESAMPLES = 500


class ScoredSession(Struct, frozen=True):
    """A labelled session after the detector saw it turn by turn.

    Attributes:
        score: The highest probability after any of its turns, 0-1.
        first_turn: Risk of its first user turn alone, 0-1.
        turns: How many it has, of all roles.
        mean_chars: Of its user turns.
        alerted_after: Turns seen when the first alert was raised, None without one.
    """

    session_id: str
    source: str
    escalating: bool
    score: float
    first_turn: float
    turns: int
    mean_chars: float
    alerted_after: int | None

    @property
    def lead(self) -> float | None:
        """Fraction of its turns seen at the first alert."""
        return None if self.alerted_after is None else self.alerted_after / self.turns


def roc_auc(positive: Sequence[float] | Floats, negative: Sequence[float] | Floats) -> float | None:
    """Chance that an escalating session scores above a benign one, ties half; None where one side is missing.

    >>> roc_auc([0.9, 0.4], [0.1, 0.4])
    0.875
    """
    if len(positive) == 0 or len(negative) == 0:
        return None
    ordered = np.sort(np.asarray(negative))
    below = np.searchsorted(ordered, positive, side="left")
    up_to = np.searchsorted(ordered, positive, side="right")
    return float((below + up_to).mean() / 2 / len(ordered))


def pr_auc(positive: Sequence[float] | Floats, negative: Sequence[float] | Floats) -> float | None:
    """Average precision: precision at each recall step, ties taken together; None where one side is missing.

    >>> pr_auc([0.9, 0.8], [0.1])
    1.0
    """
    if len(positive) == 0 or len(negative) == 0:
        return None
    scores = np.concatenate([positive, negative])
    labels = np.concatenate([np.ones(len(positive)), np.zeros(len(negative))])
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    found = np.cumsum(labels[order])[ends]
    precision = found / (ends + 1)
    return float((np.diff(found, prepend=0.0) * precision).sum() / len(positive))


def recall_at(positive: Sequence[float] | Floats, negative: Sequence[float] | Floats, rate: float) -> float | None:
    """Share of escalating sessions above a threshold that at most `rate` of the benign ones reach.

    >>> recall_at([0.9, 0.5], [0.6, 0.1], 0.01)
    0.5
    """
    if len(positive) == 0 or len(negative) == 0:
        return None
    allowed = int(rate * len(negative) + 1e-9)
    threshold = np.sort(np.asarray(negative))[::-1][allowed] if allowed < len(negative) else -np.inf
    return float((np.asarray(positive) > threshold).mean())


class EscalationScores(NamedTuple):
    """Everything that is said of a run.

    Attributes:
        overall: Over all sessions, with the mean ROC-AUC of the sources of escalating sessions, and the gain over the
            first turn alone.
        controls: ROC-AUC of what needs no memory.
        by_source: Figures of each source.
    """

    overall: Row
    controls: dict[str, float | None]
    by_source: dict[str, Row]


def summary(sessions: Sequence[ScoredSession]) -> EscalationScores:
    """All figures; those for which one label is missing are None."""
    overall, alone, sources = figures(sessions), controls(sessions), by_source(sessions)
    attacks = [row["roc_auc"] for row in sources.values() if row["label"] != BENIGN]
    known = [auc for auc in attacks if isinstance(auc, float)]
    auc, first = overall["roc_auc"], alone["first_turn"]
    overall["roc_auc_mean_of_attack_sources"] = sum(known) / len(known) if known else None
    overall["gain_over_first_turn"] = auc - first if isinstance(auc, float) and first is not None else None
    return EscalationScores(overall, alone, sources)


def figures(sessions: Sequence[ScoredSession]) -> Row:
    """Over these sessions: how well escalating ones are told from benign ones, and what alerts are worth."""
    attacks = [one for one in sessions if one.escalating]
    benign = [one for one in sessions if not one.escalating]
    positive, negative = _scores(attacks), _scores(benign)
    return {
        "dialogues": len(sessions),
        "escalating": len(attacks),
        "roc_auc": roc_auc(positive, negative),
        "pr_auc": pr_auc(positive, negative),
        **{f"recall_at_fpr_{rate}": recall_at(positive, negative, rate) for rate in FALSE_ALARM_RATES},
        "recall": _alerted(attacks),
        "fpr": _alerted(benign),
        "median_lead": _median_lead(attacks),
    }


def by_source(sessions: Sequence[ScoredSession]) -> dict[str, Row]:
    """Each source, by name: an escalating one against all benign sessions, a benign one against all escalating.

    A source that bears both labels is held against itself. Recall, false alarms and lead are of its sessions alone.
    """
    found: dict[str, Row] = {}
    for name in sorted({one.source for one in sessions}):
        here = [one for one in sessions if one.source == name]
        labels = {one.escalating for one in here}
        against = [one for one in sessions if one.escalating not in labels]
        row, alone = figures([*here, *against]), figures(here)
        del row["escalating"]
        row |= {each: alone[each] for each in ("dialogues", "recall", "fpr", "median_lead")}
        found[name] = {"label": BOTH if len(labels) > 1 else ESCALATING if True in labels else BENIGN, **row}
    return found


def controls(sessions: Sequence[ScoredSession]) -> dict[str, float | None]:
    """ROC-AUC of what needs no memory: the first user turn alone, the number of turns, the mean length of a turn."""
    attacks = [one for one in sessions if one.escalating]
    benign = [one for one in sessions if not one.escalating]

    def ranked_by(value: Callable[[ScoredSession], float]) -> float | None:
        return roc_auc([value(one) for one in attacks], [value(one) for one in benign])

    return {
        "first_turn": ranked_by(lambda one: one.first_turn),
        "turns": ranked_by(lambda one: one.turns),
        "mean_length": ranked_by(lambda one: one.mean_chars),
    }


def roc_auc_interval(sessions: Sequence[ScoredSession], seed: int) -> tuple[float, float] | None:
    """95 % interval of the ROC-AUC, by resampling sessions within their label; None where one label is missing."""
    drawn = np.random.default_rng(seed)
    sides = [_scores(one for one in sessions if one.escalating is label) for label in (True, False)]
    found = [roc_auc(*(drawn.choice(side, len(side)) for side in sides)) for _ in range(_RESAMPLES)]
    known = [auc for auc in found if auc is not None]
    if not known:
        return None
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def _scores(sessions: Iterable[ScoredSession]) -> Floats:
    return np.array([one.score for one in sessions])


def _alerted(sessions: Sequence[ScoredSession]) -> float | None:
    return sum(one.alerted_after is not None for one in sessions) / len(sessions) if sessions else None


def _median_lead(sessions: Sequence[ScoredSession]) -> float | None:
    leads = [one.lead for one in sessions if one.lead is not None]
    return median(leads) if leads else None
