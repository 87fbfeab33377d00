"""Mining: frequent subsequences against brute force, and users as the unit of tests."""

from collections import Counter
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from jobs.analyse.mining.sequence_patterns import Pattern, Sequences, closed
from jobs.analyse.mining.statistics import ByUser

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


SESSIONS = st.lists(st.tuples(st.integers(0, 12), st.booleans(), st.booleans()), min_size=2, max_size=60)
Sessions = list[tuple[int, bool, bool]]


def chance(sessions: Sessions, *, times: int = 1) -> float:
    """Of the score test, with each session so many times."""
    users, group, hits = (np.repeat(np.array(column), times) for column in zip(*sessions, strict=True))
    return ByUser(pl.Series(users)).chance(group, hits)


@given(SESSIONS, st.integers(2, 5))
@example([(5, True, False), (5, True, True), (12, False, False), (5, True, True), *[(12, False, False)] * 2], 5)
def test_saying_it_again_is_no_evidence(sessions: Sessions, times: int) -> None:
    """Users who do the same so many times over prove as much as if they had done it once."""
    assert chance(sessions) == pytest.approx(chance(sessions, times=times))


@given(SESSIONS)
def test_which_side_is_the_group_is_of_no_matter(sessions: Sessions) -> None:
    """Nor what counts as a hit; it is a chance in any case."""
    actual = chance(sessions)

    assert 0.0 <= actual <= 1.0
    assert chance([(user, not group, not hit) for user, group, hit in sessions]) == pytest.approx(actual)


@given(SESSIONS)
def test_it_is_never_surer_than_sessions_by_themselves(sessions: Sessions) -> None:
    """Of both tests the larger p-value counts."""
    users, group, hits = (np.array(column) for column in zip(*sessions, strict=True))
    table = [[(side & hit).sum() for hit in (hits, ~hits)] for side in (group, ~group)]

    actual = ByUser(pl.Series(users)).share_chance(group, hits)

    assert actual >= fisher_exact(table).pvalue
