"""The slope against scipy, on any risks."""

from __future__ import annotations

import numpy as np
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


@given(RISKS)
def test_error_is_that_of_the_residuals(risks: list[float]) -> None:
    """Also on a straight line: the residuals' own sum of squares, from an independent fit."""
    x = np.arange(len(risks))
    slope, intercept = np.linalg.lstsq(np.stack([x, np.ones(len(x))], axis=1), np.array(risks), rcond=None)[0]
    residuals = np.array(risks) - intercept - slope * x
    expected = np.sqrt((residuals**2).sum() / (len(risks) - 2) / ((x - x.mean()) ** 2).sum())

    assert pytest.approx(expected, abs=1e-9) == fit_slope(risks).stderr


@given(st.lists(st.floats(0, 1), max_size=2))
def test_few_risks_have_no_error(risks: list[float]) -> None:
    """One point has no slope, two have no error; neither divides by zero."""
    actual = fit_slope(risks)
    expected = risks[1] - risks[0] if len(risks) == 2 else 0.0

    assert pytest.approx(expected, abs=1e-15) == actual.per_turn
    assert (0.0, len(risks)) == (actual.stderr, actual.n)


@given(RISKS, st.floats(0, 1))
def test_slope_is_odd_in_time(risks: list[float], level: float) -> None:
    """Reversed time reverses the slope, and adding a level does not change it."""
    forward = fit_slope(risks).per_turn

    assert pytest.approx(-forward, abs=1e-12) == fit_slope(risks[::-1]).per_turn
    assert pytest.approx(forward, abs=1e-12) == fit_slope([risk + level for risk in risks]).per_turn
