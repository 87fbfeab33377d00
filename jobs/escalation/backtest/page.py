"""The page of a back-test: one HTML file, nothing loaded from anywhere, for light and dark, wide and narrow screens.

Sessions are named by id and turn; no text of a turn is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import NamedTuple

from jobs.escalation.backtest.curves import SweepPoint
from jobs.escalation.backtest.drawing import (
    Operating,
    RatioRow,
    draw_histogram,
    draw_operating,
    draw_reliability,
    draw_rows,
)
from jobs.escalation.backtest.figures import BacktestFigures
from jobs.escalation.backtest.report import Backtest, Outcome
from jobs.escalation.backtest.tables import among_labelled, cell, compared_rows, notes_on, source_rows

_MOST_DIFFERENCES = 300
_VERDICTS = {True: "escalating", False: "benign", None: "–"}


def render(report: Backtest) -> str:
    """The page as HTML; every name in it is escaped."""
    return Template((files("jobs.escalation.backtest") / "page.html").read_text("utf-8")).substitute(
        traffic=escape(_traffic(report)),
        key="".join(
            f'<span><i style="background:var(--{series})"></i>{escape(outcome.policy)} '
            f'<span class="faint">{escape(_beside(outcome))}</span></span>'
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


def _beside(outcome: Outcome) -> str:
    said = f"alerts from {outcome.threshold:g}"
    return said if outcome.scorer == outcome.policy else f"{outcome.scorer}, {said}"


def _traffic(report: Backtest) -> str:
    figures = report.outcomes[0].overall
    said = f"{report.traffic}: {figures.sessions:,} sessions, {figures.escalating:,} labelled escalating, "
    said += f"{figures.benign:,} benign"
    if report.begins is not None:
        said += f"; {cell(report.span_days)} days from {report.begins:%Y-%m-%d}"
    return said


def _card(row: Mapping[str, str], outcomes: Sequence[Outcome]) -> str:
    values = " ".join(
        f'<span class="{series}">{_small(row[outcome.policy])}</span>'
        for series, outcome in zip("ab", outcomes, strict=False)
    )
    change = f' <small class="faint">{escape(row["change"])}</small>' if "change" in row else ""
    return f"<div><dt>{escape(row[''])}</dt><dd>{values}{change}</dd></div>"


def _small(value: str) -> str:
    """A figure with its interval in small."""
    figure, space, interval = value.partition(" ")
    return escape(figure) + (f" <small>{escape(interval)}</small>" if space else "")


def _pictures(report: Backtest) -> list[str]:
    outcomes, among = report.outcomes, among_labelled(report)
    drawn = []
    if all(outcome.curve for outcome in outcomes):
        drawn.append(
            _figure(
                f"Recall against false alarms{among}",
                draw_operating([_operating(outcome) for outcome in outcomes]),
                "Lines: sessions by their highest score, at every threshold. Fine dots: by the risk of their first "
                "user turn alone. Marks: the alerts themselves, which also need evidence and can stand below a line.",
            )
        )
    delays = [outcome.delays for outcome in outcomes]
    if any(map(any, delays)):
        drawn.append(
            _figure(
                "How long detection takes",
                draw_histogram(delays, x_label="share of the session until its alert", y_label="detected sessions"),
                "Escalating sessions that alerted; further left is earlier.",
            )
        )
    if rows := _by_source(outcomes, _false_alarms_in):
        drawn.append(
            _figure(
                f"False alarms by source{among}",
                draw_rows(rows, label="False-alarm rate of each source"),
                "Benign sessions that alerted, as a share of the source's benign sessions. Thin lines: 95 %.",
            )
        )
    if rows := _by_source(outcomes, _found_in):
        drawn.append(
            _figure(
                f"Recall by source{among}",
                draw_rows(rows, label="Recall of each source"),
                "Escalating sessions that alerted, as a share of the source's escalating sessions. Thin lines: 95 %.",
            )
        )
    if any(outcome.reliability for outcome in outcomes):
        drawn.append(_reliability(outcomes))
    return drawn or ['<p class="faint">Nothing to draw: no session is labelled.</p>']


def _reliability(outcomes: Sequence[Outcome]) -> str:
    known = [
        (series, [(tenth.predicted, tenth.observed, tenth.sessions) for tenth in outcome.reliability])
        for series, outcome in zip("ab", outcomes, strict=False)
        if outcome.reliability
    ]
    rates = {f"{outcome.base_rate:.1%}" for outcome in outcomes if outcome.base_rate is not None}
    return _figure(
        "Are probabilities right?",
        draw_reliability(known),
        "Highest probability of a session, by tenths, and the share of these sessions that escalates, where "
        f"{' or '.join(sorted(rates))} of all sessions do. Below the diagonal probabilities are too high.",
    )


def _operating(outcome: Outcome) -> Operating:
    figures = outcome.overall
    stands = figures.false_alarm_ratio is not None and figures.recall is not None
    return Operating(
        outcome.policy,
        _line(outcome.curve),
        _line(outcome.first_turn),
        (figures.false_alarm_ratio or 0.0, figures.recall or 0.0) if stands else None,
    )


def _line(curve: Sequence[SweepPoint]) -> list[tuple[float, float]]:
    return [(point.false_alarm_ratio, point.recall) for point in curve]


class _Share(NamedTuple):
    part: int
    of: int
    ratio: float | None
    interval: tuple[float, float] | None


def _false_alarms_in(figures: BacktestFigures) -> _Share:
    return _Share(figures.false_alarms, figures.benign, figures.false_alarm_ratio, figures.false_alarm_interval)


def _found_in(figures: BacktestFigures) -> _Share:
    return _Share(figures.detected, figures.escalating, figures.recall, figures.recall_interval)


def _by_source(outcomes: Sequence[Outcome], share_in: Callable[[BacktestFigures], _Share]) -> list[RatioRow]:
    """Sources in which there is something to share, the largest share first."""
    rows = []
    for app in outcomes[0].by_app:
        shares = [share_in(outcome.by_app[app]) for outcome in outcomes]
        if shares[0].of:
            said = ", ".join(f"{share.part} of {share.of}" for share in shares)
            ratios = [share.ratio for share in shares]
            rows.append(RatioRow(app, ratios, [share.interval for share in shares], f"{app}: {said}"))
    return sorted(rows, key=lambda row: -max(value or 0.0 for value in row.values))


def _different(report: Backtest) -> str:
    if not report.differences:
        return ""  # There are none, or sessions are not to be named.
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
