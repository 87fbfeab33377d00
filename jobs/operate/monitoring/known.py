"""Every series that rules and panels may ask for, with its labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobs.operate.monitoring.expressions import Labels, asked
from models.metrics import METRICS, Metric, MetricKind
from streams.observe.telemetry import PREFIX

SCRAPED = frozenset({"job", "instance"})
"""What Prometheus adds to every series that it scrapes."""

OF_OTHERS: Mapping[str, Labels] = {
    "up": SCRAPED,
    **{
        f"process_{name}": SCRAPED
        for name in (
            *("cpu_seconds_total", "max_fds", "open_fds", "resident_memory_bytes", "start_time_seconds"),
            "virtual_memory_bytes",
        )
    },
    "ALERTS": frozenset({"alertname", "alertstate", "severity", *SCRAPED}),
}
"""Series of Prometheus itself and of its client in each process."""


def names_of(metric: Metric) -> tuple[str, ...]:
    """What a metric of the catalogue is called in Prometheus; a histogram has three names."""
    name = PREFIX + metric.name
    return (
        tuple(name + end for end in ("_bucket", "_sum", "_count")) if metric.kind is MetricKind.HISTOGRAM else (name,)
    )


def _scraped() -> Iterator[tuple[str, Labels]]:
    for metric in METRICS:
        for name in names_of(metric):
            le = {"le"} if name.endswith("_bucket") else set()
            yield name, SCRAPED.union(metric.labels, le)


SERIES: Mapping[str, Labels] = {**dict(_scraped()), **OF_OTHERS}
"""All of them but what rules record."""

METRIC_NAMED: Mapping[str, Metric] = {name: metric for metric in METRICS for name in names_of(metric)}


def means(expression: str) -> tuple[str, ...]:
    """What the catalogue says of each metric that an expression asks for: its meaning, and what to do."""
    metrics = [METRIC_NAMED[name] for name in asked(expression) if name in METRIC_NAMED]
    return tuple(f"{metric.help} {metric.what_to_do}" for metric in dict.fromkeys(metrics))
