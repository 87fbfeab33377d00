"""Drift: the period against the weeks before it, and whether the scorer's probabilities still come true.

Turns of one session depend on each other, so a session is one observation: of what is measured at turns, its mean.
Sessions of one user do, too: tests take users as the unit (`ByUser`).
Languages are not archived.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import ibis
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from jobs.analyse.mining.coverage import about
from jobs.analyse.mining.job import ALL_APPS, Finding, Frames, Job, JobFindings, MiningInput, Period, SessionMeasure
from jobs.analyse.mining.source import Tables, beside
from jobs.analyse.mining.statistics import ByUser, Floats, false_discovery_rates, precision_by
from jobs.analyse.mining.wording import JOBS, MEASURES, figure, finding
from models.policy.archive import ArchivePolicy, DriftMining
from streams.archive.catalog import literal

MODE = "mode"
_SIGNAL = "signal_"
_PSEUDO_COUNT = 0.5
"""Added to each bin, so that an empty one has a logarithm (Jeffreys' prior)."""
_EFFECT_DIGITS = 4
_EFFECTS = {
    "app_id": pl.String, "measure": pl.String, "sessions": pl.Int64, "users": pl.Int64,
    "baseline_sessions": pl.Int64, "baseline": pl.Float64, "period": pl.Float64, "psi": pl.Float64,
    "psi_by_chance": pl.Float64, "ks": pl.Float64, "auc": pl.Float64, "p": pl.Float64,
}  # fmt: skip
Counts = NDArray[np.int64]


def metric_of(name: str) -> SessionMeasure:
    """The measure of a column."""
    if not name.startswith(_SIGNAL):
        return MEASURES[name]
    signal = name.removeprefix(_SIGNAL)
    value = f"any_value(list_filter(signals, s -> s.name = {literal(signal)})[1].value)"
    return SessionMeasure(f"signal {signal.replace('_', ' ')} of a session", "profiles", value)


def measured(columns: list[str]) -> list[str]:
    """Measures of numbers among the columns of a frame, in order."""
    known = [name for name in MEASURES if name in columns and name != MODE]
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
    frame = pl.DataFrame([{**row, "p": min(next(rates) for _ in row.pop("tests"))} for row in rows], schema=_EFFECTS)
    distance = (pl.col("auc") - 0.5).abs().fill_null(0.0)
    matters = (pl.col("psi") >= rules.psi_shifted) | (distance >= rules.auc_shifted)
    numbers = pl.selectors.float() - pl.selectors.by_name("p")
    return frame.with_columns(shifted=(pl.col("p") < rules.significance) & matters).with_columns(
        numbers.round(_EFFECT_DIGITS), pl.col("p").round_sig_figs(2)
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
            rows.append((day, name, psi, chance, *about(of_day).values(), of_day["here"][0]))
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.selectors.float().round(_EFFECT_DIGITS))


def findings(shifted: pl.DataFrame, period: Period, baseline: Period) -> Iterator[Finding]:
    """One for each measure that moved; of an app only where not all apps moved alike."""
    everywhere = set(shifted.filter(pl.col("app_id") == ALL_APPS)["measure"])
    rows = shifted.filter((pl.col("app_id") == ALL_APPS) | ~pl.col("measure").is_in(list(everywhere)))
    for row in rows.iter_rows(named=True):
        app_id, auc, before = row["app_id"], row["auc"], row["baseline"]
        yield finding(
            "shifted",
            period,
            # How far two samples are apart, by the larger of both effects.
            strength=max(1 - float(np.exp(-row["psi"])), 0.0 if auc is None else 2 * abs(auc - 0.5)),
            row=row,
            where="" if app_id == ALL_APPS else f" in {app_id}",
            medians="" if before is None else f"Median {_shown(before)} before, {_shown(row['period'])} now. ",
            above="" if auc is None else f", a session of now is above one of before in {auc:.0%} of pairs",
            both=row["sessions"] + row["baseline_sessions"],
            **evidence_words(row["measure"], app_id, baseline),
        )


def evidence_words(measure: str, app_id: str, baseline: Period) -> dict[str, Any]:
    """What the evidence `measure` names: sessions of both times that have a value of it."""
    of_app = "" if app_id == ALL_APPS else f"\nWHERE app_id = {literal(app_id)}"
    return {"measure": measure, "metric": metric_of(measure), "baseline": baseline, "app_sql": of_app}


def _shown(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"  # noqa: PLR2004 - three digits tell enough


_DIGITS = 3


def calibrated(labels: pl.DataFrame, policy: DriftMining) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Calibration by week, reliability by bin of probability, and what the reader must know.

    Of labelled alerts: `session_id`, `user_id`, `fired_at`, `model`, `probability`, `escalating` (0 or 1).
    """
    labels = labels.with_columns(
        week=pl.col("fired_at").dt.truncate("1w").dt.date(),
        model=pl.col("model").fill_null(""),
        bin=(pl.col("probability") * policy.calibration_bins).cast(pl.Int64).clip(0, policy.calibration_bins - 1),
    )
    known = pl.when(pl.col("labels") >= policy.min_labels)
    weeks = (
        _shares(labels, "week", "model")
        .join(calibration(labels, "week", "model"), on=["week", "model"], maintain_order="left")
        .with_columns(known.then("brier").alias("brier"), known.then("calibration_error").alias("calibration_error"))
    )
    enough_labels = labels if labels.height >= policy.min_labels else labels.clear()
    bins = _shares(enough_labels, "bin").select(
        (pl.col("bin") / policy.calibration_bins).round(_DIGITS).alias("probability_from"), pl.exclude("bin")
    )
    if not labels.height:
        return weeks, bins, ["No labelled alert has a probability: nothing tells whether probabilities come true."]
    few = weeks.filter(pl.col("labels") < policy.min_labels).height
    too_few = f"{few} of {weeks.height} weeks have too few labels (below {policy.min_labels}) to tell of calibration."
    return weeks, bins, [too_few] if few else []


def _shares(labels: pl.DataFrame, *by: str) -> pl.DataFrame:
    probability = pl.col("probability").mean().alias("mean_probability")
    told = precision_by(labels, *by, also=[probability], ends=("right_low", "right_high"))
    return (
        told.with_columns(pl.selectors.float().round(_DIGITS)).select(*by, "labels", pl.exclude(*by, "labels")).sort(by)
    )


def calibration(labels: pl.DataFrame, *by: str) -> pl.DataFrame:
    """How well probabilities of the labels of each group came true.

    Returns:
        `brier`, the mean squared distance of probability and outcome: 0 is perfect (Brier 1950).
        `calibration_error`, the expected one: distance of mean probability and share in each `bin`, weighed by its
        labels (Naeini et al. 2015).
    """
    distance = pl.col("probability") - pl.col("escalating")
    of_bins = labels.group_by(*by, "bin").agg(
        brier=(distance**2).sum(), calibration_error=distance.sum().abs(), labels=pl.len()
    )
    means = pl.col("brier", "calibration_error").sum() / pl.col("labels").sum()
    return of_bins.group_by(by).agg(means.round(_DIGITS))


def _heavy(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, ibis.Table]:
    turns, points = tables["turns"], tables["risk_points"]
    of_user = turns.role == "user"
    sessions = turns.group_by("session_id", "day").agg(
        user_id=turns.user_id.min(),
        app_id=turns.app_id.min(),
        turns=turns.count().cast("double"),
        user_turn_bytes=turns.content_bytes.mean(where=of_user),
        latency_s=(turns.appended_at.epoch_seconds() - turns.timestamp.epoch_seconds()).cast("double").mean(),
    )
    risks = points.group_by("session_id").agg(mean_risk=points.risk.mean(), peak_risk=points.risk.max())
    topics = tables["topics"]
    counted = topics.group_by("session_id").agg(topics=topics.count().cast("double"))
    profiles = tables["profiles"]
    latest = profiles.select("session_id", "mode", "score")
    wide = beside(sessions, risks, counted, latest)
    signals = profiles.select("session_id", "day", signal=profiles.signals.unnest())
    return {
        "sessions": wide.mutate(lot=wide.session_id.hexdigest("md5")),
        "signals": signals.select(
            "session_id", "day", name=signals.signal["name"], value=signals.signal["value"].cast("double")
        ),
        "labels": _labels(tables),
    }


def _labels(tables: Tables) -> ibis.Table:
    labels, alerts = tables["alert_labels"], tables["alerts"]
    whose = alerts.select("alert_id", "user_id")
    known = labels.filter(labels.escalating.notnull() & labels.probability.notnull())
    known = known.inner_join(whose, "alert_id")
    return known.select(
        "session_id", "user_id", "app_id", "day", "fired_at", "model", "probability",
        escalating=known.escalating.cast("int64"),
    )  # fmt: skip


def _refine(frames: Frames, policy: ArchivePolicy) -> Frames:
    """One row for each session, with the same ones kept of a crowded day in whatever order they come."""
    sessions = frames["sessions"].sort("lot").group_by("day", maintain_order=True)
    sessions_kept = sessions.head(policy.drift.most_sessions_per_day).drop("lot")
    signals = frames["signals"].join(sessions_kept.select("session_id"), on="session_id", how="semi")
    wide = signals.with_columns(name="signal_" + pl.col("name")).pivot("name", index="session_id", values="value")
    if signals.height:
        sessions_kept = sessions_kept.join(wide, on="session_id", how="left")
    seen = frames["sessions"].group_by("day").agg(of_sessions=pl.len())
    return {"sessions": sessions_kept.join(seen, on="day"), "labels": frames["labels"]}


def _find(frames: Frames, asked: MiningInput) -> JobFindings:
    policy, since = asked.policy.drift, asked.period.since
    before = Period(since - timedelta(days=policy.baseline_days), since - timedelta(days=1))
    earlier = asked.parts(before)
    here = frames["sessions"]
    there = earlier.get("sessions", here.clear())
    everything = pl.concat([there, here], how="diagonal_relaxed").with_columns(here=pl.col("day") >= since)
    tests = compared(everything, asked.policy)
    labels = [asked_for.get("labels", frames["labels"].clear()) for asked_for in (earlier, frames)]
    weeks, bins, shares = calibrated(pl.concat(labels, how="diagonal_relaxed"), policy)
    shifted = tests.filter(pl.col("shifted"))
    highest = tests.filter(pl.col("app_id") == ALL_APPS)["psi"].max()
    return JobFindings(
        figures=[
            figure("shifted_measures", shifted.height, here, tests=tests.height),
            figure("highest_psi", highest, here, digits=3),
        ],
        findings=list(findings(shifted, asked.period, before)),
        tables={"measures": tests, "days": by_day(everything, asked.policy), "calibration": weeks, "reliability": bins},
        notes=_notes(here, there, asked.policy) + shares,
    )


def _notes(here: pl.DataFrame, there: pl.DataFrame, policy: ArchivePolicy) -> list[str]:
    least, most = policy.drift.min_sessions, policy.drift.most_sessions_per_day
    notes = [
        f"The {name} has fewer than {least} sessions: nothing is compared."
        for name, frame in (("baseline", there), ("period", here))
        if frame.height < least
    ]
    days = pl.concat([there, here], how="diagonal_relaxed").filter(pl.col("of_sessions") > most)["day"].n_unique()
    if days:
        notes.append(f"{days} days have more than {most} sessions: so many were drawn of each.")
    return notes


JOB = Job("drift", JOBS["drift"], version=1, heavy=_heavy, find=_find, refine=_refine)
