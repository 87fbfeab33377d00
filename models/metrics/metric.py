"""The type of a metric. All there are: `models.metrics`."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class MetricKind(StrEnum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(Struct, frozen=True, kw_only=True):
    """One metric.

    Attributes:
        unit: What one means: `turns`, `seconds`, `bytes`, …
        what_to_do: What its reader should do when it stands out.
        buckets: Upper bounds of a histogram, in `unit`.
    """

    name: str
    kind: MetricKind
    unit: str
    help: str
    what_to_do: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def counter(name: str, unit: str, *labels: str, means: str, do: str) -> Metric:
    """It only rises."""
    return Metric(name=name, kind=MetricKind.COUNTER, unit=unit, help=means, what_to_do=do, labels=labels)


def gauge(name: str, unit: str, *labels: str, means: str, do: str) -> Metric:
    """It is what it is now."""
    return Metric(name=name, kind=MetricKind.GAUGE, unit=unit, help=means, what_to_do=do, labels=labels)


def histogram(name: str, unit: str, *labels: str, means: str, do: str, buckets: tuple[float, ...]) -> Metric:
    """How its values are spread."""
    return Metric(
        name=name, kind=MetricKind.HISTOGRAM, unit=unit, help=means, what_to_do=do, labels=labels, buckets=buckets
    )
