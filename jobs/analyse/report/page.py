"""The report as one HTML file: it loads nothing, and suits light and dark, wide and narrow screens, and paper."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from jobs.analyse.report import wording
from jobs.analyse.report.gathering import NAMES_ALERTS, MiningReport
from jobs.shared.pictures import Drawn, script, write_whole
from streams.http import pages

ROWS_SHOWN = 30
_ROWS_OPEN = 12
"""A longer table is folded: its picture says more."""
_PICTURES_AT_THE_TOP = 2
"""Of the overview, at the top of the page."""

_WRITTEN: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "yes" if value else "no",
    int: "{:,}".format,
    datetime: "{:%Y-%m-%d %H:%M}".format,
    list: lambda value: ", ".join(map(str, value)),
    dict: lambda value: msgspec.json.encode(value, enc_hook=str).decode(),
}
"""Cells by their kind, the first that fits; all others as they are."""


def render(report: MiningReport) -> str:
    """The page."""
    return pages.render(
        "jobs/analyse/report/page.html.j2",
        scripts=(script(), pages.source("jobs/analyse/report/page.js")),
        report=report,
        wording=wording,
        spec=_spec,
        cells=table_cells,
        numbers=number_columns,
        rows_shown=ROWS_SHOWN,
        rows_open=_ROWS_OPEN,
        names_alerts=NAMES_ALERTS,
        pictures_at_the_top=_PICTURES_AT_THE_TOP,
    )


def write_page(report: MiningReport, place: Path) -> None:
    """Write the page.

    Raises:
        OSError: The place cannot be written to.
    """
    write_whole(place, render(report).encode())


def table_cells(frame: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Headings and the first rows; a column's name tells its unit."""
    rows = frame.head(ROWS_SHOWN).rows()
    return [_heading(name) for name in frame.columns], [list(map(_cell, frame.columns, row)) for row in rows]


def number_columns(frame: pl.DataFrame) -> list[int]:
    """Places of the columns that hold numbers or times."""
    return [place for place, kind in enumerate(frame.dtypes) if kind.is_numeric() or kind.is_temporal()]


def _heading(column: str) -> str:
    unit = "" if wording.is_share(column) else wording.unit(column)
    return f"{wording.label(column)}, {unit}" if unit else wording.label(column)


def _cell(column: str, value: Any) -> str:
    if value is None:
        return wording.NOTHING
    if isinstance(value, float):
        return f"{value:.1%}" if wording.is_share(column) else wording.rounded(value)
    written = next((write for kind, write in _WRITTEN.items() if isinstance(value, kind)), str)
    return written(value)


def _spec(picture: Drawn) -> str:
    """A chart as JSON that can stand in a script."""
    return msgspec.json.encode(picture.for_page(), enc_hook=str).decode().replace("<", "\\u003c")
