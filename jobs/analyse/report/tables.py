"""Tables of the report by great-tables; their look is the page's style sheet, once for all."""

from __future__ import annotations

import re

import great_tables as gt
import polars as pl

from jobs.analyse.report.wording import NOTHING, is_share, label, rounded, unit

ROWS_SHOWN = 30
_OWN_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_OWN_FRAME = re.compile(r'^\s*<div id="[^"]*"[^>]*>')


def table_html(name: str, frame: pl.DataFrame) -> str:
    """The first rows as HTML; great-tables escapes what is in them.

    Args:
        name: Unique on the page.
        frame: The rows; a column's name tells its unit.
    """
    shown = frame.head(ROWS_SHOWN).select(_plain(frame, column) for column in frame.columns)
    table = gt.GT(shown, id=name).cols_label({column: _heading(column) for column in shown.columns})
    times = [column for column, kind in frame.schema.items() if kind.is_temporal()]
    table = table.cols_align("left", columns=times)
    table = table.tab_style(gt.style.css("white-space: nowrap"), gt.loc.body(columns=times)) if times else table
    for column, kind in shown.schema.items():
        if is_share(column):
            table = table.fmt_percent(column, decimals=1)
        elif kind.is_integer():
            table = table.fmt_integer(column)
        elif kind.is_float():
            table = table.fmt(rounded, columns=column)
    html = table.sub_missing(missing_text=NOTHING).as_raw_html()
    return _OWN_FRAME.sub("<div>", _OWN_STYLE.sub("", html), count=1)


def _heading(column: str) -> str:
    return f"{label(column)}, {unit(column)}" if unit(column) and not is_share(column) else label(column)


def _plain(frame: pl.DataFrame, column: str) -> pl.Expr:
    """Lists as text, times to the minute; structs as JSON."""
    kind, values = frame.schema[column], pl.col(column)
    if isinstance(kind, pl.List):
        return values.list.eval(pl.element().cast(pl.String)).list.join(", ")
    if kind == pl.Boolean:
        return pl.when(values).then(pl.lit("yes")).when(~values).then(pl.lit("no")).alias(column)
    if isinstance(kind, pl.Datetime):
        return values.dt.strftime("%Y-%m-%d %H:%M")
    if isinstance(kind, pl.Struct):
        return values.struct.json_encode()
    return values
