"""The metric catalogue: complete, unambiguous, and without anybody's id."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.operate.metrics import as_markdown
from models.metrics import LABELS, METRICS, Metric, MetricKind

ONE_BY_ONE = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)


def test_no_label_can_hold_an_id() -> None:
    """Each id would be a time series for ever, and ids are personal data."""
    forbidden = ("session", "user", "app", "project", "turn", "alert", "key", "id", "content")

    assert [label for label in LABELS if any(word in label for word in forbidden)] == []


@ONE_BY_ONE
def test_labels_come_from_the_closed_list(metric: Metric) -> None:
    """A new label name is a decision, taken in one place."""
    assert set(metric.labels) <= LABELS


@ONE_BY_ONE
def test_every_metric_says_what_it_means_and_what_to_do(metric: Metric) -> None:
    """Whoever is paged at night reads whole sentences."""
    assert metric.help.endswith(".")
    assert metric.what_to_do.endswith(".")
    assert metric.unit


@ONE_BY_ONE
def test_names_follow_prometheus(metric: Metric) -> None:
    """Counters end in `_total`, others do not; seconds and bytes stand in the name."""
    assert metric.name.endswith("_total") is (metric.kind is MetricKind.COUNTER)
    if metric.unit in ("seconds", "bytes"):
        assert metric.unit in metric.name


@ONE_BY_ONE
def test_histograms_alone_have_buckets(metric: Metric) -> None:
    """Ascending bounds, so that each observation has one bucket."""
    assert bool(metric.buckets) is (metric.kind is MetricKind.HISTOGRAM)
    assert sorted(set(metric.buckets)) == list(metric.buckets)


def test_the_reference_is_of_this_catalogue() -> None:
    """Mended by `turntide ops metrics --output markdown > deploy/metrics.md`."""
    written = Path(__file__).parents[2] / "deploy" / "metrics.md"

    assert as_markdown() == written.read_text(encoding="utf-8")
