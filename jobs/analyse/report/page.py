"""The report as one HTML file: it loads nothing, and suits light and dark, wide and narrow screens, and paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from jobs.analyse.report import wording
from jobs.analyse.report.gathering import MiningReport
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
        warnings=list(_warnings(report)),
        made=_made(report),
        spec=_spec,
        cells=table_cells,
        numbers=number_columns,
        rows_shown=ROWS_SHOWN,
        rows_open=_ROWS_OPEN,
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


def _warnings(report: MiningReport) -> Iterator[str]:
    if not report.archive.turns:
        yield "The archive is empty: `turntide demo` or `turntide produce` fill it."
    elif report.is_empty:
        yield "The archive holds nothing of this period: --days, --since and --until say another one."
    for part in report.failed:
        yield f"{part.title} could not be made as a whole: {part.failure}. The rest of the report stands."
    damaged = {day for part in report.parts if part.result for day in part.result.section.days_left_out}
    if damaged:
        days = ", ".join(map(str, sorted(damaged)))
        yield f"Left out, because their files are damaged: {days}. `turntide archive verify` says more."


def _made(report: MiningReport) -> Mapping[str, str]:
    """How the report was made."""
    archive = report.archive
    return {
        "period": f"{report.period.since} to {report.period.until}, UTC",
        "earlier period": f"{report.period.earlier.since} to {report.period.earlier.until}",
        "archive": f"snapshot {archive.snapshot}, committed {archive.committed_at:%Y-%m-%d %H:%M:%S %Z}",
        "rows": f"{wording.counted(archive.turns, 'turn')} in all; Parquet of all tables "
        f"{wording.size(archive.parquet_bytes)}, turns as JSON {wording.size(archive.json_bytes_of_turns)}",
        "rules": f"policy {report.policy_version} ({report.policy_digest})",
        "shown from": f"{report.anonymity.min_sessions} sessions and {report.anonymity.min_users} users on",
        "made": f"{report.made_at:%Y-%m-%d %H:%M:%S} UTC in {wording.rounded(report.seconds)} s",
    }
