"""The page of a back-test: figures, pictures, sources, and sessions that two contenders treat differently.

Sessions are named by id and turn; no text of a turn is in it.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from msgspec.structs import asdict

from jobs.escalation.backtest.figures import CLASSES
from jobs.escalation.backtest.report import (
    Backtest,
    Outcome,
    among_labelled,
    cell,
    compared_rows,
    notes_on,
    source_rows,
)
from jobs.shared.pictures import Drawn, described
from streams.http import pages

_MOST_DIFFERENCES = 300
_VERDICTS = {True: "escalating", False: "benign", None: "–"}
_LEAST_RATE = 0.2
"""The axis of false alarms goes at least so far."""
_PICTURES = "jobs/escalation/backtest/pictures.yaml"
_SHARES: dict[str, tuple[str, str, str, str]] = {
    "false_alarm_ratio": ("false_alarms", "benign", "false_alarm_interval", "benign"),
    "recall": ("detected", "escalating", "recall_interval", "escalating"),
}
"""A ratio of `BacktestFigures`: its part, its whole, its interval, and the kind of session that it is about."""


def render(report: Backtest) -> str:
    """The page as HTML."""
    heads = [f"turn ({outcome.policy})" for outcome in report.outcomes]
    different = [
        {"session": each.session_id, "source": each.app_id, "label": _VERDICTS[each.escalating]}
        | dict(zip(heads, ("no alert" if turn is None else str(turn) for turn in each.turns), strict=True))
        for each in report.differences[:_MOST_DIFFERENCES]
    ]
    return pages.render(
        "jobs/escalation/backtest/page.html.j2",
        report=report,
        series="ab",
        cards=[row for row in compared_rows(report) if set(row.values()) - {row[""], "–"}],
        notes=notes_on(report),
        pictures=list(_pictures(report)),
        sources=source_rows(report),
        different=different,
        left_out=len(report.differences) - len(different),
        cell=cell,
    )


def _pictures(report: Backtest) -> Iterator[Drawn]:
    outcomes, among = report.outcomes, among_labelled(report)
    draw = partial(described, _PICTURES, names=[outcome.policy for outcome in outcomes])
    if all(outcome.curve for outcome in outcomes):
        yield draw("operating", {"among": among}, **_operating(outcomes))
    if any(any(outcome.delays) for outcome in outcomes):
        yield draw("delays", {}, counts=_delays(outcomes))
    for ratio, what in (("false_alarm_ratio", "False alarms"), ("recall", "Recall")):
        if rows := _by_source(outcomes, ratio):
            kind = _SHARES[ratio][-1]
            words = {"what": what, "among": among, "kind": kind.capitalize(), "kind_inside": kind}
            yield draw("shares", words, rows=rows, limit=1.25 * max(0.05, *(row["high"] for row in rows)))
    if any(outcome.reliability for outcome in outcomes):
        rates = {f"{outcome.base_rate:.1%}" for outcome in outcomes if outcome.base_rate is not None}
        yield draw("reliability", {"rates": " or ".join(sorted(rates))}, tenths=_tenths(outcomes))


def _operating(outcomes: Sequence[Outcome]) -> dict[str, Any]:
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
    for each in stand:
        each |= {"leftwards": each["rate"] > limit / 2, "below": each["recall"] < highest}
    return {"stand": stand, "curves": curves, "limit": limit}


def _delays(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Detected sessions by the tenth of their turns in which they alerted."""
    return [
        {
            "policy": outcome.policy,
            "until": f"{(place + 1) / CLASSES:.0%}",
            "sessions": count,
            "said": f"{place / CLASSES:.0%}-{(place + 1) / CLASSES:.0%}: {count}",
        }
        for outcome in outcomes
        for place, count in enumerate(outcome.delays)
    ]


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


def _tenths(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [
        {
            "policy": outcome.policy,
            "said": f"predicted {tenth.predicted:.0%}, observed {tenth.observed:.0%}: {tenth.sessions} sessions",
            **asdict(tenth),
        }
        for outcome in outcomes
        for tenth in outcome.reliability
    ]
