"""Small parts of the page: cards of figures, findings with their evidence, how the report was made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

import great_tables as gt
import polars as pl

from jobs.analyse.mining.job import Figure
from jobs.analyse.mining.results import ShownFinding
from jobs.analyse.report import wording
from jobs.analyse.report.gathering import ArchiveFacts, MiningReport, Part
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


HEADLINE = (
    "sessions",
    "users",
    "turns",
    "at_risk_ratio",
    "alerting_sessions",
    "alerts_per_1000_sessions",
    "label_precision_ratio",
    "tokens_saved",
    "dead_letters",
)
"""Figures of the overview that stand at the top, on the page and on the card for chat."""


def headline_figures(part: Part | None) -> list[Figure]:
    """Those of the overview that stand at the top."""
    figures = [] if part is None or part.result is None else part.result.section.figures
    return [figure for name in HEADLINE for figure in figures if figure.name == name]


def headline_cards(part: Part | None, archive: ArchiveFacts) -> str:
    """The largest numbers, and what a turn costs in the archive."""
    shown = "" if part is None else "".join(_card(figure, part, meaning="") for figure in headline_figures(part))
    if (per_turn := archive.parquet_bytes_per_turn) is not None:
        shown += f"<div><dt>archive per turn</dt><dd>{escape(wording.size(per_turn))}"
        shown += '<small class="faint">all tables, whole archive</small></dd></div>'
    return f'<dl class="cards large">{shown}</dl>'


def cards(part: Part) -> str:
    """All figures of a section with their change and meaning."""
    figures = [] if part.result is None else part.result.section.figures
    shown = "".join(_card(figure, part, meaning=figure.meaning) for figure in figures)
    return f'<dl class="cards">{shown}</dl>' if shown else ""


def _card(figure: Figure, part: Part, *, meaning: str) -> str:
    before = part.before(figure)
    change = wording.change(figure, before)
    said = ""
    if change.text:
        shade = {True: "good", False: "bad", None: "faint"}[change.good]
        was = "" if change.text in {"as before", "none before"} else f", was {wording.value(figure.name, before)}"
        said = f'<small class="{shade}">{escape(change.text)}<span class="faint">{escape(was)}</span></small>'
    if meaning:
        said += f'<small class="faint">{escape(meaning)}</small>'
    value = escape(wording.value(figure.name, figure.value))
    return f"<div><dt>{escape(wording.label(figure.name))}</dt><dd>{value}{said}</dd></div>"


def finding_html(part: Part, shown: ShownFinding, *, in_section: bool) -> str:
    """A finding with the query that shows its rows."""
    finding = shown.finding
    chip = "" if in_section else f'<a class="chip" href="#{escape(part.name)}">{escape(part.title)}</a>'
    strength = f"{finding.strength:.0%}".replace("%", " %")
    meter = f'<span class="meter" title="strength {strength}"><i style="width:{finding.strength:.0%}"></i></span>'
    return (
        f"<article>{chip}<h3>{escape(finding.title)}</h3><p>{escape(finding.text)}</p>"
        f"<details><summary>{meter}{escape(evidence(shown))}</summary>"
        f'<div class="query"><pre tabindex="0"><code>{escape(finding.evidence)}</code></pre>'
        '<button type="button" hidden>Copy</button></div></details></article>'
    )


def evidence(shown: ShownFinding) -> str:
    """What a finding rests on, in words."""
    counts = [wording.counted(shown.rows, "row")]
    if shown.sessions is not None:
        counts.append(wording.counted(shown.sessions, "session"))
    return "Evidence: " + ", ".join([*counts, wording.counted(shown.users, "user")])


def made_rows(report: MiningReport) -> Iterator[str]:
    """Rows of the table that says how the report was made."""
    archive = report.archive
    facts = {
        "period": f"{report.period.since} to {report.period.until}, UTC",
        "earlier period": f"{report.period.earlier.since} to {report.period.earlier.until}",
        "archive": f"snapshot {archive.snapshot}, committed {archive.committed_at:%Y-%m-%d %H:%M:%S %Z}",
        "rows": f"{wording.counted(archive.turns, 'turn')} in all; Parquet of all tables "
        f"{wording.size(archive.parquet_bytes)}, turns as JSON {wording.size(archive.json_bytes_of_turns)}",
        "rules": f"policy {report.policy_version} ({report.policy_digest})",
        "shown from": f"{report.anonymity.min_sessions} sessions and {report.anonymity.min_users} users on",
        "made": f"{report.made_at:%Y-%m-%d %H:%M:%S} UTC in {wording.rounded(report.seconds)} s",
    }
    for name, said in facts.items():
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(said)}</td></tr>'
