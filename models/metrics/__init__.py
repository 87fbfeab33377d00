"""Metrics of all roles, as data: what each counts, what it means and what to do about it.

The catalogue is `catalogue.toml`. Names carry their unit and no prefix; the shell exports them as `turntide_<name>`.
Labels come from a closed list: an id of a session, user or app is never one, since each value is a time series for
ever (and ids are personal data). `deploy/metrics.md` is made of this (`turntide ops metrics`). CPU, memory, open files
and the start time come beside these from Prometheus' client (`process_…`).
"""

import tomllib
from enum import StrEnum
from importlib.resources import files

import msgspec
from msgspec import Struct

LABELS = frozenset(
    {
        *("stage", "partition", "topic", "sink", "service", "route"),
        *("reason", "severity", "cause", "mode", "result", "status", "direction", "version", "kind", "language"),
    }
)
"""The only label names there are; each takes few values."""
STAGES = ("decode", "embed", "score", "fold", "outputs", "state")
"""Values of the label `stage`: where a micro-batch of a folding role spends its time. Other roles have their own:
`answer` (enrich and judge), `upsert` (index), `land` (archive) and `deliver` (notify)."""


class MetricKind(StrEnum):
    """How a metric behaves: it only rises, is what it is now, or shows how its values are spread."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


_CATALOGUE = tomllib.loads(files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8"))
PARTS: dict[str, tuple[Metric, ...]] = {
    part: tuple(msgspec.convert({"name": name, **row}, Metric) for name, row in rows.items())
    for part, rows in _CATALOGUE.items()
}
"""All of them, as they are shown."""

METRICS: tuple[Metric, ...] = tuple(metric for part in PARTS.values() for metric in part)
METRIC_OF: dict[str, Metric] = {metric.name: metric for metric in METRICS}
"""By name."""
