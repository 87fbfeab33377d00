"""Every measure of every app, now against the baseline: effects, tests, findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from jobs.analyse.mining.coverage import about
from jobs.analyse.mining.job import ALL_APPS, Finding, Period, SessionMeasure
from jobs.analyse.mining.statistics import ByUser, Floats, false_discovery_rates
from jobs.analyse.mining.wording import finding, measures
from models.policy.archive import ArchivePolicy
from streams.archive.catalog import literal

MODE = "mode"
_SIGNAL = "signal_"
_PSEUDO_COUNT = 0.5
"""Added to each bin, so that an empty one has a logarithm (Jeffreys' prior)."""
_DIGITS = 4
_SCHEMA = {
    "app_id": pl.String, "measure": pl.String, "sessions": pl.Int64, "users": pl.Int64,
    "baseline_sessions": pl.Int64, "baseline": pl.Float64, "period": pl.Float64, "psi": pl.Float64,
    "psi_by_chance": pl.Float64, "ks": pl.Float64, "auc": pl.Float64, "p": pl.Float64,
}  # fmt: skip
Counts = NDArray[np.int64]


def metric_of(name: str) -> SessionMeasure:
    """The measure of a column."""
    if not name.startswith(_SIGNAL):
        return measures()[name]
    signal = name.removeprefix(_SIGNAL)
    value = f"any_value(list_filter(signals, s -> s.name = {literal(signal)})[1].value)"
    return SessionMeasure(f"signal {signal.replace('_', ' ')} of a session", "profiles", value)


def measured(columns: list[str]) -> list[str]:
    """Measures of numbers among the columns of a frame, in order."""
    known = [name for name in measures() if name in columns and name != MODE]
    return known + sorted(name for name in columns if name.startswith(_SIGNAL))


def compared(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """A row for each measure of all apps together and of each of the largest apps; `here`: of the period."""
    rules = policy.drift
    rows: list[dict[str, Any]] = []
    for app_id, of_app in _by_app(sessions, rules.most_apps):
        for name in [*measured(of_app.columns), MODE]:
            known = of_app.drop_nulls(name)
            now, before = known.filter("here"), known.filter(~pl.col("here"))
            if _enough(now, policy) and _enough(before, policy):
                of = _mode(before, now) if name == MODE else _number(name, before, now, rules.bins)
                rows.append({"app_id": app_id, "measure": name, **about(now), "baseline_sessions": before.height, **of})
    # Corrected over all tests of the run; the smallest p of a measure counts, for each was corrected with all others.
    rates = iter(false_discovery_rates([p for row in rows for p in row["tests"]]))
    frame = pl.DataFrame([{**row, "p": min(next(rates) for _ in row.pop("tests"))} for row in rows], schema=_SCHEMA)
    distance = (pl.col("auc") - 0.5).abs().fill_null(0.0)
    matters = (pl.col("psi") >= rules.psi_shifted) | (distance >= rules.auc_shifted)
    numbers = pl.selectors.float() - pl.selectors.by_name("p")
    return frame.with_columns(shifted=(pl.col("p") < rules.significance) & matters).with_columns(
        numbers.round(_DIGITS), pl.col("p").round_sig_figs(2)
    )


def _by_app(sessions: pl.DataFrame, most: int) -> Iterator[tuple[str, pl.DataFrame]]:
    if sessions.height:
        yield ALL_APPS, sessions
        for app_id in sessions["app_id"].value_counts(sort=True).head(most)["app_id"].sort():
            yield str(app_id), sessions.filter(pl.col("app_id") == app_id)


def _enough(sessions: pl.DataFrame, policy: ArchivePolicy) -> bool:
    k = policy.anonymity
    least = max(policy.drift.min_sessions, k.min_sessions)
    return sessions.height >= least and sessions["user_id"].n_unique() >= k.min_users


def _number(name: str, before: pl.DataFrame, now: pl.DataFrame, bins: int) -> dict[str, Any]:
    """Effects are of all sessions; each test counts as far as it holds with users as the unit, too.

    `ks` is Kolmogorov and Smirnov's largest distance of the distribution functions, 0-1; `auc` how often a value of now
    is above one of before, ties half.
    """
    was, is_now = (frame[name].to_numpy().astype(np.float64) for frame in (before, now))
    edges = quantile_edges(was, bins)
    ks = stats.ks_2samp(was, is_now, method="asymp")
    drawn = stats.ks_2samp(*(one_of_each_user(frame)[name].to_numpy() for frame in (before, now)), method="asymp")
    ranks = stats.mannwhitneyu(is_now, was, method="asymptotic")
    here = np.repeat([False, True], [before.height, now.height])
    of_users = ByUser(pl.concat([before["user_id"], now["user_id"]])).chance(
        here, stats.rankdata(np.concatenate([was, is_now]))
    )
    return {
        "baseline": float(np.median(was)),
        "period": float(np.median(is_now)),
        "psi": stability(counts_in(was, edges), counts_in(is_now, edges)),
        "psi_by_chance": stability_by_chance(len(edges) + 1, len(was), len(is_now)),
        "ks": float(ks.statistic),
        "auc": float(ranks.statistic) / (len(was) * len(is_now)),
        "tests": [max(float(ks.pvalue), float(drawn.pvalue)), max(float(ranks.pvalue), of_users)],
    }


def _mode(before: pl.DataFrame, now: pl.DataFrame) -> dict[str, Any]:
    """Modes are categories: no distribution function, no order of ranks, no medians."""
    names = sorted(set(before[MODE]) | set(now[MODE]))
    was, is_now, *drawn = (
        np.array([(frame[MODE] == name).sum() for name in names])
        for frame in (before, now, one_of_each_user(before), one_of_each_user(now))
    )
    return {
        "psi": stability(was, is_now),
        "psi_by_chance": stability_by_chance(len(names), before.height, now.height),
        "tests": [max(homogeneity(was, is_now), homogeneity(*drawn))],
    }


def homogeneity(baseline: Counts, sample: Counts) -> float:
    """p-value of the χ² test that counts of categories are of one population; categories of neither do not count."""
    table = np.vstack([baseline, sample])[:, (baseline + sample) > 0]
    return float(stats.chi2_contingency(table).pvalue) if table.shape[1] > 1 else 1.0


def one_of_each_user(sessions: pl.DataFrame) -> pl.DataFrame:
    """One session of each user, drawn by lot (seeded): these do not depend on each other."""
    drawn = sessions.sort("session_id").sample(fraction=1.0, shuffle=True, seed=0)
    return drawn.unique("user_id", keep="first", maintain_order=True)


def quantile_edges(baseline: Floats, bins: int) -> Floats:
    """Inner edges of bins that hold the same share of the baseline; fewer where values are the same."""
    return np.unique(np.quantile(baseline, np.arange(1, bins) / bins))


def counts_in(values: Floats, edges: Floats) -> Counts:
    """How many values are in each bin `(edge, next edge]`, the first and last open.

    >>> counts_in(np.array([0.0, 1.0, 2.0, 9.0]), np.array([1.0, 5.0])).tolist()
    [2, 1, 1]
    """
    return np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)


def stability(baseline: Counts, sample: Counts) -> float:
    """Population stability index of counts in the same bins: Σ (q - p) · ln(q / p), Siddiqi 2006.

    p and q are the shares of the bins in baseline and sample, with half a count added to each. It is the symmetric
    Kullback-Leibler divergence (Jeffreys).

    >>> round(stability(np.array([500, 500]), np.array([800, 200])), 3)
    0.415
    """
    p, q = ((counts + _PSEUDO_COUNT) / (counts + _PSEUDO_COUNT).sum() for counts in (baseline, sample))
    return float(np.sum((q - p) * np.log(q / p)))


def stability_by_chance(bins: int, n_baseline: int, n_sample: int) -> float:
    """Mean of the index where nothing moved: (bins - 1) · (1/n + 1/m), Yurdakul 2018."""
    return (bins - 1) * (1 / n_baseline + 1 / n_sample)


def by_day(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """Stability index of each day's sessions against the whole baseline, over all apps, for measures of numbers."""
    schema = {
        "day": pl.Date, "measure": pl.String, "psi": pl.Float64, "psi_by_chance": pl.Float64, "sessions": pl.Int64,
        "users": pl.Int64, "here": pl.Boolean,
    }  # fmt: skip
    rows = []
    for name in measured(sessions.columns):
        known = sessions.drop_nulls(name).with_columns(pl.col(name).cast(pl.Float64))
        before = known.filter(~pl.col("here"))
        if not _enough(before, policy):
            continue
        edges = quantile_edges(before[name].to_numpy(), policy.drift.bins)
        counted = counts_in(before[name].to_numpy(), edges)
        crowded = known.filter(pl.len().over("day") >= policy.drift.min_sessions)
        for (day,), of_day in crowded.sort("day").group_by("day", maintain_order=True):
            psi = stability(counted, counts_in(of_day[name].to_numpy(), edges))
            chance = stability_by_chance(len(counted), before.height, of_day.height)
            index = round(psi, _DIGITS), round(chance, _DIGITS)
            rows.append((day, name, *index, *about(of_day).values(), of_day["here"][0]))
    return pl.DataFrame(rows, schema=schema, orient="row")


def findings(shifted: pl.DataFrame, period: Period, baseline: Period) -> list[Finding]:
    """One for each measure that moved; of an app only where not all apps moved alike."""
    everywhere = set(shifted.filter(pl.col("app_id") == ALL_APPS)["measure"])
    rows = shifted.filter((pl.col("app_id") == ALL_APPS) | ~pl.col("measure").is_in(list(everywhere)))
    return [_finding(row, period, baseline) for row in rows.iter_rows(named=True)]


def _finding(row: dict[str, Any], period: Period, baseline: Period) -> Finding:
    app_id, auc = row["app_id"], row["auc"]
    where = "" if app_id == ALL_APPS else f" in {app_id}"
    medians = ""
    if row["baseline"] is not None:
        medians = f"Median {_shown(row['baseline'])} before, {_shown(row['period'])} now. "
    above = "" if auc is None else f", a session of now is above one of before in {auc:.0%} of pairs"
    return finding(
        "shifted",
        period,
        # How far two samples are apart, by the larger of both effects.
        strength=max(1 - float(np.exp(-row["psi"])), 0.0 if auc is None else 2 * abs(auc - 0.5)),
        row=row,
        where=where,
        medians=medians,
        above=above,
        both=row["sessions"] + row["baseline_sessions"],
        **evidence_words(row["measure"], app_id, baseline),
    )


def evidence_words(measure: str, app_id: str, baseline: Period) -> dict[str, Any]:
    """What the evidence `measure` names: sessions of both times that have a value of it."""
    of_app = "" if app_id == ALL_APPS else f"\nWHERE app_id = {literal(app_id)}"
    return {"measure": measure, "metric": metric_of(measure), "baseline": baseline, "app_sql": of_app}


def _shown(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"  # noqa: PLR2004 - three digits tell enough
