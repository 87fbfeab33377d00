"""Figures and curves of a back-test against counting, by hand, and by another way."""

import random
from collections.abc import Callable
from datetime import timedelta
from operator import attrgetter

import pytest

from jobs.escalation.backtest import figures
from jobs.escalation.backtest.judging import JudgedSession
from tests.support.backtest_sessions import judged


def drawn(seed: int, digits: int) -> list[JudgedSession]:
    """Eighty sessions of both kinds, with scores of so many digits: few digits make many equal."""
    rng = random.Random(seed)
    return [
        judged(
            f"s{n}", round(rng.random(), digits), escalating=rng.random() < 0.4, first_risk=round(rng.random(), digits)
        )
        for n in range(80)
    ]


def test_the_sweep_is_that_of_counting_at_every_threshold() -> None:
    """Equal scores of both kinds move both ratios at once."""
    many = drawn(3, digits=1)
    benign = [each.highest for each in many if not each.escalating]
    escalating = [each.highest for each in many if each.escalating]

    found = [(point.threshold, point.false_alarm_ratio, point.recall) for point in figures.sweep(many)]

    assert found == [
        (t, sum(h >= t for h in benign) / len(benign), sum(h >= t for h in escalating) / len(escalating))
        for t in sorted({each.highest for each in many}, reverse=True)
    ]


def test_of_nothing_no_figure_is_made_up() -> None:
    """Curve and reliability need sessions of both kinds; without label, alert or time there is no ratio."""
    found = figures.figures_of([judged("u", 0.1)], None)

    assert figures.sweep([judged("b", 0.1, escalating=False), judged("u", 0.9)]) == []
    assert figures.reliability_of([judged("e", 0.9, escalating=True)], 0.1) == []
    assert {found.precision, found.recall, found.false_alarm_ratio, found.alerts_per_day} == {None}
    assert {found.false_alarm_interval, found.recall_interval, found.median_delay_turns} == {None}


@pytest.mark.parametrize("digits", [1, 4])
def test_the_area_is_the_share_of_pairs_in_the_right_order(digits: int) -> None:
    """Equal scores count half; of the highest scores, and of the first turn alone."""
    many = drawn(5, digits)

    assert figures.area_under(figures.sweep(many)) == pytest.approx(
        pairs_in_order(many, attrgetter("highest")), abs=1e-4
    )
    assert figures.area_under(figures.sweep(many, attrgetter("first_risk"))) == pytest.approx(
        pairs_in_order(many, attrgetter("first_risk")), abs=1e-4
    )
    assert figures.area_under([]) is None


def pairs_in_order(many: list[JudgedSession], score: Callable[[JudgedSession], float]) -> float:
    """Of all pairs of an escalating and a benign session those in which the former scores higher."""
    pairs = [(score(one), score(other)) for one in many if one.escalating for other in many if not other.escalating]
    return sum((one > other) + 0.5 * (one == other) for one, other in pairs) / len(pairs)


def test_each_app_is_held_against_all_benign_sessions() -> None:
    """An app of benign sessions alone has no area."""
    sessions = [
        judged("e1", 0.6, escalating=True, app_id="loud"),
        judged("e2", 0.2, escalating=True, app_id="sly"),
        judged("b1", 0.5, escalating=False, app_id="loud"),
        judged("b2", 0.1, escalating=False, app_id="calm"),
    ]

    assert figures.areas_by_app(sessions) == {"loud": 1.0, "sly": 0.5}
    assert figures.areas_by_app([each for each in sessions if each.escalating]) == {}


def test_delays_fall_into_tenths_and_false_alarms_into_none() -> None:
    """An alert at the end of a tenth belongs to it."""
    sessions = [
        judged("first", 0.9, escalating=True, alert_at=1, turns=10),
        judged("half", 0.9, escalating=True, alert_at=5, turns=10),
        judged("only", 0.9, escalating=True, alert_at=1, turns=1),
        judged("missed", 0.1, escalating=True),
        judged("false", 0.9, escalating=False, alert_at=1),
    ]

    assert figures.delays_of(sessions) == [1, 0, 0, 0, 1, 0, 0, 0, 0, 1]


def test_reliability_is_at_the_base_rate_that_is_assumed() -> None:
    """Half of the data escalate; where one in ten does, a tenth that is half and half is one in ten as well."""
    sessions = [judged(f"{kind}{n}", 0.32 + 0.04 * n, escalating=kind) for kind in (True, False) for n in range(2)]
    sessions += [judged("sure", 1.0, escalating=True), judged("calm", 0.0, escalating=False), judged("nobody's", 0.5)]

    found = figures.reliability_of(sessions, base_rate=0.1)

    assert [(each.sessions, each.predicted, each.observed) for each in found] == [
        (1, 0.0, 0.0),
        (4, 0.34, 0.1),
        (1, 1.0, 1.0),
    ]


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
    """Unlabelled sessions count in alerts and rates, and in nothing that needs a label; apps add up to the whole."""
    found, by_app = figures.figures_of(SESSIONS, figures.span_of(SESSIONS)), figures.figures_by_app(SESSIONS, None)

    assert (figures.span_of(SESSIONS), figures.span_of([])) == (timedelta(days=2), timedelta(0))
    assert (found.sessions, found.labelled, found.escalating, found.benign) == (8, 7, 3, 4)
    assert (found.alerts, found.alerted, found.detected, found.false_alarms) == (4, 4, 2, 1)
    assert (found.precision, found.recall, found.false_alarm_ratio) == (0.6667, 0.6667, 0.25)
    assert (found.median_delay_turns, found.median_delay_ratio, found.median_first_alert_turn) == (3.5, 0.625, 3.5)
    assert found.alerts_per_day == 2.0
    assert list(by_app) == ["shop", "support"]
    assert sum(each.false_alarms for each in by_app.values()) == found.false_alarms
    assert (by_app["shop"].recall, by_app["support"].recall) == (1.0, 0.5)


def test_differences_name_turns_under_both_policies() -> None:
    """A session that alerts at the same turn is no difference."""
    other = [
        judged("e1", 0.9, escalating=True, alert_at=5, turns=8),
        judged("e2", 0.8, escalating=True, alert_at=3, turns=4),
        judged("b1", 0.6, escalating=False, day=1),
        judged("b2", 0.2, escalating=False, alert_at=1),
    ]

    assert [(each.session_id, each.turns) for each in figures.differences(SESSIONS, other)] == [
        ("e1", (4, 5)),
        ("b1", (9, None)),
        ("b2", (None, 1)),
    ]
