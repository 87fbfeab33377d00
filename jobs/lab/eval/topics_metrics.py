"""Clustering metrics over pairs of messages (pairwise precision, recall and F1; Youden's J)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import comb

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class PairPoint(Struct, frozen=True):
    """What a threshold alone does to pairs of messages.

    Attributes:
        threshold: Cosine above which two messages are joined.
        true_join_rate: Share of the pairs of one dialogue that are joined.
        false_join_rate: Share of the pairs of two dialogues that are.
        youden: The first less the second: 1 parts them cleanly, 0 is no better than chance.
    """

    threshold: float
    true_join_rate: float
    false_join_rate: float
    youden: float


class PairCounts(Struct, frozen=True):
    """Pairs of messages within sessions, and how many of them are right."""

    together: int
    """In one topic."""
    belonging: int
    """From one dialogue."""
    right: int
    """Both."""

    @property
    def precision(self) -> float:
        """Share of the pairs in one topic that come from one dialogue; 1 without any."""
        return self.right / self.together if self.together else 1.0

    @property
    def recall(self) -> float:
        """Share of the pairs of one dialogue that are in one topic; 1 without any."""
        return self.right / self.belonging if self.belonging else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of the two."""
        both = self.together + self.belonging
        return 2 * self.right / both if both else 1.0


def count_pairs(topics: Sequence[Hashable], dialogues: Sequence[Hashable]) -> PairCounts:
    """Pairs of one session.

    >>> counts = count_pairs(["a", "a", "b"], [1, 1, 1])
    >>> counts.precision, round(counts.recall, 2), counts.f1
    (1.0, 0.33, 0.5)
    """
    return PairCounts(
        together=_pairs(topics),
        belonging=_pairs(dialogues),
        right=_pairs(list(zip(topics, dialogues, strict=True))),
    )


def total(counts: Iterable[PairCounts]) -> PairCounts:
    """Counts of several sessions as one."""
    kept = list(counts)
    return PairCounts(
        together=sum(each.together for each in kept),
        belonging=sum(each.belonging for each in kept),
        right=sum(each.right for each in kept),
    )


def pair_curve(same: NDArray[np.float32], other: NDArray[np.float32], thresholds: Sequence[float]) -> list[PairPoint]:
    """Join rates by threshold.

    Args:
        same: Cosines of pairs of one dialogue, `(n_pairs,)`.
        other: Cosines of pairs of two dialogues, `(n_pairs,)`.
        thresholds: Where to look.
    """
    points = []
    for threshold in thresholds:
        true_rate, false_rate = float(np.mean(same > threshold)), float(np.mean(other > threshold))
        points.append(PairPoint(threshold, true_rate, false_rate, true_rate - false_rate))
    return points


def _pairs(labels: Iterable[Hashable]) -> int:
    return sum(comb(count, 2) for count in Counter(labels).values())
