"""Signals A, B and C, suspicion and their combination, with the source's numbers; event-time windows."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import linregress

from models.policy import Policy, RiskPolicy, SuspicionWeights, WindowShape
from models.risk import signals
from models.risk.signals import NO_PATTERN, PatternSignals
from models.risk.windows import ClosedWindow, Windows, WindowState
from tests.support.fields import assert_fields

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


@pytest.mark.behaviour("risk-14")
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


@pytest.mark.behaviour("risk-15")
@pytest.mark.parametrize(
    ("repeated", "expected"),
    [({}, 0.0), ({"hack": 2, "weapon": 1, "garden": 9}, 0.3), ({"hack": 7, "exploit": 4, "bypass": 9}, 1.0)],
)
def test_topic_persistence(repeated: dict[str, int], expected: float) -> None:
    """0.1 for each turn on a risky topic, at most 1."""
    assert expected == pytest.approx(signals.topic_persistence_risk(repeated, POLICY))


@pytest.mark.behaviour("risk-16")
def test_behavioural_anomaly() -> None:
    """The mean of the three ratios."""
    behaviour = signals.Behaviour(imperative_count=5, topic_changes=2, probing_attempts=2)

    assert pytest.approx(0.3) == signals.behavioural_anomaly_risk(behaviour, 10)


@pytest.mark.behaviour("risk-13")
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


def test_score_is_the_noisy_or_of_weighted_signals() -> None:
    """Two signals combine as the chance that not both are wrong."""
    combination = _combine([0.5], patterns=PatternSignals(repeated_probing=1.0))
    weights = Policy().risk.weights

    assert pytest.approx(1 - (1 - weights.level * 0.5) * (1 - weights.repeated_probing)) == combination.score


def test_shares_name_the_cause() -> None:
    """The signal that makes the score has nearly all of it; of weight and value 1 the score is almost 1, and finite."""
    combination = _combine([0.1] * 5, patterns=PatternSignals(topic_cycling=1.0))
    shares = {signal.name: signal.share for signal in combination.shares()}

    assert "topic_cycling" == max(shares, key=lambda name: shares[name])
    assert pytest.approx(1.0) == sum(shares.values())
    full = _combine([1.0], policy=RiskPolicy(weights=type(POLICY.weights)(level=1.0)))
    assert pytest.approx((1.0, 1.0)) == (full.score, sum(signal.share for signal in full.shares()))


@pytest.mark.behaviour("risk-14", "card-03", "card-09")
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


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SLIDING = WindowShape()
TUMBLING = WindowShape(length=timedelta(minutes=5), slide=timedelta(minutes=5))


def at(minutes: int, seconds: int = 0) -> datetime:
    """A time after noon."""
    return NOON + timedelta(minutes=minutes, seconds=seconds)


def spans(closed: list[ClosedWindow]) -> list[tuple[int, int, int]]:
    """Start and end in minutes after noon, and turns."""
    minute = timedelta(minutes=1)
    return [((w.start - NOON) // minute, (w.end - NOON) // minute, w.counts.turns) for w in closed]


@pytest.mark.behaviour("card-03")
@pytest.mark.parametrize(
    ("shape", "turns", "watermark", "expected"),
    [
        (TUMBLING, [(at(1), at(1)), (at(4, 59), at(4, 59))], at(5, 29), []),
        (TUMBLING, [(at(1), at(1)), (at(4, 59), at(4, 59))], at(5, 30), [(0, 5, 2)]),
        (TUMBLING, [(at(4), at(4)), (at(4, 30), at(5, 29))], at(6), [(0, 5, 2)]),
        (SLIDING, [(at(10), at(10))], at(30), [(first, first + 5, 1) for first in range(6, 11)]),
    ],
    ids=["within the grace", "after it", "out of order within it", "sliding ones overlap"],
)
def test_what_the_watermark_closes(
    shape: WindowShape,
    turns: list[tuple[datetime, datetime]],
    watermark: datetime,
    expected: list[tuple[int, int, int]],
) -> None:
    """A window stays open until the watermark reaches its end and the grace; a turn is in each that covers it."""
    windows = Windows(shape, WindowState(), NOON)
    for time, arrival in turns:
        windows.observe(time, arrival, None)

    assert expected == spans(windows.close(watermark))


def test_counts_of_a_window() -> None:
    """Risk sums count scored turns only; the rate is per minute of the window."""
    windows = Windows(TUMBLING, WindowState(), NOON)
    for second, risk in ((0, 0.25), (10, 0.75), (20, None)):
        windows.observe(at(0, second), at(0, second), risk, alerts=second == 10)
    (closed,) = windows.close(at(60))

    assert (3, 2, 1.0, 0.75, 1, 0) == msgspec.structs.astuple(closed.counts)
    assert 0.6 == pytest.approx(closed.turns_per_minute)


def test_late_turn_shows_in_the_window_of_its_arrival() -> None:
    """Beyond the grace it is no turn of its window, and counted as late where the watermark stands."""
    windows = Windows(TUMBLING, WindowState(), NOON)
    windows.observe(at(4), at(4), None)
    closed = windows.close(at(6))
    windows.observe(at(4, 30), at(6), 0.9)
    (after,) = windows.close(at(60))

    assert [(0, 5, 1)] == spans(closed)
    assert_fields(after.counts, turns=0, late_turns=1, risk_sum=0.0)
    assert 5 == (after.start - NOON) // timedelta(minutes=1)


def test_flush_gives_what_is_open_and_goes_on() -> None:
    """A key that ends shows its windows as they stand; one that comes back completes them."""
    windows = Windows(TUMBLING, WindowState(), NOON)
    windows.observe(at(1), at(1), None)
    flushed = windows.flush()
    windows.observe(at(2), at(2), None)

    assert ([(0, 5, 1)], [(0, 5, 2)]) == (spans(flushed), spans(windows.close(at(6))))


def test_next_close_is_when_the_first_window_closes() -> None:
    """One microsecond before nothing closes, at it something does."""
    windows = Windows(SLIDING, WindowState(), NOON)
    windows.observe(at(10, 20), at(10, 20), None)
    due = windows.next_close()
    assert due is not None

    assert ([], [(6, 11, 1)]) == (windows.close(due - timedelta(microseconds=1)), spans(windows.close(due)))


SLIDES = (timedelta(minutes=1), timedelta(minutes=5), timedelta(seconds=30), timedelta(hours=2))


@pytest.mark.parametrize("before", SLIDES)
@pytest.mark.parametrize("after", SLIDES)
@pytest.mark.parametrize("is_named", [True, False])
def test_another_slide_numbers_open_panes_anew(before: timedelta, after: timedelta, is_named: bool) -> None:
    """What is open stays where it is in time and closes there; what closed stays closed, and nothing is late."""
    state = WindowState()
    windows = Windows(WindowShape(length=before, slide=before, grace=timedelta(0)), state, at(0))
    windows.observe(at(1), at(1), 0.5)
    windows.observe(at(125), at(125), None)
    windows.close(at(125))
    if not is_named:  # as releases up to 0.2.0 stored it
        if before not in {timedelta(minutes=1), after}:
            return
        state.closed = state.closed[0] if isinstance(state.closed, tuple) else state.closed
    again = Windows(WindowShape(length=after, slide=after, grace=timedelta(0)), state, at(125))
    again.observe(at(126), at(126), None)
    due = again.next_close()
    assert due is not None
    closed = again.close(at(600))

    assert at(120) <= due <= at(240)
    assert sum(window.counts.turns for window in closed) == 2
    assert all(at(120) <= window.start < window.end <= at(240) for window in closed)
    assert [window.counts.late_turns for window in closed] == [0] * len(closed)
