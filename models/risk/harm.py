"""Which kind of harm a session's risky turns ask for: a second head on a turn's features.

```
kind of a turn    = softmax(offset + dense · embedding + mean of the words' weights)    as whole per cents
kinds of session  = 0.9 · kinds of session + risk · kind      over the turns whose risk stands out
```

A kind is named where it has most of what is known and at least `NAMED_FROM` of it; everything else is `other`.
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from models.events import Harm

HARMS = tuple(Harm)
NAMED_FROM = 0.3
"""Least share of a kind that is named. Set on pairs and dialogues of hands left out (`turntide lab train harms`)."""
KEPT = 0.9
"""Of what the turns before said, with each turn that stands out."""
_PER_CENT = 100


class HarmWeights(Struct, frozen=True, kw_only=True):
    """What a turn's kind is weighed by, kind after kind in the order of `Harm`.

    Attributes:
        dense: Of the embedding's dimensions, each int8.
        dense_scale: Log-odds of a weight of 1 times a unit vector's dimension of 1.
        words: Of the hashed words, each int8.
        words_scale: Log-odds of a word's weight of 1.
        offsets: Log-odds of each kind before anything is said.
    """

    dense: bytes
    dense_scale: float
    words: bytes
    words_scale: float
    offsets: list[float]


def by_harm(weights: bytes) -> NDArray[np.int8]:
    """Weights of a feature a column, `(n_harms, n_features)`; a view."""
    return np.frombuffer(weights, dtype=np.int8).reshape(len(HARMS), -1)


def per_cents(log_odds: Sequence[float]) -> list[int]:
    """Softmax in whole per cents, an entry a kind.

    >>> per_cents([0.0, 0.0]), per_cents([0.0, 800.0])
    ([50, 50], [0, 100])
    """
    highest = max(log_odds)
    odds = [math.exp(each - highest) for each in log_odds]
    return [round(_PER_CENT * each / sum(odds)) for each in odds]


def gathered(before: Sequence[int], turn: Sequence[int], risk: float) -> list[int]:
    """What is known of a session after a turn that stands out, an entry a kind, in hundredths of a per cent.

    >>> gathered([], [0, 100], 0.5), gathered([0, 5000], [100, 0], 0.5)
    ([0, 5000], [5000, 4500])
    """
    past = before or [0] * len(turn)
    return [round(KEPT * old + _PER_CENT * risk * new) for old, new in zip(past, turn, strict=True)]


def harm_of(known: Sequence[int]) -> Harm:
    """The kind that a session's alert is of.

    >>> harm_of([]), harm_of([9_000, 500, 0, 0, 0, 0, 0, 500]), harm_of([300, 300, 0, 0, 0, 0, 0, 400])
    (<Harm.OTHER: 'other'>, <Harm.PRIVACY: 'privacy'>, <Harm.OTHER: 'other'>)
    """
    most = max(known, default=0)
    return HARMS[known.index(most)] if most and most >= NAMED_FROM * sum(known) else Harm.OTHER
