"""Frequent subsequences against brute force."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobs.analyse.mining.sequence_patterns import Pattern, Sequences, closed

ITEMS, LONGEST = 4, 3
WEIGHTED = st.lists(
    st.tuples(st.lists(st.integers(0, ITEMS - 1), max_size=7).map(tuple), st.integers(1, 5)), min_size=1, max_size=8
)


def every_subsequence(weighted: list[tuple[tuple[int, ...], int]]) -> Counter[tuple[int, ...]]:
    """Weight of every subsequence of up to `LONGEST` items."""
    found: Counter[tuple[int, ...]] = Counter()
    for sequence, weight in weighted:
        parts = {part for length in range(1, LONGEST + 1) for part in combinations(sequence, length)}
        found.update(dict.fromkeys(parts, weight))
    return found


@given(WEIGHTED, st.integers(1, 12))
def test_frequent_patterns_are_those_of_brute_force(weighted: list[tuple[tuple[int, ...], int]], least: int) -> None:
    """Each once, with its weight, whatever the sequences."""
    sequences, weights = Sequences([sequence for sequence, _ in weighted], ITEMS), [weight for _, weight in weighted]

    found = sequences.frequent(np.array(weights), least, longest=LONGEST, most=10_000)

    assert found is not None
    assert {part: weight for part, weight in every_subsequence(weighted).items() if weight >= least} == dict(found)
    assert len(found) == len(dict(found))


@given(WEIGHTED, st.lists(st.integers(0, ITEMS - 1), max_size=LONGEST))
def test_having_a_pattern_is_being_a_supersequence(
    weighted: list[tuple[tuple[int, ...], int]], pattern: list[int]
) -> None:
    """In its order, with anything in between."""
    distinct = [sequence for sequence, _ in weighted]

    having = Sequences(distinct, ITEMS).having(pattern)

    assert [tuple(pattern) in combinations(sequence, len(pattern)) for sequence in distinct] == having.tolist()


@given(WEIGHTED)
def test_closed_patterns_tell_the_weight_of_all(weighted: list[tuple[tuple[int, ...], int]]) -> None:
    """Any frequent pattern's weight is the largest of the closed patterns that contain it; no closed one is told so."""
    every = [Pattern(items, weight) for items, weight in every_subsequence(weighted).items()]

    kept = closed(every)

    for pattern in every:
        above = [other for other in kept if pattern.items in combinations(other.items, len(pattern.items))]
        assert pattern.weight == max(other.weight for other in above)
        assert (pattern in kept) == all(other == pattern or other.weight < pattern.weight for other in above)
