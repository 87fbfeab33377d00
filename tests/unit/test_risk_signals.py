"""Signals A, B and C, suspicion and their combination, with the source's numbers."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import linregress

from models.policy import Policy, RiskPolicy, SuspicionWeights
from models.risk import signals
from models.risk.detectors import NO_PATTERN, PatternSignals

POLICY = RiskPolicy()


def _combine(
    risks: list[float], patterns: PatternSignals = NO_PATTERN, policy: RiskPolicy = POLICY
) -> signals.SignalCombination:
    return signals.combine(
        risks=risks,
        slope=signals.fit_slope(risks),
        behaviour=signals.Behaviour(),
        turn_count=10,
        repeated_topics={},
        patterns=patterns,
        policy=policy,
    )


@pytest.mark.parametrize(
    ("risks", "trajectory", "certain"),
    [
        ([0.1, 0.15, 0.2, 0.25, 0.3], 0.5, 0.5),
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], 2.0, 1.0),  # can exceed 1, and is bounded only where it is combined
        ([0.1, 0.5, 0.0, 0.4, 0.2, 0.3], 1 / 7, 0.0),  # a slope smaller than its own error adds nothing
        ([0.0, 0.3, 0.6, 0.9], 0.0, 0.0),  # fewer than five scored turns
        ([0.9, 0.7, 0.5, 0.3, 0.1], 0.0, 0.0),
        ([], 0.0, 0.0),
    ],
)
def test_trajectory(risks: list[float], trajectory: float, certain: float) -> None:
    """Ten times the slope, 0 for few turns and for a fall."""
    slope = signals.fit_slope(risks)

    assert pytest.approx((trajectory, certain)) == (
        signals.trajectory_risk(slope, POLICY),
        signals.certain_trajectory_risk(slope, POLICY),
    )


@pytest.mark.parametrize(
    ("repeated", "expected"),
    [({}, 0.0), ({"hack": 2, "weapon": 1, "garden": 9}, 0.3), ({"hack": 7, "exploit": 4, "bypass": 9}, 1.0)],
)
def test_topic_persistence(repeated: dict[str, int], expected: float) -> None:
    """0.1 for each turn on a risky topic, at most 1."""
    assert expected == pytest.approx(signals.topic_persistence_risk(repeated, POLICY))


def test_behavioural_anomaly() -> None:
    """The mean of the three ratios."""
    behaviour = signals.Behaviour(imperative_count=5, topic_changes=2, probing_attempts=2)

    assert pytest.approx(0.3) == signals.behavioural_anomaly_risk(behaviour, 10)


def test_suspicion_score() -> None:
    """0.3 probing, 0.2 hypothetical, 0.5 meta-instruction, per turn; no turn is no division by zero."""
    behaviour = signals.Behaviour(probing_attempts=2, hypothetical_count=1, meta_instruction_count=1)
    actual = [signals.suspicion_score(behaviour, turns, SuspicionWeights()) for turns in (10, 0)]

    assert pytest.approx([0.13, 1.3]) == actual


def test_level_halves_after_its_half_life() -> None:
    """A risk counts half after six scored turns, and the highest decayed one is the level."""
    assert pytest.approx((0.4, 0.45)) == (
        signals.risk_level([0.8, 0, 0, 0, 0, 0, 0], 6.0),
        signals.risk_level([0.8, 0, 0, 0, 0, 0.45], 6.0),
    )


def test_nothing_observed_scores_zero() -> None:
    """Without any signal the score and all shares are 0."""
    combination = _combine([])

    assert (0.0, {0.0}) == (combination.score, {signal.share for signal in combination.shares()})


def test_score_is_the_noisy_or_of_weighted_signals() -> None:
    """Two signals combine as the chance that not both are wrong."""
    combination = _combine([0.5], patterns=PatternSignals(repeated_probing=1.0))
    weights = Policy().risk.weights

    assert pytest.approx(1 - (1 - weights.level * 0.5) * (1 - weights.repeated_probing)) == combination.score


def test_shares_name_the_cause() -> None:
    """The signal that makes the score has nearly all of it."""
    combination = _combine([0.1] * 5, patterns=PatternSignals(topic_cycling=1.0))
    shares = {signal.name: signal.share for signal in combination.shares()}

    assert "topic_cycling" == max(shares, key=lambda name: shares[name])
    assert pytest.approx(1.0) == sum(shares.values())


def test_full_weight_stays_finite() -> None:
    """A weight of 1 on a signal of 1 is a score of almost 1, not an infinite one."""
    policy = RiskPolicy(weights=type(POLICY.weights)(level=1.0))
    combination = _combine([1.0], policy=policy)

    assert pytest.approx((1.0, 1.0)) == (combination.score, sum(s.share for s in combination.shares()))


@given(st.lists(st.floats(0, 1), min_size=3, max_size=200))
@example([0.0] * 20)
@example([1.0] * 20)
@example([n / 19 for n in range(20)])
@example([5e-324, 0.0, 1.0])
def test_slope_agrees_with_scipy(risks: list[float]) -> None:
    """Slope to 1e-9, and its error too where scipy is exact (its `1 - r²` cancels on a straight line)."""
    expected = linregress(range(len(risks)), risks)
    actual = signals.fit_slope(risks)

    assert len(risks) == actual.n
    assert pytest.approx(expected.slope, abs=1e-9) == actual.per_turn
    if abs(expected.rvalue) < 1 - 1e-6:
        assert pytest.approx(expected.stderr, abs=1e-9) == actual.stderr


@given(st.lists(st.floats(0, 1), max_size=2))
def test_few_risks_have_no_error(risks: list[float]) -> None:
    """One point has no slope, two have no error; neither divides by zero."""
    actual = signals.fit_slope(risks)
    expected = risks[1] - risks[0] if len(risks) == 2 else 0.0

    assert pytest.approx(expected, abs=1e-15) == actual.per_turn
    assert (0.0, len(risks)) == (actual.stderr, actual.n)
