"""Calibrated combination of a session's signals into one log-odds, which comes apart again exactly.

```
text      = base + Σ weight · value                    a logistic regression over the sequence signals; those of the
                                                       course are cut to `alone_bound` where no turn around is risky
upstream  = log(exp(t) + s / (1 - s)) - t              t = text + reader; the odds of the source formulas' score s
reader    = weight · value                             raises only; none where no second reader is configured
judge     = clip(judge_weight · logit(p), ±judge_bound)
log-odds  = text + reader + upstream + judge           probability = 1 / (1 + exp(-log-odds))
```

Each term is rounded to a whole ten-thousandth of log-odds (upstream: up), so that sums are exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from models.policy.escalation import CombinationModel, EscalationPolicy
from models.risk.reading import READER
from models.risk.sequence import OF_COURSE, sigmoid

UNITS = 10_000
"""Of one log-odds."""
UPSTREAM = "upstream"
"""Signal of the risks that producers send along."""
JUDGE = "judge"
"""Signal of a slower judge's answer."""
_BESIDE = frozenset({UPSTREAM, JUDGE, READER})
"""Signals that are no sequence signals, each a field of `Grounds`."""
_ALMOST = 2.0**-40
"""Nearest to 0 or 1 that a probability is taken for: its log-odds stay finite."""


class Grounds(Struct, frozen=True, gc=False):
    """What a judgement rests on.

    Attributes:
        values: Of the sequence signals by name, each 0-1.
        upstream: The source formulas' score where producers sent risks along, else None.
        judge: A slower judge's probability, None without one.
        risky: Whether a turn around is risky by itself.
        reader: Value of a second reader's signal, 0-1; None without one.
    """

    values: Mapping[str, float]
    upstream: float | None = None
    judge: float | None = None
    risky: bool = True
    reader: float | None = None

    def without(self, signal: str) -> Grounds:
        """The same had the signal not been there."""
        if signal in _BESIDE:
            return replace(self, **{signal: None})
        return replace(self, values={name: value for name, value in self.values.items() if name != signal})

    def value(self, signal: str) -> float:
        """A signal's value, 0-1; 0 for one that is not there."""
        told: float | None = getattr(self, signal) if signal in _BESIDE else self.values.get(signal)
        return told or 0.0


class Judgement(Struct, frozen=True, gc=False):
    """A session's log-odds and their parts, in ten-thousandths.

    Attributes:
        base: Of a session of which nothing is known.
        parts: What each signal adds, by name; base and parts add up to the log-odds.
    """

    base: int
    parts: dict[str, int]

    @property
    def log_odds(self) -> int:
        """Of everything together."""
        return self.base + sum(self.parts.values())

    @property
    def probability(self) -> float:
        """That the session escalates, 0-1."""
        return probability_of(self.log_odds)


def judge(grounds: Grounds, model: CombinationModel, policy: EscalationPolicy) -> Judgement:
    """Weigh what is known of a session. A signal that the model does not name counts nothing.

    >>> model = CombinationModel(name="m", base=-20_000, weights={"level": 30_000})
    >>> judgement = judge(Grounds({"level": 0.5}), model, EscalationPolicy())
    >>> judgement.log_odds, round(judgement.probability, 3)
    (-5000, 0.378)
    """
    weights = model.weights
    parts = {name: round(weights.get(name, 0) * value) for name, value in grounds.values.items()}
    read = {} if grounds.reader is None else {READER: max(0, round(weights.get(READER, 0) * grounds.reader))}
    if model.holds_reader:
        parts |= read
    if not grounds.risky:
        parts |= _bounded(parts, model.base, policy.alone_bound)
    if not model.holds_reader:
        parts |= read
    if grounds.upstream is not None:
        parts[UPSTREAM] = _upstream_units(model.base + sum(parts.values()), grounds.upstream)
    if grounds.judge is not None:
        said = policy.judge_weight * _logit(grounds.judge)
        parts[JUDGE] = round(UNITS * min(max(said, -policy.judge_bound), policy.judge_bound))
    return Judgement(model.base, parts)


def probability_of(log_odds: int) -> float:
    """Probability of log-odds in ten-thousandths.

    >>> probability_of(0), probability_of(10**9), probability_of(-(10**9))
    (0.5, 1.0, 0.0)
    """
    return sigmoid(log_odds / UNITS)


def _bounded(parts: Mapping[str, int], base: int, bound: float) -> dict[str, int]:
    """Parts of the course, and of a reader that is held with it, cut alike, so that they stay within the bound.

    >>> _bounded({"level": 10_000, "refusals": 30_000}, -30_000, 0.5)
    {'refusals': 20000}
    """
    of_course = {name: part for name, part in parts.items() if name in OF_COURSE or name == READER}
    together = sum(of_course.values())
    room = max(0, math.floor(UNITS * _logit(bound)) - base - (sum(parts.values()) - together))
    return {name: part * room // together for name, part in of_course.items()} if together > room else {}


def _upstream_units(text: int, score: float) -> int:
    """What adding the odds of `score` to those of the text adds to the log-odds: softplus of their distance."""
    if score <= 0.0:
        return 0
    distance = _logit(score) - text / UNITS
    return math.ceil(UNITS * (max(distance, 0.0) + math.log1p(math.exp(-abs(distance)))))


@lru_cache(maxsize=256)
def _logit(probability: float) -> float:
    bounded = min(max(probability, _ALMOST), 1.0 - _ALMOST)
    return math.log(bounded / (1.0 - bounded))
