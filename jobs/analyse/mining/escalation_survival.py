"""Survival of sessions without escalation: Kaplan and Meier's estimate, and apps held against each other.

A session that ends calm is censored at its last scored turn: it might have escalated later. The test of apps takes
users as the unit (`ByUser`); the estimate's interval takes sessions as independent.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from jobs.analyse.mining.coverage import (
    ABOUT_TYPE,
    COUNTED,
    about,
    beyond,
    enough,
    fewest,
    is_few,
    part_of,
    percent,
)
from jobs.analyse.mining.escalation_shapes import ESCALATED
from jobs.analyse.mining.job import ALL_APPS, Finding, MiningInput
from jobs.analyse.mining.statistics import PERCENT, ByUser, Floats, false_discovery_rates
from jobs.analyse.mining.wording import finding
from models.policy.archive import AnonymityPolicy, ArchivePolicy
from streams.archive.catalog import literal

_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "app": pl.String,
    "scored_turn": pl.Int64,
    "calm_percent": pl.Float64,
    "low_percent": pl.Float64,
    "high_percent": pl.Float64,
    "sessions": pl.Int64,
    "users": pl.Int64,
}
_APPS: dict[str, pl.DataType | type[pl.DataType]] = {
    "app_id": pl.String,
    "sessions": pl.Int64,
    "users": pl.Int64,
    "escalated_percent": pl.Float64,
    "others_percent": pl.Float64,
    "median_turns": pl.Float64,
    "about_escalated_percent": ABOUT_TYPE,
    "about_others_percent": ABOUT_TYPE,
    "about_others": ABOUT_TYPE,
    "statistic": pl.Float64,
    "chance": pl.Float64,
}


def _times(sessions: pl.DataFrame) -> stats.CensoredData:
    """Scored turns until escalation, or until the end without it."""
    escalated = sessions["escalated_at"].drop_nulls().to_numpy()
    calm = sessions.filter(pl.col("escalated_at").is_null())["scored"].to_numpy()
    return stats.CensoredData(uncensored=escalated, right=calm)


def survival_table(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """Share of sessions that have not escalated by a scored turn, of all apps and of the largest ones.

    At least k sessions of k users escalate between a row and the one before, so that no single session can be told.
    `sessions` and `users` are those still there at that turn. Intervals: log-log
    (`scipy.stats.ecdf`), Greenwood's variance.
    """
    frames = [_curve(ALL_APPS, sessions, policy)]
    frames += [_curve(app, sessions.filter(pl.col("app_id") == app), policy) for app in _largest(sessions, policy)]
    return pl.concat(frames)


def _curve(name: str, sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    if sessions.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    estimate = stats.ecdf(_times(sessions)).sf
    with warnings.catch_warnings():
        # It has no variance to go by before the first escalation, nor where all have escalated.
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = estimate.confidence_interval(policy.escalation.confidence, method="log-log")
    ends = sessions.select("user_id", at=pl.coalesce("escalated_at", "scored"))
    turns = np.insert(estimate.quantiles, 0, 0.0)
    steps = pl.DataFrame(
        {
            "app": [name] * len(turns),
            "scored_turn": turns.astype(np.int64),
            "calm_percent": _percent(estimate.probabilities),
            "low_percent": _percent(interval.low.probabilities),
            "high_percent": _percent(interval.high.probabilities),
            "sessions": _remaining(ends["at"], turns),
            "users": _remaining(ends.group_by("user_id").agg(pl.col("at").max())["at"], turns),
        },
        schema=_SCHEMA,
        nan_to_null=True,
    )
    return steps.filter(pl.Series(_is_shown(sessions, steps, policy.anonymity)))


def _is_shown(sessions: pl.DataFrame, steps: pl.DataFrame, k: AnonymityPolicy) -> NDArray[np.bool_]:
    """Which steps may be shown: the first, where all are calm, those after which enough escalated, the last."""
    turns = steps["scored_turn"].to_numpy()
    shown = np.zeros(len(turns), np.bool_)
    shown[0] = True
    escalated = sessions.filter(ESCALATED).sort("escalated_at").select("user_id", at="escalated_at")
    at, users = escalated["at"].to_numpy(), escalated["user_id"].rank("dense").to_numpy()
    first, least = 0, max(k.min_sessions, k.min_users)
    # One turn of the loop takes k sessions or more.
    while first + least <= len(at):
        step = int(np.searchsorted(turns, at[first + least - 1]))
        end = int(np.searchsorted(at, turns[step], side="right"))
        if len(np.unique(users[first:end])) >= k.min_users:
            shown[step], first, least = True, end, max(k.min_sessions, k.min_users)
        else:
            least = end - first + 1
    if first == len(at):
        # Nobody escalates after that: the estimate stays, as far as enough sessions go on.
        there = steps.select(enough(k)).to_series()
        shown[int(there.arg_true().max() or 0)] = True  # type: ignore[arg-type]
    return shown


def _percent(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """At the start, where all are calm, and at each step."""
    return np.insert(share, 0, 1.0) * PERCENT


def _remaining(ends: pl.Series, turns: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many have not ended before each turn."""
    found: NDArray[np.int64] = len(ends) - np.searchsorted(ends.sort().to_numpy(), turns, side="left")
    return found


def _largest(sessions: pl.DataFrame, policy: ArchivePolicy) -> list[str]:
    """Apps with enough sessions and users, the largest first."""
    apps = sessions.group_by("app_id").agg(*COUNTED).filter(enough(policy.anonymity))
    return apps.sort("sessions", "app_id", descending=[True, False])["app_id"].head(policy.escalation.apps).to_list()


def app_table(sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """How each of the largest apps does against all others: a row of `_APPS`.

    `median_turns` are scored turns until escalation, null where too few sessions escalate; `faster` is null where
    chance alone would give the difference. All sessions' share is known, so that either of both shares tells the other.
    """
    users, rows, k = ByUser(sessions["user_id"]), [], policy.anonymity
    for app in _largest(sessions, policy):
        of_app = sessions["app_id"] == app
        own, others = sessions.filter(of_app), sessions.filter(~of_app)
        statistic, chance = 0.0, 1.0
        if not others.is_empty() and not sessions["escalated_at"].is_null().all():
            test = stats.logrank(_times(own), _times(others))
            of_users = users.chance_of(logrank_scores(sessions, of_app.to_numpy()))
            statistic, chance = float(test.statistic), max(float(test.pvalue), of_users)
        part, rest = part_of(own, ESCALATED), part_of(others, ESCALATED)
        escalated = own.filter(ESCALATED)
        row = {
            "app_id": app,
            **about(own),
            "escalated_percent": escalated.height / own.height * PERCENT,
            "others_percent": others.filter(ESCALATED).height / max(1, others.height) * PERCENT,
            "median_turns": None if is_few(beyond(about(escalated)), k) else escalated["escalated_at"].median(),
            "about_escalated_percent": fewest(part, rest),
            "about_others_percent": fewest(part, rest),
            "about_others": rest,
            "statistic": statistic,
            "chance": chance,
        }
        rows.append(row)
    table = pl.DataFrame(rows, schema=_APPS)
    rates = pl.Series(false_discovery_rates(table["chance"].to_list()), dtype=pl.Float64)
    # More escalations than the pooled risk would give: a positive statistic.
    faster = pl.when(pl.col("false_discovery_rate") <= policy.escalation.significance).then(pl.col("statistic") > 0)
    return table.with_columns(false_discovery_rate=rates).with_columns(faster=faster).drop("statistic", "chance")


def logrank_scores(sessions: pl.DataFrame, group: NDArray[np.bool_]) -> Floats:
    """What each session adds to the log-rank test's "observed minus expected" of a group, `(n_sessions,)`.

    A session of the group adds 1 for its escalation, and takes away the risk of it that it lived through; both are seen
    from the group's share of those still there (score residuals, Lin and Wei 1989).
    """
    ends = sessions.select(at=pl.coalesce("escalated_at", "scored"), escalated=pl.col("escalated_at").is_not_null())
    at, escalated = ends["at"].to_numpy(), ends["escalated"].to_numpy()
    turns, events = np.unique(at[escalated], return_counts=True)
    there = len(at) - np.searchsorted(np.sort(at), turns, side="left")
    share = (group.sum() - np.searchsorted(np.sort(at[group]), turns, side="left")) / there
    # Of the turns at which somebody escalates, how many each session lived through.
    lived = np.searchsorted(turns, at, side="right")
    risk = np.insert(np.cumsum(events / there), 0, 0.0)[lived]
    risk_of_group = np.insert(np.cumsum(share * events / there), 0, 0.0)[lived]
    own_share = np.insert(share, 0, 0.0)[lived]
    scores: Floats = escalated * (group - own_share) - group * risk + risk_of_group
    return scores


def faster_apps(apps: pl.DataFrame, asked: MiningInput) -> Iterator[Finding]:
    """Apps whose sessions escalate sooner or more often than those of the others."""
    policy = asked.policy.escalation
    modes = ", ".join(literal(mode) for mode in policy.escalated_modes)
    often = pl.col("escalated_percent") >= policy.growth_ratio * pl.col("others_percent")
    for app in apps.filter("faster", often).iter_rows(named=True):
        escalated = round(app["escalated_percent"] * app["sessions"] / PERCENT)
        half = "" if app["median_turns"] is None else f", half of them by scored turn {app['median_turns']:.0f}"
        yield finding(
            "faster_app",
            asked.period,
            strength=1.0 - app["others_percent"] / app["escalated_percent"],
            shares=(percent(app["others_percent"], app["about_others"]),),
            row=app,
            escalated=escalated,
            half=half,
            modes_sql=modes,
            app_sql=literal(app["app_id"]),
        )
