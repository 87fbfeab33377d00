"""Escalation: which shapes risk curves have, where they turn, and how soon sessions escalate.

Of each session the archive's engine gives its curve (at most `curve_points` points), when it escalated and when it
alerted; slopes, changes and resampled curves are made day by day, shapes and survival over the period. Turns are
counted as scored turns, which by default are the user's. A session escalates with its first turn in one of
`escalated_modes` or with its first alert. One that ends calm is censored at its last scored turn: it might have
escalated later. The test of apps takes users as the unit (`ByUser`); the estimate's interval takes sessions as
independent.
"""

import warnings
from collections.abc import Iterator, Mapping

import ibis
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
    share,
)
from jobs.analyse.mining.escalation_shapes import (
    ESCALATED,
    THIRDS,
    curve_table,
    described,
    growing,
    shape_table,
    shaped,
)
from jobs.analyse.mining.job import ALL_APPS, Figure, Finding, Frames, Job, JobFindings, MiningInput
from jobs.analyse.mining.source import Tables, beside, first_alerts
from jobs.analyse.mining.statistics import PERCENT, ByUser, Floats, false_discovery_rates, rounded
from jobs.analyse.mining.wording import JOBS, figure, finding
from models.policy.archive import AnonymityPolicy, ArchivePolicy
from streams.archive.catalog import literal

_SLOPE_STEP = 0.1
"""Width of a bar of slopes, risk over the session."""
_DONE_STEP = 10
"""Width of a bar of changes, percent of a session."""
_RISING = pl.col("slope_low") > 0


def heavy(tables: Tables, policy: ArchivePolicy) -> Mapping[str, ibis.Table]:
    """A row per session, and its curve in points."""
    points = _numbered(tables["risk_points"])
    return {"sessions": _sessions(points, tables, policy), "points": _points(points, policy)}


def _numbered(points: ibis.Table) -> ibis.Table:
    """Scored turns with their number in the session, from 0 on, and how many there are."""
    in_order = ibis.window(group_by="session_id", order_by="turn")
    points = points.mutate(
        nth=ibis.row_number().over(in_order).cast("int64"), third=ibis.ntile(len(THIRDS)).over(in_order)
    )
    return points.mutate(scored=points.count().over(ibis.window(group_by="session_id")).cast("int64"))


def _sessions(points: ibis.Table, tables: Tables, policy: ArchivePolicy) -> ibis.Table:
    points = beside(points, first_alerts(tables))
    escalated = points["mode"].isin([mode.value for mode in policy.escalation.escalated_modes])
    return points.group_by("day", "session_id").agg(
        user_id=points.user_id.min(),
        app_id=points.app_id.min(),
        scored=points.scored.max(),
        moded_at=points.nth.min(where=escalated) + 1,
        alerted_at=points.nth.max(where=points.turn <= points.alert_turn) + 1,
        **{name: points.risk.mean(where=points.third == n) for n, name in enumerate(THIRDS)},
    )


def _points(points: ibis.Table, policy: ArchivePolicy) -> ibis.Table:
    rules = policy.escalation
    long = points.filter(points.scored >= rules.min_turns)
    share = long.nth * ibis.least(long.scored, rules.curve_points) / long.scored
    long = long.mutate(point=share.floor().cast("int64"))
    return long.group_by("day", "session_id", "point").agg(nth=long.nth.min(), risk=long.risk.mean())


def refine(frames: Frames, policy: ArchivePolicy) -> Frames:
    """One row per session with all that is known of its curve."""
    curves = described(frames["points"], policy.escalation)
    sessions = (
        frames["sessions"].with_columns(escalated_at=pl.min_horizontal("moded_at", "alerted_at")).drop("moded_at")
    )
    return {"sessions": sessions.join(curves, on="session_id", how="left", maintain_order="left")}


def find(frames: Frames, asked: MiningInput) -> JobFindings:
    """Shapes, survival, slopes and changes of the period."""
    rules, sessions = asked.policy.escalation, frames["sessions"]
    earlier = asked.earlier("sessions", sessions)
    now, before = shaped(sessions, earlier, rules)
    surely = share("surely_rising_percent", _RISING, scale=PERCENT)
    escalated = share("escalated_percent", ESCALATED, scale=PERCENT)
    mean_rise = pl.col("change_rise").mean().alias("mean_rise")
    shapes, apps = shape_table(now, before), app_table(sessions, asked.policy)
    tables = {
        "shapes": shapes,
        "shape_curves": curve_table(now, rules),
        "survival": survival_table(sessions, asked.policy),
        "apps": apps.drop("about_others"),
        "slopes": _in_steps(now, "rise", pl.col("slope") * pl.col("scored"), _SLOPE_STEP, *surely),
        "changes": _in_steps(now, "done_percent", pl.col("change_done") * PERCENT, _DONE_STEP, mean_rise, *escalated),
    }
    return JobFindings(
        figures=figures_of(sessions, now),
        findings=[*faster_apps(apps, asked), *growing(shapes, now, asked)],
        tables={name: rounded(table) for name, table in tables.items()},
        notes=[f"Sessions with fewer than {rules.min_turns} scored turns count in survival alone: they have no curve."],
    )


def figures_of(sessions: pl.DataFrame, curves: pl.DataFrame) -> list[Figure]:
    """Headline numbers of all sessions with a scored turn, and of those with a curve."""
    escalated, led = sessions.filter(ESCALATED), curves.filter(pl.col("change_at") <= pl.col("alerted_at"))
    to_alert = (led["alerted_at"] - led["change_at"]).median()
    escalating, rising = (
        sessions.select(ESCALATED.mean() * PERCENT),
        curves.select(_RISING.fill_null(value=False).mean() * PERCENT),
    )
    to_escalation = escalated["escalated_at"].median()
    return [
        figure("escalated_sessions_percent", escalating.item(), sessions, part=ESCALATED, digits=2),
        figure("median_turns_to_escalation", to_escalation, escalated, part=beyond(about(escalated))),
        figure("median_turns_from_change_to_alert", to_alert, led, part=beyond(about(led))),
        figure("rising_sessions_percent", rising.item(), curves, part=_RISING, digits=2),
    ]


def _in_steps(curves: pl.DataFrame, name: str, place: pl.Expr, step: float, *told: pl.Expr) -> pl.DataFrame:
    """Sessions by where they are, in steps from `<name>_from` to `<name>_to`."""
    begin = pl.col(f"{name}_from")
    steps = ((place / step).floor().cast(pl.Int64) * step).alias(f"{name}_from")
    counts = curves.filter(place.is_not_null()).group_by(steps).agg(*COUNTED, *told)
    return counts.with_columns(begin.round(2), (begin + step).round(2).alias(f"{name}_to")).sort(begin)


_SURVIVAL: dict[str, pl.DataType | type[pl.DataType]] = {
    "app": pl.String,
    "scored_turn": pl.Int64,
    **dict.fromkeys(("calm_percent", "low_percent", "high_percent"), pl.Float64),
    **dict.fromkeys(("sessions", "users"), pl.Int64),
}
_APPS: dict[str, pl.DataType | type[pl.DataType]] = {
    "app_id": pl.String,
    **dict.fromkeys(("sessions", "users"), pl.Int64),
    **dict.fromkeys(("escalated_percent", "others_percent", "median_turns"), pl.Float64),
    **dict.fromkeys(("about_escalated_percent", "about_others_percent", "about_others"), ABOUT_TYPE),
    **dict.fromkeys(("statistic", "chance"), pl.Float64),
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
    frames = [_survival(ALL_APPS, sessions, policy)]
    frames += [_survival(app, sessions.filter(pl.col("app_id") == app), policy) for app in _largest(sessions, policy)]
    return pl.concat(frames)


def _survival(name: str, sessions: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    if sessions.is_empty():
        return pl.DataFrame(schema=_SURVIVAL)
    estimate = stats.ecdf(_times(sessions)).sf
    with warnings.catch_warnings():
        # It has no variance to go by before the first escalation, nor where all have escalated.
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = estimate.confidence_interval(policy.escalation.confidence, method="log-log")
    ends = sessions.select("user_id", at=pl.coalesce("escalated_at", "scored"))
    turns = np.insert(estimate.quantiles, 0, 0.0)
    # How many have not ended before each turn.
    ends_of = (ends["at"], ends.group_by("user_id").agg(pl.col("at").max())["at"])
    there, users_there = (len(each) - np.searchsorted(each.sort().to_numpy(), turns, side="left") for each in ends_of)
    # At the start, where all are calm, and at each step.
    curves = (estimate.probabilities, interval.low.probabilities, interval.high.probabilities)
    calm, low, high = (np.insert(each, 0, 1.0) * PERCENT for each in curves)
    steps = pl.DataFrame(
        {
            "app": [name] * len(turns),
            "scored_turn": turns.astype(np.int64),
            "calm_percent": calm,
            "low_percent": low,
            "high_percent": high,
            "sessions": there,
            "users": users_there,
        },
        schema=_SURVIVAL,
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


JOB = Job("escalation", JOBS["escalation"], version=2, heavy=heavy, find=find, refine=refine)
