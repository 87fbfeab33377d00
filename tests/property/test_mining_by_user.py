"""Users as the unit of tests: what any sessions of any users must give."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from jobs.analyse.mining.statistics import ByUser

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
