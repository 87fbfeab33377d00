"""Figures of a back-test against counting by hand, and by another way."""

from __future__ import annotations

from datetime import timedelta

import pytest
from scipy.stats import binomtest

from jobs.escalation.backtest.figures import differences, figures_by_app, figures_of, span_of, wilson_interval
from tests.backtest_sessions import judged

SESSIONS = [
    judged("e1", 0.9, escalating=True, alert_at=4, turns=8),
    judged("e2", 0.8, escalating=True, alert_at=3, turns=4, app_id="shop"),
    judged("e3", 0.3, escalating=True),
    judged("b1", 0.6, escalating=False, alert_at=9, day=1),
    judged("b2", 0.2, escalating=False),
    judged("b3", 0.1, escalating=False, app_id="shop"),
    judged("b4", 0.3, escalating=False),
    judged("u1", 0.7, alert_at=2, day=2, turns=0),
]


def test_figures_by_hand() -> None:
    """Unlabelled sessions count in alerts and rates, and in nothing that needs a label."""
    found = figures_of(SESSIONS, timedelta(days=2))

    assert (found.sessions, found.labelled, found.escalating, found.benign) == (8, 7, 3, 4)
    assert (found.alerts, found.alerted, found.detected, found.false_alarms) == (4, 4, 2, 1)
    assert (found.precision, found.recall, found.false_alarm_ratio) == (0.6667, 0.6667, 0.25)
    assert (found.median_delay_turns, found.median_delay_ratio, found.median_first_alert_turn) == (3.5, 0.625, 3.5)
    assert found.alerts_per_day == 2.0


def test_ratios_of_nothing_are_none() -> None:
    """No label, no alert, no time: no figure is made up."""
    found = figures_of([judged("u", 0.1)], None)

    assert found.precision is found.recall is found.false_alarm_ratio is None
    assert found.false_alarm_interval is found.recall_interval is None
    assert found.median_delay_turns is found.median_first_alert_turn is found.alerts_per_day is None


def test_apps_add_up_to_the_whole_and_the_span_is_of_all() -> None:
    """Each session is in one app; the span is from the first turn to the last, nothing for no session."""
    by_app = figures_by_app(SESSIONS, None)

    assert list(by_app) == ["shop", "support"]
    assert sum(each.false_alarms for each in by_app.values()) == figures_of(SESSIONS, None).false_alarms
    assert (by_app["shop"].recall, by_app["support"].recall) == (1.0, 0.5)

    assert span_of(SESSIONS) == timedelta(days=2)
    assert span_of([]) == timedelta(0)


def test_differences_name_turns_under_both_policies() -> None:
    """A session that alerts at the same turn is no difference."""
    other = [
        judged("e1", 0.9, escalating=True, alert_at=5, turns=8),
        judged("e2", 0.8, escalating=True, alert_at=3, turns=4),
        judged("b1", 0.6, escalating=False, day=1),
        judged("b2", 0.2, escalating=False, alert_at=1),
    ]

    assert [(each.session_id, each.turns) for each in differences(SESSIONS, other)] == [
        ("e1", (4, 5)),
        ("b1", (9, None)),
        ("b2", (None, 1)),
    ]


@pytest.mark.parametrize(("hits", "of"), [(0, 10), (3, 7), (42, 841), (10, 10)])
def test_the_interval_is_wilsons(hits: int, of: int) -> None:
    """As scipy has it."""
    expected = binomtest(hits, of).proportion_ci(0.95, method="wilson")

    assert wilson_interval(hits, of) == pytest.approx((expected.low, expected.high), abs=1e-4)
