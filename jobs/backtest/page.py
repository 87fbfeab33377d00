"""The page of a back-test: one HTML file, nothing loaded from anywhere, for light and dark, wide and narrow screens.

Sessions are named by id and turn; no text of a turn is in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

from jobs.backtest.drawing import Operating, Row, draw_histogram, draw_operating, draw_rows
from jobs.backtest.report import Backtest, Outcome, cell, compared_rows, notes_on, source_rows

_CLASSES = 10
_MOST_DIFFERENCES = 300
_VERDICTS = {True: "escalating", False: "benign", None: "–"}


def render(report: Backtest) -> str:
    """The page as HTML; every name in it is escaped."""
    return Template((files("jobs.backtest") / "page.html").read_text("utf-8")).substitute(
        traffic=escape(_traffic(report)),
        key="".join(
            f'<span><i style="background:var(--{series})"></i>{escape(outcome.policy)} '
            f'<span class="faint">alerts from {outcome.threshold:g}</span></span>'
            for series, outcome in zip("ab", report.outcomes, strict=False)
        ),
        cards="".join(
            _card(row, report.outcomes) for row in compared_rows(report) if set(row.values()) - {row[""], "–"}
        ),
        notes="".join(f'<p class="faint">{escape(note)}.</p>' for note in notes_on(report)),
        pictures="".join(_pictures(report)),
        sources=_table(source_rows(report)),
        different=_different(report),
    )


def _traffic(report: Backtest) -> str:
    figures = report.outcomes[0].overall
    said = f"{report.traffic}: {figures.sessions:,} sessions, {figures.escalating:,} labelled escalating, "
    said += f"{figures.benign:,} benign"
    if report.begins is not None:
        said += f"; {cell(report.span_days)} days from {report.begins:%Y-%m-%d}"
    return said


def _card(row: Mapping[str, str], outcomes: Sequence[Outcome]) -> str:
    values = " ".join(
        f'<span class="{series}">{escape(row[outcome.policy])}</span>'
        for series, outcome in zip("ab", outcomes, strict=False)
    )
    change = f' <small class="faint">{escape(row["change"])}</small>' if "change" in row else ""
    return f"<div><dt>{escape(row[''])}</dt><dd>{values}{change}</dd></div>"


def _pictures(report: Backtest) -> list[str]:
    outcomes = report.outcomes
    drawn = []
    if all(outcome.curve for outcome in outcomes):
        drawn.append(
            _figure(
                "Recall against false alarms",
                draw_operating([_operating(outcome) for outcome in outcomes]),
                "Lines: sessions by their highest score, at every threshold. Marks: the alerts themselves, which also "
                "need evidence and can stand below their line.",
            )
        )
    delays = [_delays(outcome) for outcome in outcomes]
    if any(map(any, delays)):
        drawn.append(
            _figure(
                "How long detection takes",
                draw_histogram(delays, x_label="share of the session until its alert", y_label="detected sessions"),
                "Escalating sessions that alerted; further left is earlier.",
            )
        )
    rows = _false_alarms(outcomes)
    if rows:
        drawn.append(
            _figure(
                "False alarms by source",
                draw_rows(rows, label="False-alarm rate of each source"),
                "Benign sessions that alerted, as a share of the source's benign sessions.",
            )
        )
    return drawn or ['<p class="faint">Nothing to draw: no session is labelled.</p>']


def _operating(outcome: Outcome) -> Operating:
    figures = outcome.overall
    stands = figures.false_alarm_ratio is not None and figures.recall is not None
    return Operating(
        outcome.policy,
        [(point.false_alarm_ratio, point.recall) for point in outcome.curve],
        (figures.false_alarm_ratio or 0.0, figures.recall or 0.0) if stands else None,
    )


def _delays(outcome: Outcome) -> list[int]:
    counts = [0] * _CLASSES
    for first in outcome.first_alerts:
        if first.escalating:
            # An alert at the end of a class belongs to it: the last turn is in the last class.
            counts[-(-first.turns_seen * _CLASSES // first.turns) - 1] += 1
    return counts


def _false_alarms(outcomes: Sequence[Outcome]) -> list[Row]:
    rows = []
    for app, figures in outcomes[0].by_app.items():
        if figures.benign:
            each = [outcome.by_app[app] for outcome in outcomes]
            said = ", ".join(f"{of.false_alarms} of {of.benign}" for of in each)
            rows.append(Row(app, [of.false_alarm_ratio for of in each], f"{app}: {said}"))
    return sorted(rows, key=lambda row: -max(value or 0.0 for value in row.values))


def _different(report: Backtest) -> str:
    if not report.differences:
        return ""
    names = [outcome.policy for outcome in report.outcomes]
    shown = report.differences[:_MOST_DIFFERENCES]
    rows = [
        {"session": each.session_id, "source": each.app_id, "label": _VERDICTS[each.escalating]}
        | {
            f"turn ({name})": "no alert" if turn is None else str(turn)
            for name, turn in zip(names, each.turns, strict=True)
        }
        for each in shown
    ]
    left = len(report.differences) - len(shown)
    more = f'<p class="faint">{left:,} more: --output json has all of them.</p>' if left else ""
    return (
        f"<h2>Where they differ</h2><p class=faint>The turn of the first alert.</p>"
        f'<div class="wide">{_table(rows)}</div>{more}'
    )


def _figure(title: str, picture: str, said: str) -> str:
    return f"<figure><h3>{escape(title)}</h3>{picture}<figcaption>{escape(said)}</figcaption></figure>"


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(value)}</td>" for value in row.values()) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
