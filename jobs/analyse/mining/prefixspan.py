"""Frequent subsequences by PrefixSpan (Pei et al. 2001), over distinct sequences with weights, in numpy.

A pattern stands in a sequence whose events contain the pattern's in its order, with any others in between. What
PrefixSpan projects, the rest of each sequence behind the first match, is a look-up here: `following[sequence, place,
item]` is the place right behind the next such item, 0 for none. So a pattern's extensions are counted for all items
and sequences at once, and Python runs once per frequent pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.int64]
_NONE = 0


class Pattern(NamedTuple):
    """Items in their order, and the weight of the sequences that it stands in."""

    items: tuple[int, ...]
    weight: int


class Sequences:
    """Sequences of small integers, ready to be searched.

    Args:
        sequences: At most 254 items each.
        items: How many there are, from 0 on.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], items: int) -> None:
        longest = max(map(len, sequences), default=0)
        padded = np.full((len(sequences), longest), items, dtype=np.int64)
        for row, sequence in enumerate(sequences):
            padded[row, : len(sequence)] = sequence
        self._following = np.zeros((len(sequences), longest + 1, items + 1), dtype=np.uint8)
        rows = np.arange(len(sequences))
        for place in range(longest - 1, -1, -1):
            self._following[:, place] = self._following[:, place + 1]
            self._following[rows, place, padded[:, place]] = place + 1
        # What fills up short sequences is no item.
        self._following = self._following[:, :, :items]

    def having(self, pattern: Sequence[int]) -> NDArray[np.bool_]:
        """Which sequences the pattern stands in, `(n_sequences,)`."""
        alive, places = np.arange(len(self._following)), np.zeros(len(self._following), dtype=np.int64)
        for item in pattern:
            found = self._following[alive, places, item]
            alive, places = alive[found > _NONE], found[found > _NONE].astype(np.int64)
        having = np.zeros(len(self._following), dtype=np.bool_)
        having[alive] = True
        return having

    def frequent(self, weights: Weights, least: int, *, longest: int, most: int) -> list[Pattern] | None:
        """Patterns of a weight of at least `least`, up to `longest` items; None if there are more than `most`."""
        whole = np.arange(len(self._following))
        found: list[Pattern] = []
        waiting: list[tuple[tuple[int, ...], NDArray[np.int64], NDArray[np.int64]]] = [
            ((), whole, np.zeros_like(whole))
        ]
        while waiting:
            prefix, alive, places = waiting.pop()
            following = self._following[alive, places]
            weight_of = weights[alive] @ (following > _NONE)
            for item in np.flatnonzero(weight_of >= max(least, 1)):
                items = (*prefix, int(item))
                found.append(Pattern(items, int(weight_of[item])))
                if len(found) > most:
                    return None
                if len(items) < longest:
                    further = following[:, item]
                    kept = further > _NONE
                    waiting.append((items, alive[kept], further[kept].astype(np.int64)))
        return found


def closed(patterns: Sequence[Pattern], share: float = 1.0) -> list[Pattern]:
    """Those that no pattern contains which is one item longer and has so large a share of the weight: it says more.

    With a share of 1 these are the closed patterns: whatever contains a pattern at equal weight contains one that is
    longer by one item and contains it at equal weight.

    >>> closed([Pattern((1,), 10), Pattern((2,), 20), Pattern((1, 2), 10)])
    [Pattern(items=(2,), weight=20), Pattern(items=(1, 2), weight=10)]
    """
    longer: dict[tuple[int, ...], int] = {}
    for items, weight in patterns:
        for n in range(len(items)):
            part = items[:n] + items[n + 1 :]
            longer[part] = max(longer.get(part, 0), weight)
    return [pattern for pattern in patterns if longer.get(pattern.items, 0) < share * pattern.weight]
