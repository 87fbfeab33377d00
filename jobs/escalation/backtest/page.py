"""The page of a back-test: figures, pictures, sources, and sessions that two contenders treat differently.

Sessions are named by id and turn; no text of a turn is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import altair as alt

from jobs.escalation.backtest.figures import CLASSES
from jobs.escalation.backtest.report import Backtest, Outcome
from jobs.escalation.backtest.tables import among_labelled, cell, compared_rows, notes_on, source_rows
from jobs.shared.pictures import Drawn, data_of, drawn
from streams.http import pages

_MOST_DIFFERENCES = 300
_VERDICTS = {True: "escalating", False: "benign", None: "–"}
_HEIGHT_PX, _BAR_PX = 170, 12
_LEAST_RATE = 0.2
"""The axis of false alarms goes at least so far."""
_PERCENT = alt.Axis(format=".0%")
_SHARES: dict[str, tuple[str, str, str, str]] = {
    "false_alarm_ratio": ("false_alarms", "benign", "false_alarm_interval", "benign"),
    "recall": ("detected", "escalating", "recall_interval", "escalating"),
}
"""A ratio of `BacktestFigures`: its part, its whole, its interval, and the kind of session that it is about."""


def render(report: Backtest) -> str:
    """The page as HTML."""
    names = [outcome.policy for outcome in report.outcomes]
    different = [
        {"session": each.session_id, "source": each.app_id, "label": _VERDICTS[each.escalating]}
        | {
            f"turn ({name})": "no alert" if turn is None else str(turn)
            for name, turn in zip(names, each.turns, strict=True)
        }
        for each in report.differences[:_MOST_DIFFERENCES]
    ]
    return pages.render(
        "jobs/escalation/backtest/page.html.j2",
        traffic=_traffic(report),
        series="ab",
        key={outcome.policy: _beside(outcome) for outcome in report.outcomes},
        cards=[row for row in compared_rows(report) if set(row.values()) - {row[""], "–"}],
        notes=notes_on(report),
        pictures=list(_pictures(report)),
        sources=source_rows(report),
        different=different,
        left_out=len(report.differences) - len(different),
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


def _pictures(report: Backtest) -> Iterator[Drawn]:
    outcomes, among = report.outcomes, among_labelled(report)
    if all(outcome.curve for outcome in outcomes):
        yield drawn(
            f"Recall against false alarms{among}",
            "Lines: sessions by their highest score, at every threshold. Fine dots: by the risk of their first "
            "user turn alone. Marks: the alerts themselves, which also need evidence and can stand below a line.",
            _operating(outcomes),
        )
    if any(any(outcome.delays) for outcome in outcomes):
        said = "Escalating sessions that alerted; further left is earlier."
        yield drawn("How long detection takes", said, _delays(outcomes))
    for ratio, title in (("false_alarm_ratio", "False alarms by source"), ("recall", "Recall by source")):
        if rows := _by_source(outcomes, ratio):
            kind = _SHARES[ratio][-1]
            said = f"{kind.capitalize()} sessions that alerted, as a share of the source's {kind} sessions. "
            yield drawn(f"{title}{among}", f"{said}Thin lines: 95\N{NO-BREAK SPACE}%.", _shares(rows, outcomes))
    if any(outcome.reliability for outcome in outcomes):
        rates = {f"{outcome.base_rate:.1%}" for outcome in outcomes if outcome.base_rate is not None}
        yield drawn(
            "Are probabilities right?",
            "Highest probability of a session, by tenths, and the share of these sessions that escalates, where "
            f"{' or '.join(sorted(rates))} of all sessions do. Below the diagonal probabilities are too high.",
            _reliability(outcomes),
        )


def _operating(outcomes: Sequence[Outcome]) -> alt.TopLevelMixin:
    """Recall over false-alarm rate by threshold, as far to the right as the policies stand."""
    stand: list[dict[str, Any]] = [
        {
            "policy": outcome.policy,
            "rate": (rate := outcome.overall.false_alarm_ratio),
            "recall": (recall := outcome.overall.recall),
            "told": f"{recall:.0%} at {rate:.1%}",
            "said": f"{outcome.policy}: recall {recall:.1%} at {rate:.1%} false alarms",
        }
        for outcome in outcomes
        if outcome.overall.false_alarm_ratio is not None and outcome.overall.recall is not None
    ]
    limit = min(1.0, max(_LEAST_RATE, *(1.5 * each["rate"] for each in stand), 0.0))
    highest = max((each["recall"] for each in stand), default=0.0)
    curves = [
        {"policy": outcome.policy, "of": of, "rate": rate, "recall": recall}
        for outcome in outcomes
        for of, curve in (("highest", outcome.curve), ("first", outcome.first_turn))
        for rate, recall in [(0.0, 0.0), *((point.false_alarm_ratio, point.recall) for point in curve)]
    ]
    x = alt.X("rate:Q", title="false-alarm rate", axis=_PERCENT).scale(domain=[0, limit], nice=False)
    y = alt.Y("recall:Q", title="recall", axis=_PERCENT).scale(domain=[0, 1])
    colour = _colour(outcomes)
    lines = alt.Chart(data_of(curves)).encode(x=x, y=y, color=colour)
    marks = alt.Chart(data_of(stand)).encode(x=x, y=y, color=colour)
    names = _names(outcomes)
    shape = alt.Shape("policy:N", legend=None).scale(domain=names, range=["circle", "diamond"])
    dash = alt.StrokeDash("policy:N", legend=None).scale(domain=names, range=[[1, 0], [5, 3]])
    thin: dict[str, Any] = {"clip": True, "order": False, "strokeDash": [1.5, 2.5], "strokeWidth": 1.4}
    return alt.layer(
        lines.transform_filter("datum.of == 'highest'").mark_line(clip=True, order=False).encode(strokeDash=dash),
        lines.transform_filter("datum.of == 'first'").mark_line(**thin),
        marks.mark_point(filled=True, size=70, opacity=1).encode(shape=shape, description="said:N"),
        # They may lie together: the higher one is named above.
        marks.mark_text(
            align=alt.expr(f"datum.rate > {limit / 2} ? 'right' : 'left'"),
            dx=alt.expr(f"datum.rate > {limit / 2} ? -8 : 8"),
            dy=alt.expr(f"datum.recall < {highest} ? 12 : -16"),
            fontWeight=600,
        ).encode(text="told:N"),
    ).properties(height=_HEIGHT_PX)


def _delays(outcomes: Sequence[Outcome]) -> alt.TopLevelMixin:
    """Detected sessions by the tenth of their turns in which they alerted."""
    counts = [
        {
            "policy": outcome.policy,
            "until": f"{(place + 1) / CLASSES:.0%}",
            "sessions": count,
            "said": f"{place / CLASSES:.0%}-{(place + 1) / CLASSES:.0%}: {count}",
        }
        for outcome in outcomes
        for place, count in enumerate(outcome.delays)
    ]
    bars = alt.Chart(data_of(counts)).mark_bar()
    chart: alt.Chart = bars.properties(height=_HEIGHT_PX).encode(
        x=alt.X("until:O", sort=None, title="share of the session until its alert").axis(labelAngle=0),
        xOffset=alt.XOffset("policy:N", sort=_names(outcomes)),
        y=alt.Y("sessions:Q", title="detected sessions").axis(tickMinStep=1),
        color=_colour(outcomes),
        description="said:N",
    )
    return chart


def _by_source(outcomes: Sequence[Outcome], ratio: str) -> list[dict[str, Any]]:
    """Of sources in which there is something to share, the largest share first: a row for each contender."""
    part, whole, interval, _ = _SHARES[ratio]

    by_app = []
    for app, first in outcomes[0].by_app.items():
        if not getattr(first, whole):
            continue
        rows = []
        for outcome in outcomes:
            figures = outcome.by_app[app]
            share, (low, high) = getattr(figures, ratio), getattr(figures, interval)
            said = f"{app}, {outcome.policy}: {getattr(figures, part)} of {getattr(figures, whole)}"
            told = {"share": share, "low": low, "high": high, "told": f"{share:.1%}", "said": said}
            rows.append({"source": app, "policy": outcome.policy} | told)
        by_app.append(rows)
    return list(chain(*sorted(by_app, key=lambda rows: -max(row["share"] for row in rows))))


def _shares(rows: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome]) -> alt.TopLevelMixin:
    most = max(0.05, *(row["high"] for row in rows))
    base = alt.Chart(data_of(rows)).encode(
        y=alt.Y("source:N", sort=None, title=None).axis(labelLimit=110),
        yOffset=alt.YOffset("policy:N", sort=_names(outcomes)),
    )
    return alt.layer(
        base.mark_bar().encode(
            x=alt.X("share:Q", title=None, axis=_PERCENT).scale(domain=[0, 1.25 * most], nice=False),
            color=_colour(outcomes),
            description="said:N",
        ),
        base.mark_rule().encode(x="low:Q", x2="high:Q"),
        base.mark_text(align="left", dx=4).encode(x="high:Q", text="told:N"),
    ).properties(height={"step": _BAR_PX, "for": "offset"})


def _reliability(outcomes: Sequence[Outcome]) -> alt.TopLevelMixin:
    """Predicted against observed; on the diagonal, probabilities are right. The more sessions, the larger the mark."""
    tenths = [
        {
            "policy": outcome.policy,
            "predicted": tenth.predicted,
            "observed": tenth.observed,
            "sessions": tenth.sessions,
            "said": f"predicted {tenth.predicted:.0%}, observed {tenth.observed:.0%}: {tenth.sessions} sessions",
        }
        for outcome in outcomes
        for tenth in outcome.reliability
    ]
    base = alt.Chart(data_of(tenths)).encode(
        x=alt.X("predicted:Q", title="probability", axis=_PERCENT).scale(domain=[0, 1]),
        y=alt.Y("observed:Q", title="share that escalates", axis=_PERCENT).scale(domain=[0, 1]),
        color=_colour(outcomes),
    )
    ends = alt.Chart(data_of([{"predicted": 0, "observed": 0}, {"predicted": 1, "observed": 1}]))
    size = alt.Size("sessions:Q", legend=None).scale(range=[20, 140])
    return alt.layer(
        ends.mark_line(strokeDash=[2, 3], strokeWidth=1).encode(
            x="predicted:Q", y="observed:Q", color=alt.value("gray")
        ),
        base.mark_line(),
        base.mark_circle(opacity=1).encode(size=size, description="said:N"),
    ).properties(height=_HEIGHT_PX)


def _colour(outcomes: Sequence[Outcome]) -> alt.Color:
    return alt.Color("policy:N", sort=_names(outcomes), legend=None)


def _names(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.policy for outcome in outcomes]
