"""Survival of sessions without escalation: Kaplan and Meier's estimate, and apps held against each other.

A session that ends calm is censored at its last scored turn: it might have escalated later. The test of apps takes
users as the unit (`by_user`); the estimate's interval takes sessions as independent.
"""

# ruff: noqa: S608 - days are dates, texts are literal

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from jobs.analyse.mining.anonymity import beyond, fewest, is_few, part_of, shown_percent
from jobs.analyse.mining.job import ALL_APPS, Coverage, Finding, MiningInput, about, begun
from jobs.analyse.mining.statistics import ByUser, Floats, false_discovery_rates
from models.policy.archive import AnonymityPolicy, ArchivePolicy
from streams.archive.catalog import literal

_ESCALATED = pl.col("escalated_at").is_not_null()
_PERCENT = 100
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "app": pl.String,
    "scored_turn": pl.Int64,
    "calm_percent": pl.Float64,
    "low_percent": pl.Float64,
    "high_percent": pl.Float64,
    "sessions": pl.Int64,
    "users": pl.Int64,
}


class AppComparison(NamedTuple):
    """How an app does against the others."""

    app_id: str
    sessions: int
    users: int
    escalated: int
    escalated_percent: float
    others_percent: float
    median_turns: float | None
    """Scored turns until escalation, of sessions that escalate; None: too few do."""
    false_discovery_rate: float
    faster: bool | None
    """Than the others; None: no difference that chance would not give."""
    about_shares: Coverage | None
    """Whom both shares tell of: all sessions' is known."""
    about_others: Coverage | None


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
    escalated = sessions.filter(_ESCALATED).sort("escalated_at").select("user_id", at="escalated_at")
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
        there = steps.select((pl.col("sessions") >= k.min_sessions) & (pl.col("users") >= k.min_users)).to_series()
        shown[int(there.arg_true().max() or 0)] = True  # type: ignore[arg-type]
    return shown


def _percent(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """At the start, where all are calm, and at each step."""
    return np.insert(share, 0, 1.0) * _PERCENT


def _remaining(ends: pl.Series, turns: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many have not ended before each turn."""
    found: NDArray[np.int64] = len(ends) - np.searchsorted(ends.sort().to_numpy(), turns, side="left")
    return found


def _largest(sessions: pl.DataFrame, policy: ArchivePolicy) -> list[str]:
    """Apps with enough sessions and users, the largest first."""
    apps = sessions.group_by("app_id").agg(sessions=pl.len(), users=pl.col("user_id").n_unique())
    enough = apps.filter(
        pl.col("sessions") >= policy.anonymity.min_sessions, pl.col("users") >= policy.anonymity.min_users
    )
    return enough.sort("sessions", "app_id", descending=[True, False])["app_id"].head(policy.escalation.apps).to_list()


def app_comparisons(sessions: pl.DataFrame, policy: ArchivePolicy) -> list[AppComparison]:
    """Each of the largest apps against all others: log-rank test, corrected for the number of apps.

    Of the test with sessions as independent and that with users as the unit, the larger p-value counts.
    """
    compared = []
    users = ByUser(sessions["user_id"])
    for app in _largest(sessions, policy):
        of_app = pl.col("app_id") == app
        own, others = sessions.filter(of_app), sessions.filter(~of_app)
        if others.is_empty() or sessions["escalated_at"].is_null().all():
            compared.append((app, own, others, 0.0, 1.0))
        else:
            test = stats.logrank(_times(own), _times(others))
            of_users = users.chance_of(logrank_scores(sessions, (sessions["app_id"] == app).to_numpy()))
            compared.append((app, own, others, float(test.statistic), max(float(test.pvalue), of_users)))
    rates = false_discovery_rates([chance for *_, chance in compared])
    return [
        AppComparison(
            app_id=app,
            sessions=own.height,
            users=own["user_id"].n_unique(),
            escalated=own.height - own["escalated_at"].null_count(),
            escalated_percent=_escalated_percent(own),
            others_percent=_escalated_percent(others),
            median_turns=_median(own.filter(_ESCALATED), policy.anonymity),
            false_discovery_rate=float(rate),
            # More escalations than the pooled risk would give: a positive statistic.
            faster=statistic > 0 if rate <= policy.escalation.significance else None,
            about_shares=fewest(part_of(own, _ESCALATED), part_of(others, _ESCALATED)),
            about_others=part_of(others, _ESCALATED),
        )
        for (app, own, others, statistic, _), rate in zip(compared, rates, strict=True)
    ]


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


def _escalated_percent(sessions: pl.DataFrame) -> float:
    return _PERCENT * (1 - sessions["escalated_at"].null_count() / sessions.height) if sessions.height else 0.0


def _median(escalated: pl.DataFrame, k: AnonymityPolicy) -> float | None:
    middle = None if is_few(beyond(about(escalated)), k) else escalated["escalated_at"].median()
    return float(middle) if isinstance(middle, int | float) else None


def faster_apps(apps: list[AppComparison], asked: MiningInput) -> Iterator[Finding]:
    """Apps whose sessions escalate sooner or more often than those of the others."""
    policy = asked.policy.escalation
    modes = ", ".join(literal(mode) for mode in policy.escalated_modes)
    for app in apps:
        if not app.faster or app.escalated_percent < policy.growth_ratio * app.others_percent:
            continue
        others = shown_percent(app.others_percent, app.about_others, asked.policy.anonymity)
        half = "" if app.median_turns is None else f", half of them by scored turn {app.median_turns:.0f}"
        yield Finding(
            title=f"Sessions of {app.app_id} escalate faster than others",
            text=(
                f"{app.escalated:,} of its {app.sessions:,} sessions escalate ({app.escalated_percent:.1f} %){half}; "
                f"of the other apps' sessions {others} (log-rank test, false discovery rate "
                f"{app.false_discovery_rate:.2g})."
            ),
            evidence=(
                "SELECT session_id, user_id, app_id, min(turn) AS escalated_turn FROM (\n"
                f"  SELECT session_id, user_id, app_id, turn FROM risk_points WHERE mode IN ({modes})\n"
                "  UNION ALL SELECT session_id, user_id, app_id, turn FROM alert_changes\n"
                f") WHERE app_id = {literal(app.app_id)} AND {begun(asked.period)}\n"
                # An alert of a session without a scored turn has no place on its curve.
                "AND session_id IN (SELECT session_id FROM risk_points) GROUP BY ALL"
            ),
            strength=1.0 - app.others_percent / app.escalated_percent,
        )
