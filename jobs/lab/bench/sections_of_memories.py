"""The page's sections about what is remembered and told: pictures and goals of evaluations, and escalation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import mean

from jobs.lab.bench.page_parts import (
    HeldFigure,
    PagePicture,
    PageSection,
    PageTable,
    PrintedResult,
    curve_picture,
    held,
    number,
    number_table,
    points,
)
from jobs.shared.charts import Curve, Series, draw_grouped_bars

RETRIEVE_MS, _IN_PROCESS_MS, _END_TO_END_MS = 15.0, 5.0, 500.0
KEPT_UP = 0.98
"""Of the wanted rate: at the end of a run some requests are still due."""
_VIEW_S, _JOB_S, _PEAK_MB = 1.0, 300.0, 8_000.0
_SHARES = {"right": "right episode", "same_user": "others of the user", "foreign": "other users'"}
_ESCALATION_SAID = (
    "Labelled dialogues through the fold that the sessions role runs, by the source formulas (`rules`) and by the "
    "trained scorer. `family left out`: each dialogue is judged by a scorer trained without anything from its hand. A "
    "session counts as alerted if an alert was raised; its score is its highest after any turn. The first user turn "
    "alone is the control: what a scorer tells without any memory. In brackets: 95 %, Wilson. The same as a page: "
    "[escalation-backtest.html](escalation-backtest.html)."
)
_RATES = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1)
_MOST_FALSE_ALARMS, _MOST_BY_SOURCE, _LATEST = 0.05, 0.2, 0.6
_LEAST_AUC, _LEAST_AUC_BY_SOURCE, _LEAST_RECALL = 0.85, 0.75, 0.45
_OVERALL = {
    "precision": "precision",
    "median_delay_turns": "turns until the alert, median",
    "median_delay_ratio": "share of the session until then",
}
_TENTHS = [f"{tenth * 10}-{tenth * 10 + 10} %" for tenth in range(10)]


def _topic_curves(measured: PrintedResult) -> list[PagePicture]:
    rows, embedder = measured.rows("curve"), measured.text("embedder")
    bonuses = dict.fromkeys(bonus for row in rows if (bonus := row.number("active_bonus")) is not None)
    curves = [
        Curve(
            f"bonus {number(bonus) or 0}",
            points([row for row in rows if row.number("active_bonus") == bonus], "threshold", "f1"),
        )
        for bonus in bonuses
    ]
    return curve_picture(
        f"eval-topics-{embedder}.svg", "F1 of pairs by cosine threshold", curves, log_x=False, label_points=False,
        title=f"Messages put into the right topic, {embedder}",
        x_label="cosine above which a message joins a topic", y_label="F1 of pairs",
    )  # fmt: skip


def _distances(measured: PrintedResult) -> list[PagePicture]:
    embedder = measured.text("embedder")
    return curve_picture(
        f"eval-tiers-{embedder}.svg", "share of episodes by cosine distance to a question",
        [Curve(name, points(measured.rows("shares"), "distance", key)) for key, name in _SHARES.items()],
        log_x=False, label_points=False,
        title=f"Episodes nearer to a question, {embedder}", x_label="cosine distance", y_label="share nearer",
    )  # fmt: skip


def _retrieve_held(measured: PrintedResult) -> list[HeldFigure]:
    """Where answers did not keep up with the rate, or lacked the turn that was sent, no limit is reached."""
    route = next((row for row in measured.rows("routes") if row.text("path") == "/v1/retrieve"), PrintedResult({}))
    rate = measured.number("rate")
    kept_up = not route.number("errors") and (route.number("rate") or 0.0) >= KEPT_UP * (rate or 0.0)
    end = measured.part("end_to_end") or PrintedResult({})
    named = f"retrieve over HTTP at {rate or 0.0:g}/s, p99"
    return [
        *held(named, route.number("p99_ms"), at_most=RETRIEVE_MS, unit="ms", valid=kept_up),
        *held(
            "retrieve inside the process, p99", route.number("inside", "p99_ms"), at_most=_IN_PROCESS_MS, unit="ms"
        ),
        *held(
            "turn sent to context with it, p99", end.number("p99_ms"), at_most=_END_TO_END_MS, unit="ms",
            valid=not end.number("without_turn"),
        ),
    ]  # fmt: skip


def _archive_held(measured: PrintedResult) -> list[HeldFigure]:
    views, jobs = measured.numbers("query_s").values(), measured.numbers("job_s").values()
    peaks = [measured.number("landing_peak_mb"), measured.number("query_peak_mb")]
    known = [peak for peak in (*peaks, *measured.numbers("job_peak_mb").values()) if peak is not None]
    return [
        *held("archive: slowest view", max(views, default=None), at_most=_VIEW_S, unit="s"),
        *held("archive: slowest mining job", max(jobs, default=None), at_most=_JOB_S, unit="s"),
        *held("archive: most memory", max(known, default=None), at_most=_PEAK_MB, unit="MB"),
    ]


def escalation_section(measured: PrintedResult) -> PageSection:
    """Alerts, scores, delays and probabilities of one back-test; what is held to, of its last contender."""
    outcomes = measured.rows("outcomes")
    named = [(outcome.text("policy"), outcome) for outcome in outcomes]
    return PageSection(
        title="Escalation",
        said=[_ESCALATION_SAID],
        held=_escalation_held(outcomes[-1]) if outcomes else [],
        tables=[
            _alerts(named),
            number_table("", _OVERALL, [(name, part) for name, each in named if (part := each.part("overall"))]),
            _by_source("false alarms by benign source", "false_alarm_ratio", "false_alarm_interval", named),
            _by_source("recall by escalating source", "recall", "recall_interval", named),
            *(_reliability(name, outcome) for name, outcome in named),
        ],
        pictures=[*_pictures(named)] if outcomes else [],
    )


def _escalation_held(outcome: PrintedResult) -> list[HeldFigure]:
    rates = [outcome.number("by_app", app, "false_alarm_ratio") for app in outcome.names("by_app")]
    known = [rate for rate in rates if rate is not None]
    areas = outcome.numbers("roc_auc_by_app").values()
    recalls = [recall for rate, recall in _curve(outcome.rows("curve")) if rate == _MOST_FALSE_ALARMS]
    name = f"escalation, {outcome.text('policy')}"
    return [
        *held(f"{name}: ROC-AUC, mean of sources", mean(areas) if areas else None, at_least=_LEAST_AUC),
        *held(f"{name}: ROC-AUC, worst source", min(areas, default=None), at_least=_LEAST_AUC_BY_SOURCE),
        *held(f"{name}: recall at 5 % false alarms", max(recalls, default=None), at_least=_LEAST_RECALL),
        *held(f"{name}: false alarms", outcome.number("overall", "false_alarm_ratio"), at_most=_MOST_FALSE_ALARMS),
        *held(f"{name}: false alarms, worst source", max(known, default=None), at_most=_MOST_BY_SOURCE),
        *held(
            f"{name}: median share of the session at the alert",
            outcome.number("overall", "median_delay_ratio"),
            at_most=_LATEST,
        ),
    ]


def _alerts(named: Sequence[tuple[str, PrintedResult]]) -> PageTable:
    rows = [
        (
            name,
            number(outcome.number("roc_auc")),
            number(outcome.number("first_turn_roc_auc")),
            _with_interval(outcome.part("overall"), "recall", "recall_interval"),
            _with_interval(outcome.part("overall"), "false_alarm_ratio", "false_alarm_interval"),
        )
        for name, outcome in named
    ]
    return PageTable(("judged by", "ROC-AUC", "… of the first user turn alone", "recall", "false alarms"), rows)


def _by_source(title: str, ratio: str, interval: str, named: Sequence[tuple[str, PrintedResult]]) -> PageTable:
    rows = [
        (app, number(parts[0].number("sessions")), *(_with_interval(part, ratio, interval) for part in parts))
        for app, parts in _parts(ratio, named)
    ]
    return PageTable((title, "sessions", *(name for name, _ in named)), rows)


def _parts(ratio: str, named: Sequence[tuple[str, PrintedResult]]) -> list[tuple[str, list[PrintedResult]]]:
    """Sources that have such a ratio, with the figures of each contender there."""
    found = []
    for app in named[0][1].names("by_app") if named else []:
        parts = [outcome.part("by_app", app) or PrintedResult({}) for _, outcome in named]
        if any(part.number(ratio) is not None for part in parts):
            found.append((app, parts))
    return found


def _with_interval(measured: PrintedResult | None, ratio: str, interval: str) -> str:
    found = None if measured is None else measured.number(ratio)
    if measured is None or found is None:
        return ""
    between = measured.pair(interval)
    return f"{found:.1%}" + (f" ({between[0]:.1%} – {between[1]:.1%})" if between else "")


def _reliability(name: str, outcome: PrintedResult) -> PageTable:
    base_rate = outcome.number("base_rate") or 0.0
    rows = [
        (
            f"{row.number('predicted') or 0.0:.1%}",
            f"{row.number('observed') or 0.0:.1%}",
            number(row.number("sessions")),
        )
        for row in outcome.rows("reliability")
    ]
    return PageTable(
        (f"probability ({name})", f"share that escalates, where {base_rate:.1%} of all do", "sessions"), rows
    )


def _pictures(named: Sequence[tuple[str, PrintedResult]]) -> list[PagePicture]:
    last, outcome = named[-1]
    shown = [
        *((name, each.rows("curve")) for name, each in named),
        (f"{last}, first turn alone", outcome.rows("first_turn")),
    ]
    drawn = curve_picture(
        "escalation-curve.svg", "Recall by false-alarm rate, with the first turn alone beside it",
        [Curve(name, _curve(rows)) for name, rows in shown], log_x=False, label_points=False,
        title="Recall by the share of benign sessions that alert", x_label="false alarms", y_label="recall",
    )  # fmt: skip
    for file, ratio, title in (
        ("escalation-false-alarms.svg", "false_alarm_ratio", "Share of each benign source that alerts"),
        ("escalation-recall.svg", "recall", "Share of each escalating source that alerts"),
    ):
        if parts := _parts(ratio, named):
            series = [Series(name, [each[n].number(ratio) for _, each in parts]) for n, (name, _) in enumerate(named)]
            drawn.append(_bars(file, title, "share of sessions", [app for app, _ in parts], series))
    delays = [Series(name, _counts(outcome)) for name, outcome in named]
    if any(any(each.values) for each in delays):
        title = "Escalating sessions by the share of their turns until the alert"
        drawn.append(_bars("escalation-delay.svg", title, "sessions", _TENTHS, delays))
    return drawn


def _counts(outcome: PrintedResult) -> list[float | None]:
    counts = outcome.values("delays")
    return [count or None for count in counts] if len(counts) == len(_TENTHS) else [None] * len(_TENTHS)


def _bars(file: str, title: str, x_label: str, rows: Sequence[str], series: Sequence[Series]) -> PagePicture:
    return PagePicture(file, title, partial(draw_grouped_bars, title=title, x_label=x_label, rows=rows, series=series))


def _curve(curve: Sequence[PrintedResult]) -> list[tuple[float, float]]:
    """The recall that some rates of false alarms give; empty without a curve."""
    known = [(row.number("false_alarm_ratio") or 0.0, row.number("recall") or 0.0) for row in curve]
    if not known:
        return []
    return [(rate, max((recall for at, recall in known if at <= rate), default=0.0)) for rate in _RATES]


HELD: Mapping[str, Callable[[PrintedResult], list[HeldFigure]]] = {
    "retrieve": _retrieve_held,
    "archive": _archive_held,
}
PICTURES: Mapping[str, Callable[[PrintedResult], list[PagePicture]]] = {
    "eval-topics": _topic_curves,
    "eval-tiers": _distances,
}
