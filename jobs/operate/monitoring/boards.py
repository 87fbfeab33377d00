"""Dashboards: their data (`boards.toml`), and Grafana's JSON of it by Grafana's own library (extra `monitoring`)."""

from importlib.resources import files
from itertools import count
from typing import Literal, NamedTuple

import msgspec
from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    VariableRefresh,
)
from msgspec import Struct

from jobs.operate.monitoring.expressions import means
from jobs.operate.monitoring.rules import path_of
from models.errors import ConfigurationError

_COLUMNS = 24
_HEIGHT = 8
_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_PANELS = timeseries.Panel | stat.Panel


class Query(NamedTuple):
    """One expression, and what each of its series is called (`{{label}}`)."""

    expression: str
    legend: str = ""


class Panel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    shows: Literal["lines", "number"] = "lines"
    width: int = 8


class PanelRow(Struct, frozen=True, forbid_unknown_fields=True):
    """Panels that belong together."""

    title: str
    panels: tuple[Panel, ...]


class MonitoringBoard(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
        """Panels of all rows, from top to bottom."""
        return tuple(panel for row in self.rows for panel in row.panels)


class _BoardsFile(Struct):
    boards: tuple[MonitoringBoard, ...]


BOARDS = msgspec.toml.decode(files(__package__).joinpath("boards.toml").read_bytes(), type=_BoardsFile).boards
"""Every dashboard."""


def render(board: MonitoringBoard, folder: str) -> str:
    """The JSON of a dashboard.

    Raises:
        ConfigurationError: Panels of a row do not fill whole lines of 24 columns.
    """
    made = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags(["turntide"])
        .refresh("30s")
        .time("now-6h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("Turntide")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["turntide"])
            .keep_time(keep_time=True)
        )
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    if board.of_one_role:
        made = made.with_variable(_choice("job", "Role", 'label_values(up{job=~"turntide-.+"}, job)'))
        made = made.with_variable(
            _choice("instance", "Workers", 'label_values(up{job="$job"}, instance)')
            .multi(multi=True)
            .include_all(include_all=True)
            .all_value(".*")
        )
    numbers = count(1)
    for row in board.rows:
        made = made.with_row(dashboard.Row(row.title).id(next(numbers)))
        left = 0
        for panel in row.panels:
            if left + panel.width > _COLUMNS:
                raise ConfigurationError(f"{board.uid}: the panel {panel.title!r} does not fit its line")
            made = made.with_panel(_panel(panel, next(numbers), folder))
            left = (left + panel.width) % _COLUMNS
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def _choice(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .query(query)
        .datasource(_SOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    )


def _panel(panel: Panel, number: int, folder: str) -> _PANELS:
    made: _PANELS = timeseries.Panel() if panel.shows == "lines" else stat.Panel()
    made = (
        made.id(number)
        .title(panel.title)
        .description(_description(panel, folder))
        .unit(panel.unit)
        .height(_HEIGHT)
        .span(panel.width)
        .datasource(_SOURCE)
    )
    if panel.unit == "percentunit" or panel.shows == "lines":
        made = made.min(0)
    for letter, query in zip("ABCDEFGH", panel.queries, strict=False):
        made = made.with_target(
            prometheus.Dataquery().expr(query.expression).legend_format(query.legend).ref_id(letter).datasource(_SOURCE)
        )
    return made


def _description(panel: Panel, folder: str) -> str:
    """What the catalogue says of the metrics shown, and where to read on when it fires."""
    said = [text for query in panel.queries for text in means(query.expression)]
    runbooks = [f"{alert}: {path_of(alert, folder)}" for alert in panel.alerts]
    return "\n\n".join(dict.fromkeys([*said, *runbooks]))
