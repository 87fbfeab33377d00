"""Figures of `turntide lab eval escalation` against scikit-learn's, on any scores with any ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from jobs.lab.eval.escalation_scoring import (
    ScoredSession,
    by_source,
    figures,
    pr_auc,
    recall_at,
    roc_auc,
    roc_auc_interval,
)

tied = st.integers(0, 12).map(lambda tenth: tenth / 10)
scores = st.lists(tied | st.floats(0, 1), min_size=1, max_size=60)


def labelled(positive: list[float], negative: list[float]) -> tuple[list[int], list[float]]:
    """As scikit-learn wants them."""
    return [1] * len(positive) + [0] * len(negative), [*positive, *negative]


@given(scores, scores)
def test_areas_are_those_of_scikit_learn(positive: list[float], negative: list[float]) -> None:
    """Ties count half in one, and are taken together in the other."""
    labels, values = labelled(positive, negative)

    assert roc_auc(positive, negative) == pytest.approx(roc_auc_score(labels, values))
    assert pr_auc(positive, negative) == pytest.approx(average_precision_score(labels, values))


@given(scores, scores, st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.3, 1.0]))
def test_recall_at_a_rate_is_the_highest_point_of_the_curve_within_it(
    positive: list[float], negative: list[float], rate: float
) -> None:
    """No threshold of that many false alarms finds more."""
    false_alarms, found, _ = roc_curve(*labelled(positive, negative), drop_intermediate=False)

    assert recall_at(positive, negative, rate) == pytest.approx(found[false_alarms <= rate + 1e-12].max())


def judged(name: str, source: str, score: float, *, escalating: bool, alerted: bool) -> ScoredSession:
    """A session of ten turns that alerted at the fourth, or never."""
    return ScoredSession(name, source, escalating, score, score, 10, 1.0, 4 if alerted else None)


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
