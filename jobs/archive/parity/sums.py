"""Sums of floats in a stated order: the stream adds one risk after the other, and addition is not associative."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def running_sums(groups: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of each value and those before it in its group, added one by one, as a loop over them would.

    Args:
        groups: Shape (n,), the same number side by side.
        values: Shape (n,), in the order in which they are added.

    Takes as many steps as the longest group is long, each over all groups at once.

    >>> running_sums(np.array([7, 7, 7, 9]), np.array([0.1, 0.2, 0.3, 0.5])).tolist()
    [0.1, 0.30000000000000004, 0.6000000000000001, 0.5]
    """
    sums = values.astype(np.float64)
    if not len(values):
        return sums
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    lengths = np.diff(np.r_[starts, len(values)])
    longest_first = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[longest_first], lengths[longest_first]
    for step in range(1, int(lengths[0])):
        at = starts[: np.searchsorted(-lengths, -step, side="left")] + step
        sums[at] += sums[at - 1]
    return sums
