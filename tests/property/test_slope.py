"""The slope against scipy, on any risks."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import linregress

from models.risk.signals import fit_slope

RISKS = st.lists(st.floats(0, 1), min_size=3, max_size=200)


@given(RISKS)
@example([0.0] * 20)
@example([1.0] * 20)
@example([n / 19 for n in range(20)])
@example([5e-324, 0.0, 1.0])
def test_slope_agrees_with_scipy(risks: list[float]) -> None:
    """Slope to 1e-9, and its error too where scipy is exact (its `1 - r²` cancels on a straight line)."""
    expected = linregress(range(len(risks)), risks)
    actual = fit_slope(risks)

    assert len(risks) == actual.n
    assert pytest.approx(expected.slope, abs=1e-9) == actual.per_turn
    if abs(expected.rvalue) < 1 - 1e-6:
        assert pytest.approx(expected.stderr, abs=1e-9) == actual.stderr


@given(st.lists(st.floats(0, 1), max_size=2))
def test_few_risks_have_no_error(risks: list[float]) -> None:
    """One point has no slope, two have no error; neither divides by zero."""
    actual = fit_slope(risks)
    expected = risks[1] - risks[0] if len(risks) == 2 else 0.0

    assert pytest.approx(expected, abs=1e-15) == actual.per_turn
    assert (0.0, len(risks)) == (actual.stderr, actual.n)
