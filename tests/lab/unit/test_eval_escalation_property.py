"""Figures of `turntide lab eval escalation` on any scores with any ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.lab.eval.escalation_scoring import (
    FALSE_ALARM_RATES,
    ScoredSession,
    by_source,
    calibration_error,
    figures,
    roc_auc_interval,
)

tied = st.integers(0, 12).map(lambda tenth: tenth / 10)
scores = st.lists(tied | st.floats(0, 1), min_size=1, max_size=60)


def judged(name: str, source: str, score: float, *, escalating: bool, alerted: bool) -> ScoredSession:
    """A session of ten turns that alerted at the fourth, or never."""
    return ScoredSession(name, source, escalating, score, score, 10, 1.0, 4 if alerted else None)


def test_figures_are_those_counted_by_hand() -> None:
    """A tie counts half, and the threshold of a rate is one that no more benign sessions reach."""
    scores = {True: [0.9, 0.55, 0.5], False: [0.6, 0.5, *[0.1] * 18]}
    found = [
        judged("s", "a", score, escalating=label, alerted=False) for label, side in scores.items() for score in side
    ]
    overall = figures(found)

    assert overall["roc_auc"] == pytest.approx((20 + 19 + 18.5) / 60)
    assert overall["pr_auc"] == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)
    assert [overall[f"recall_at_fpr_{rate}"] for rate in FALSE_ALARM_RATES] == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("attacks", "benign", "expected"),
    [
        (
            [0.9, 0.5],
            [0.1, 0.3],
            0.2 * (0.1 + 0.5) + 0.3 * (0.1 + 0.3),
        ),  # at a base rate of 0.4
        ([0.5, 0.5], [0.5], 0.0),  # says nothing, and is right about that
        ([1.0, 1.0], [0.0], 0.0),  # never wrong, whatever share escalates
        ([0.9], [], None),
    ],
)
def test_the_calibration_error_is_that_counted_by_hand(
    attacks: list[float], benign: list[float], expected: float | None
) -> None:
    """At the base rate at which the probabilities are right on average; without both labels there is none."""
    found = [judged("p", "a", score, escalating=True, alerted=False) for score in attacks]
    found += [judged("n", "b", score, escalating=False, alerted=False) for score in benign]

    assert calibration_error(found) == (None if expected is None else pytest.approx(expected))


sessions = st.lists(st.tuples(st.sampled_from("abc"), tied, st.booleans(), st.booleans()), max_size=30).map(
    lambda rows: [
        judged(f"s-{n}", source, score, escalating=escalating, alerted=alerted)
        for n, (source, score, escalating, alerted) in enumerate(rows)
    ]
)


@given(sessions)
def test_sources_add_up_to_the_whole(found: list[ScoredSession]) -> None:
    """Sessions, detections and false alarms; what needs a label that is not there is None, never zero."""
    overall, sources = figures(found), by_source(found)
    rows = sources.values()
    attacks = [one for one in found if one.escalating]

    assert sum(int(str(row["dialogues"])) for row in rows) == overall["dialogues"] == len(found)
    assert (overall["roc_auc"] is None) == (len(attacks) in {0, len(found)})
    assert (overall["recall"] is None) == (not attacks)
    for name, row in sources.items():
        here = [one for one in found if one.source == name]
        benign = [one for one in here if not one.escalating]
        false_alarms = sum(one.alerted_after is not None for one in benign)
        assert row["fpr"] == (pytest.approx(false_alarms / len(benign)) if benign else None)
        assert (row["recall"] is None) == (len(benign) == len(here))


@given(scores, scores, st.integers(0, 5))
def test_the_interval_is_drawn_by_its_seed(positive: list[float], negative: list[float], seed: int) -> None:
    """The same seed, the same bounds; it lies within 0-1 and is ordered."""
    found = [judged("p", "a", score, escalating=True, alerted=False) for score in positive]
    found += [judged("n", "b", score, escalating=False, alerted=False) for score in negative]
    interval = roc_auc_interval(found, seed)

    assert interval is not None
    assert 0.0 <= interval[0] <= interval[1] <= 1.0
    assert interval == roc_auc_interval(found, seed)
    assert roc_auc_interval(found[: len(positive)], seed) is None


def test_the_interval_holds_what_it_should() -> None:
    """Of many draws of one kind, nearly all intervals hold the true value."""
    drawn = np.random.default_rng(7)
    held = 0
    for seed in range(40):
        found = [judged("p", "a", float(s), escalating=True, alerted=False) for s in drawn.normal(1, 1, 80)]
        found += [judged("n", "b", float(s), escalating=False, alerted=False) for s in drawn.normal(0, 1, 80)]
        low, high = roc_auc_interval(found, seed) or (0.0, 0.0)
        held += low <= 0.7602 <= high  # Φ(1/√2)

    assert held >= 34
