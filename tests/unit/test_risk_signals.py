"""Signals A, B and C, suspicion and their combination, with the source's numbers."""

from __future__ import annotations

import pytest

from models.events import Slope
from models.policy import Policy, RiskPolicy, SuspicionWeights
from models.risk.detectors import NO_PATTERN, PatternSignals
from models.risk.signals import (
    Behaviour,
    SignalCombination,
    behavioural_anomaly_risk,
    certain_trajectory_risk,
    combine,
    fit_slope,
    risk_level,
    suspicion_score,
    topic_persistence_risk,
    trajectory_risk,
)

POLICY = RiskPolicy()


def _combine(
    risks: list[float], behaviour: Behaviour | None = None, patterns: PatternSignals = NO_PATTERN, turns: int = 10
) -> SignalCombination:
    return combine(
        risks=risks,
        slope=fit_slope(risks),
        behaviour=behaviour or Behaviour(),
        turn_count=turns,
        repeated_topics={},
        patterns=patterns,
        policy=POLICY,
    )


def test_trajectory_of_a_steady_rise() -> None:
    """Five turns that rise by 0.05 give a trajectory of 0.5."""
    slope = fit_slope([0.1, 0.15, 0.2, 0.25, 0.3])

    assert 0.5 == pytest.approx(trajectory_risk(slope, POLICY), abs=1e-12)


def test_trajectory_can_exceed_one_and_is_bounded_only_in_combination() -> None:
    """A rise of 0.2 per turn is 2 by the source formula and 1 where it is combined."""
    slope = fit_slope([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])

    assert pytest.approx((2.0, 1.0)) == (trajectory_risk(slope, POLICY), certain_trajectory_risk(slope, POLICY))


@pytest.mark.parametrize("risks", [[0.0, 0.3, 0.6, 0.9], [0.9, 0.7, 0.5, 0.3, 0.1], []])
def test_no_trajectory_from_few_turns_or_a_fall(risks: list[float]) -> None:
    """Fewer than five scored turns, or falling risk, is no escalation."""
    assert 0.0 == trajectory_risk(fit_slope(risks), POLICY)


def test_noise_is_no_trend() -> None:
    """A slope smaller than its own error adds nothing to the score."""
    slope = fit_slope([0.1, 0.5, 0.0, 0.4, 0.2, 0.3])

    assert (True, 0.0) == (slope.per_turn != 0.0, certain_trajectory_risk(slope, POLICY))


@pytest.mark.parametrize(
    ("repeated", "expected"),
    [({}, 0.0), ({"hack": 2, "weapon": 1, "garden": 9}, 0.3), ({"hack": 7, "exploit": 4, "bypass": 9}, 1.0)],
)
def test_topic_persistence(repeated: dict[str, int], expected: float) -> None:
    """0.1 for each turn on a risky topic, at most 1."""
    assert expected == pytest.approx(topic_persistence_risk(repeated, POLICY))


def test_behavioural_anomaly() -> None:
    """The mean of the three ratios."""
    behaviour = Behaviour(imperative_count=5, topic_changes=2, probing_attempts=2)

    assert pytest.approx(0.3) == behavioural_anomaly_risk(behaviour, 10)


def test_suspicion_score() -> None:
    """0.3 probing, 0.2 hypothetical, 0.5 meta-instruction, per turn; no turn is no division by zero."""
    behaviour = Behaviour(probing_attempts=2, hypothetical_count=1, meta_instruction_count=1)
    actual = [suspicion_score(behaviour, turns, SuspicionWeights()) for turns in (10, 0)]

    assert pytest.approx([0.13, 1.3]) == actual


def test_level_halves_after_its_half_life() -> None:
    """A risk counts half after six scored turns, and the highest decayed one is the level."""
    assert pytest.approx((0.4, 0.45)) == (
        risk_level([0.8, 0, 0, 0, 0, 0, 0], 6.0),
        risk_level([0.8, 0, 0, 0, 0, 0.45], 6.0),
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
    combination = combine(
        risks=[1.0],
        slope=Slope(0.0, 0.0, 1),
        behaviour=Behaviour(),
        turn_count=1,
        repeated_topics={},
        patterns=NO_PATTERN,
        policy=policy,
    )

    assert pytest.approx((1.0, 1.0)) == (combination.score, sum(s.share for s in combination.shares()))
