"""Every measure of every app, now against the baseline: tests, effects, findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import stats

from jobs.analyse.mining.drift_measures import (
    counts_in,
    moved,
    quantile_edges,
    shares_moved,
    stability,
    stability_by_chance,
)
from jobs.analyse.mining.job import ALL_APPS, Finding, Period, about
from jobs.analyse.mining.statistics import ByUser, false_discovery_rates
from models.policy.archive import ArchivePolicy
from streams.archive.catalog import literal

MODE = "mode"
_SIGNAL = "signal_"


class SessionMeasure(NamedTuple):
    """A measure of a session.

    Attributes:
        name: Column, with its unit.
        title: In plain words.
        view: Which view the evidence reads, and …
        value: … what it computes of a session's rows.
    """

    name: str
    title: str
    view: str
    value: str


METRICS = (
    SessionMeasure("mean_risk", "mean risk of a session", "risk_points", "avg(risk)"),
    SessionMeasure("peak_risk", "highest risk of a session", "risk_points", "max(risk)"),
    SessionMeasure("score", "latest score of a session", "profiles", "any_value(score)"),
    SessionMeasure("turns", "turns of a session", "turns", "count(*)"),
    SessionMeasure(
        "user_turn_bytes", "length of users' turns in bytes", "turns", "avg(content_bytes) FILTER (role = 'user')"
    ),
    SessionMeasure("topics", "topics of a session", "topics", "count(*)"),
    SessionMeasure("latency_s", "seconds from event to receipt", "turns", "avg(epoch(appended_at) - epoch(timestamp))"),
)
"""Measures with a column of their own; signals come besides as `signal_<name>`."""


def metric_of(name: str) -> SessionMeasure:
    """The measure of a column."""
    if name == MODE:
        return SessionMeasure(MODE, "mode of a session", "profiles", "any_value(mode)")
    if name.startswith(_SIGNAL):
        signal = name.removeprefix(_SIGNAL)
        value = f"any_value(list_filter(signals, s -> s.name = {literal(signal)})[1].value)"
        return SessionMeasure(name, f"signal {signal.replace('_', ' ')} of a session", "profiles", value)
    return next(metric for metric in METRICS if metric.name == name)


def measured(columns: list[str]) -> list[str]:
    """Measures of numbers among the columns of a frame, in order."""
    known = [metric.name for metric in METRICS if metric.name in columns]
    return known + sorted(name for name in columns if name.startswith(_SIGNAL))


_SCHEMA = {
    "app_id": pl.String, "measure": pl.String, "sessions": pl.Int64, "users": pl.Int64,
    "baseline_sessions": pl.Int64, "baseline": pl.Float64, "period": pl.Float64, "psi": pl.Float64,
    "psi_by_chance": pl.Float64, "ks": pl.Float64, "auc": pl.Float64, "p": pl.Float64, "shifted": pl.Boolean,
}  # fmt: skip
_DIGITS = 4


def compared(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """A row for each measure of all apps together and of each of the largest apps.

    Args:
        sessions: A row for each, with the column `here`: of the period, else of the baseline.
        policy: What is tested, and what matters.
    """
    rules = policy.drift
    rows: list[dict[str, Any]] = []
    for app_id, of_app in _by_app(sessions, rules.most_apps):
        for name in [*measured(of_app.columns), MODE]:
            known = of_app.drop_nulls(name)
            now, before = known.filter("here"), known.filter(~pl.col("here"))
            if _enough(now, policy) and _enough(before, policy):
                of = _mode(before, now) if name == MODE else _number(name, before, now, rules.bins)
                rows.append({"app_id": app_id, "measure": name, **about(now), "baseline_sessions": before.height, **of})
    return _judged(rows, policy)


def _by_app(sessions: pl.DataFrame, most: int) -> Iterator[tuple[str, pl.DataFrame]]:
    if not sessions.height:
        return
    yield ALL_APPS, sessions
    apps = sessions["app_id"].value_counts(sort=True).head(most)["app_id"].sort()
    for app_id in apps:
        yield str(app_id), sessions.filter(pl.col("app_id") == app_id)


def _enough(sessions: pl.DataFrame, policy: ArchivePolicy) -> bool:
    k = policy.anonymity
    least = max(policy.drift.min_sessions, k.min_sessions)
    return sessions.height >= least and sessions["user_id"].n_unique() >= k.min_users


def _number(name: str, before: pl.DataFrame, now: pl.DataFrame, bins: int) -> dict[str, Any]:
    """Effects are of all sessions; each test counts as far as it holds with users as the unit, too."""
    was, is_now = (frame[name].to_numpy().astype(np.float64) for frame in (before, now))
    found = moved(was, is_now, bins)
    ranks = stats.rankdata(np.concatenate([was, is_now]))
    here = np.repeat([False, True], [before.height, now.height])
    of_users = ByUser(pl.concat([before["user_id"], now["user_id"]])).chance(here, ranks)
    drawn = stats.ks_2samp(*(one_of_each_user(frame)[name].to_numpy() for frame in (before, now)), method="asymp")
    tests = [max(found.ks_p, float(drawn.pvalue)), max(found.auc_p, of_users)]
    return {
        "baseline": float(np.median(was)), "period": float(np.median(is_now)), "psi": found.psi,
        "psi_by_chance": found.psi_by_chance, "ks": found.ks, "auc": found.auc, "tests": tests,
    }  # fmt: skip


def _mode(before: pl.DataFrame, now: pl.DataFrame) -> dict[str, Any]:
    """Modes are categories: no distribution function, no order of ranks; medians are shares that are not calm."""
    names = sorted(set(before[MODE]) | set(now[MODE]))
    found = shares_moved(*(_counts(frame, names) for frame in (before, now)))
    drawn = shares_moved(*(_counts(one_of_each_user(frame), names) for frame in (before, now)))
    return {"psi": found.psi, "psi_by_chance": found.psi_by_chance, "tests": [max(found.p, drawn.p)]}


def one_of_each_user(sessions: pl.DataFrame) -> pl.DataFrame:
    """One session of each user, drawn by lot (seeded): these do not depend on each other."""
    drawn = sessions.sort("session_id").sample(fraction=1.0, shuffle=True, seed=0)
    return drawn.unique("user_id", keep="first", maintain_order=True)


def _counts(frame: pl.DataFrame, names: list[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([(frame[MODE] == name).sum() for name in names], dtype=np.int64)


def _judged(rows: list[dict[str, Any]], policy: ArchivePolicy) -> pl.DataFrame:
    """Correct over all tests of the run; the smallest p of a measure counts, for each was corrected with all others."""
    rules = policy.drift
    p = iter(false_discovery_rates([p for row in rows for p in row["tests"]]))
    frame = pl.DataFrame(
        [{**row, "p": min(next(p) for _ in row.pop("tests"))} for row in rows], schema=_SCHEMA | {"p": pl.Float64}
    )
    matters = (pl.col("psi") >= rules.psi_shifted) | ((pl.col("auc") - 0.5).abs() >= rules.auc_shifted).fill_null(
        value=False
    )
    numbers = pl.selectors.float() - pl.selectors.by_name("p")
    return frame.with_columns(shifted=(pl.col("p") < rules.significance) & matters).with_columns(
        numbers.round(_DIGITS), pl.col("p").round_sig_figs(2)
    )


def by_day(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """Stability index of each day's sessions against the whole baseline, over all apps, for measures of numbers."""
    schema = {
        "day": pl.Date, "measure": pl.String, "psi": pl.Float64, "psi_by_chance": pl.Float64, "sessions": pl.Int64,
        "users": pl.Int64, "here": pl.Boolean,
    }  # fmt: skip
    rows = []
    for name in measured(sessions.columns):
        known = sessions.drop_nulls(name)
        before = known.filter(~pl.col("here"))
        if not _enough(before, policy):
            continue
        edges = quantile_edges(before[name].to_numpy().astype(np.float64), policy.drift.bins)
        counted = counts_in(before[name].to_numpy().astype(np.float64), edges)
        crowded = known.filter(pl.len().over("day") >= policy.drift.min_sessions)
        for (day,), of_day in crowded.sort("day").group_by("day", maintain_order=True):
            psi = stability(counted, counts_in(of_day[name].to_numpy().astype(np.float64), edges))
            chance = stability_by_chance(len(counted), before.height, of_day.height)
            rows.append(
                {"day": day, "measure": name, "psi": round(psi, _DIGITS), "psi_by_chance": round(chance, _DIGITS),
                 **about(of_day), "here": of_day["here"][0]}
            )  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def findings(shifted: pl.DataFrame, period: Period, baseline: Period) -> list[Finding]:
    """One for each measure that moved; of an app only where not all apps moved alike."""
    everywhere = set(shifted.filter(pl.col("app_id") == ALL_APPS)["measure"])
    rows = shifted.filter((pl.col("app_id") == ALL_APPS) | ~pl.col("measure").is_in(list(everywhere)))
    return [_finding(row, period, baseline) for row in rows.iter_rows(named=True)]


def _finding(row: dict[str, Any], period: Period, baseline: Period) -> Finding:
    metric, app_id = metric_of(row["measure"]), row["app_id"]
    where = "" if app_id == ALL_APPS else f" in {app_id}"
    medians = (
        f"Median {_shown(row['baseline'])} before, {_shown(row['period'])} now. " if row["baseline"] is not None else ""
    )
    above = "" if row["auc"] is None else f", a session of now is above one of before in {row['auc']:.0%} of pairs"
    return Finding(
        title=f"Shifted: {metric.title}{where}",
        text=f"{medians}Stability index {row['psi']:.2f}{above} ({row['sessions'] + row['baseline_sessions']:,} "
        f"sessions, {row['sessions']:,} of now and {row['baseline_sessions']:,} of before).",
        evidence=evidence(row["measure"], app_id, period, baseline),
        strength=strength(row["psi"], row["auc"]),
    )


def _shown(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"  # noqa: PLR2004 - three digits tell enough


def strength(psi: float, auc: float | None) -> float:
    """0-1: how far two samples are apart, by the larger of both effects."""
    return max(1 - float(np.exp(-psi)), 0.0 if auc is None else 2 * abs(auc - 0.5))


def evidence(measure: str, app_id: str, period: Period, baseline: Period) -> str:
    """Sessions of both times that have a value of the measure; a session is of the day of its first turn."""
    metric = metric_of(measure)
    of_app = "" if app_id == ALL_APPS else f"\nWHERE app_id = {literal(app_id)}"
    return f"""
WITH began AS (SELECT session_id, min(date) AS day FROM turns GROUP BY session_id)
SELECT session_id, any_value(user_id) AS user_id, any_value(began.day) AS day,
  any_value(began.day) >= DATE '{period.since}' AS in_period, {metric.value} AS {metric.name}
FROM {metric.view} JOIN began USING (session_id){of_app}
GROUP BY session_id
HAVING any_value(began.day) BETWEEN DATE '{baseline.since}' AND DATE '{period.until}'
  AND {metric.name} IS NOT NULL
""".strip()  # noqa: S608 - names of this package, dates, a quoted app
