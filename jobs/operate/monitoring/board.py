"""Dashboards as data. What makes Grafana's JSON of them: `jobs.operate.monitoring.grafana`."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from streams.observe.telemetry import PREFIX

WINDOW = "$__rate_interval"
"""Grafana's own: four scrapes, or more where the picture is coarse."""
_WIDTH = 8
"""Of a panel that says nothing else: three stand beside each other."""


class Shows(StrEnum):
    """How a panel shows its values."""

    LINES = "lines"
    NUMBER = "number"


class Query(NamedTuple):
    """One expression, and what each of its series is called (`{{label}}`)."""

    expression: str
    legend: str = ""


class Panel(Struct, frozen=True, kw_only=True):
    """One picture.

    Attributes:
        unit: As Grafana calls it: `s`, `bytes`, `percentunit`, `ops`, …
        alerts: Alerts of the rules that this panel explains; each uses a metric that is shown here.
        width: Of 24 columns.
    """

    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    alerts: tuple[str, ...] = ()
    shows: Shows = Shows.LINES
    width: int = _WIDTH


class PanelRow(Struct, frozen=True):
    """Panels that belong together."""

    title: str
    panels: tuple[Panel, ...]


class MonitoringBoard(Struct, frozen=True, kw_only=True):
    """One dashboard; its file is `<uid>.json`.

    Attributes:
        of_one_role: Whether role and worker are chosen above it, as `$job` and `$instance`.
    """

    uid: str
    title: str
    description: str
    rows: tuple[PanelRow, ...]
    of_one_role: bool = False

    def panels(self) -> tuple[Panel, ...]:
        """All of them, from top to bottom."""
        return tuple(panel for row in self.rows for panel in row.panels)


def rate(metric: str, *by: str, where: str = "") -> str:
    """How fast a counter rises each second, summed by labels.

    >>> rate("turns_folded_total", "job")
    'sum by (job) (rate(turntide_turns_folded_total[$__rate_interval]))'
    """
    return f"sum by ({', '.join(by)}) (rate({series(metric, where)}[{WINDOW}]))"


def per_second(
    title: str,
    metric: str,
    *by: str,
    where: str = "",
    legend: str = "",
    alerts: tuple[str, ...] = (),
    width: int = _WIDTH,
) -> Panel:
    """How fast a counter rises, a line for each value of its labels; `legend` where their values do not name it.

    >>> per_second("Deliveries", "sink_deliveries_total", "sink", "result").queries[0].legend
    '{{sink}} {{result}}'
    """
    query = Query(rate(metric, *by, where=where), legend or " ".join(f"{{{{{label}}}}}" for label in by))
    return Panel(title=f"{title}, a second", queries=(query,), unit="ops", alerts=alerts, width=width)


def total(metric: str, *by: str, where: str = "") -> str:
    """Sum of a gauge by labels."""
    return f"sum by ({', '.join(by)}) ({series(metric, where)})"


def most(metric: str, *by: str, where: str = "") -> str:
    """Largest value of a gauge by labels."""
    return f"max by ({', '.join(by)}) ({series(metric, where)})"


def quantile(share: float, metric: str, *by: str, where: str = "") -> str:
    """Quantile of a histogram by labels, from its buckets."""
    buckets = f"{series(f'{metric}_bucket', where)}[{WINDOW}]"
    return f"histogram_quantile({share}, sum by ({', '.join((*by, 'le'))}) (rate({buckets})))"


def series(metric: str, where: str = "") -> str:
    """A metric of the catalogue as Prometheus has it, with matchers.

    >>> series("ready", 'job="$job"')
    'turntide_ready{job="$job"}'
    """
    return f"{PREFIX}{metric}{{{where}}}" if where else PREFIX + metric
