"""Overview: how much was said, how far it went, what it cost. The first section of the report.

One row per session is kept of each day; everything else is counted from these. A session counts on the day of its
first turn, with all that happened in it later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import ibis
import polars as pl

from jobs.analyse.mining.anonymity import part_of, smaller_side
from jobs.analyse.mining.job import Figure, Finding, Frames, Job, JobFindings, MiningInput, Shown, figure
from jobs.analyse.mining.overview_findings import findings_of
from jobs.analyse.mining.tables import Tables
from models.events import Mode, Role, Severity
from models.policy.archive import AnonymityPolicy, ArchivePolicy, OverviewMining

if TYPE_CHECKING:
    import ibis.expr.types as ir

_SESSIONS, _USERS = pl.len().alias("sessions"), pl.col("user_id").n_unique().alias("users")
_RANKS = {mode: rank for rank, mode in enumerate(Mode)}
_PER = 1_000


def funnel(sessions: pl.DataFrame, rules: OverviewMining, k: AnonymityPolicy) -> pl.DataFrame:
    """Sessions that came to each stage: `stage`, `sessions`, `users`, `share_ratio` of all sessions.

    A stage that all but a few of the one before came to would tell of these few: it is left out.
    """
    stages = {
        "all sessions": pl.lit(value=True),
        "any risk": pl.col("peak_risk") >= rules.any_risk,
        "watch": pl.col("mode_rank") >= _RANKS[Mode.WATCH],
        "elevated": pl.col("mode_rank") >= _RANKS[Mode.ELEVATED],
        "alert": pl.col("alerts") > 0,
        "critical": (pl.col("mode_rank") >= _RANKS[Mode.CRITICAL]) | (pl.col("critical_alerts") > 0),
        "labelled right": pl.col("right_labels") > 0,
    }
    rows: list[pl.DataFrame] = []
    for stage, reached in stages.items():
        row = sessions.filter(reached).select(pl.lit(stage).alias("stage"), _SESSIONS, _USERS)
        if not rows or not 0 < abs(rows[-1]["sessions"][0] - row["sessions"][0]) < k.min_sessions:
            rows.append(row)
    return pl.concat(rows).with_columns(share_ratio=pl.col("sessions") / max(sessions.height, 1))


def risk_by_day(sessions: pl.DataFrame, rules: OverviewMining) -> pl.DataFrame:
    """Quantiles of peak risk: `day`, `quantile`, `peak_risk`, `sessions` and `users` at or above it.

    A quantile that few sessions reach is these sessions' own risk: by their number the row is shown or not.
    """
    scored = sessions.filter(pl.col("peak_risk").is_not_null())
    at = [
        scored.with_columns(
            peak=pl.col("peak_risk").quantile(quantile, interpolation="lower").over("day"),
        )
        .filter(pl.col("peak_risk") >= pl.col("peak"))
        .group_by("day")
        .agg(
            pl.lit(f"{quantile:.0%} lie below").alias("quantile"),
            pl.col("peak").first().round(4).alias("peak_risk"),
            _SESSIONS,
            _USERS,
        )
        for quantile in rules.risk_quantiles
    ]
    return pl.concat(at).sort("day", "quantile") if at else scored.clear()


def by_day(sessions: pl.DataFrame) -> pl.DataFrame:
    """Of each day: sessions, users, turns, megabytes, sessions that alerted, alerts per 1,000 sessions."""
    return _counted(sessions, "day").sort("day")


def by_app(sessions: pl.DataFrame) -> pl.DataFrame:
    """The same of each app, the one with the most sessions first."""
    return _counted(sessions, "app_id").sort(["sessions", "app_id"], descending=[True, False])


def _counted(sessions: pl.DataFrame, by: str) -> pl.DataFrame:
    alerting = pl.col("alerts") > 0
    return sessions.group_by(by).agg(
        _SESSIONS,
        _USERS,
        pl.col("turns").sum(),
        (pl.col("turns").mean().round(1)).alias("turns_per_session"),
        (pl.col("json_bytes").sum() / 1_000_000).round(2).alias("json_mb"),
        alerting.sum().alias("alerting_sessions"),
        (_PER * pl.col("alerts").sum() / pl.len()).round(2).alias("alerts_per_1000_sessions"),
        about_alerting_sessions=smaller_side(alerting),
        about_alerts_per_1000_sessions=smaller_side(alerting),
    )


def by_summariser(summaries: pl.DataFrame) -> pl.DataFrame:
    """Of each summariser: its summaries, and tokens before and after."""
    return (
        summaries.group_by("summarised_by")
        .agg(
            pl.col("session_id").n_unique().alias("sessions"),
            _USERS,
            pl.col("summaries").sum(),
            pl.col("tokens_before").sum(),
            pl.col("tokens_after").sum(),
        )
        .with_columns(tokens_saved=pl.col("tokens_before") - pl.col("tokens_after"))
        .sort(["summaries", "summarised_by"], descending=[True, False])
    )


_MEGABYTE = 1_000_000
_DEAD_LETTER, _MEMORY = "dead letter", "memory"


def heavy(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, ir.Table]:
    """A row per session; who summarised; what judges and models took, and what could not be read, per day."""
    return {"sessions": _sessions(tables), "summaries": _summaries(tables), "operations": _operations(tables)}


def _sessions(tables: Tables) -> ir.Table:
    turns, points, alerts = tables["turns"], tables["risk_points"], tables["alert_changes"]
    labels, controls = tables["alert_labels"], tables["controls"]
    said = turns.group_by("day", "session_id").agg(
        user_id=turns.user_id.min(),
        app_id=turns.app_id.min(),
        turns=turns.count(),
        user_turns=(turns.role == Role.USER.value).cast("int64").sum(),
        json_bytes=turns.record_bytes.sum(),
    )
    rank = ibis.cases(*((points["mode"] == mode.value, rank) for rank, mode in enumerate(Mode)), else_=0)
    risks = points.group_by("session_id").agg(peak_risk=points.risk.max(), mode_rank=rank.max())
    raised = alerts.group_by("session_id").agg(
        alerts=alerts.alert_id.nunique(),
        critical_alerts=(alerts.severity == Severity.CRITICAL.value).cast("int64").sum(),
    )
    labelled = labels.group_by("session_id").agg(
        labels=labels.count(), right_labels=labels.escalating.cast("int64").sum()
    )
    judged = controls.filter(controls["type"] == "turns_judged")
    judged = judged.group_by("session_id").agg(judgements=judged.count(), judge_ms=judged.elapsed_ms.sum())
    for other in (risks, raised, labelled, judged):
        counts = [name for name in other.columns if name not in {"session_id", "peak_risk"}]
        joined = said.left_join(other, "session_id").drop("session_id_right")
        said = joined.mutate(**{name: joined[name].fill_null(0).cast("int64") for name in counts})
    return said


def _summaries(tables: Tables) -> ir.Table:
    segments = tables["segments"]
    return segments.group_by("day", "session_id", "user_id", "summarised_by").agg(
        summaries=segments.count(),
        tokens_before=segments.tokens_before.sum(),
        tokens_after=segments.tokens_after.sum(),
    )


def _operations(tables: Tables) -> ir.Table:
    letters, commands = tables["dead_letters"], tables["commands"]
    answers = commands.filter(commands["type"].isin(["memory_proposed", "compaction_decided"]))
    unread = letters.select("day", kind=ibis.literal(_DEAD_LETTER), elapsed_ms=ibis.literal(0, "int64"))
    made = answers.select("day", kind=ibis.literal(_MEMORY), elapsed_ms=answers.elapsed_ms.fill_null(0).cast("int64"))
    both = unread.union(made)
    return both.group_by("day", "kind").agg(count=both.count(), elapsed_ms=both.elapsed_ms.sum())


def find(frames: Frames, asked: MiningInput) -> JobFindings:
    """Figures, the funnel, days, apps and costs of a period."""
    sessions = frames["sessions"]
    rules = asked.policy.overview
    tables = {
        "funnel": Shown(
            "How far sessions went",
            f"Each stage counts sessions on its own; a risk is a turn at {rules.any_risk:g} or more.",
            funnel(sessions, rules, asked.policy.anonymity),
        ),
        "risk_by_day": Shown(
            "Risk by day",
            "Quantiles of the sessions' highest risk, by their first day, and how many sessions and users are there or "
            "above. A quantile that fewer reach than may be shown is left out.",
            risk_by_day(sessions, rules),
        ),
        "days": Shown("Days", "Sessions by their first day (UTC).", by_day(sessions)),
        "apps": Shown("Apps", "", by_app(sessions)),
        "summaries": Shown(
            "Summaries",
            "Who summarised the segments that stand, and the tokens that conversations keep instead of all.",
            by_summariser(frames["summaries"]),
        ),
    }
    return JobFindings(_figures(frames, asked), _findings(sessions, asked), tables, _notes(sessions))


def _findings(sessions: pl.DataFrame, asked: MiningInput) -> Sequence[Finding]:
    earlier = asked.parts(asked.period.earlier).get("sessions", sessions.clear())
    return findings_of(sessions, earlier, asked.period, asked.policy)


def _notes(sessions: pl.DataFrame) -> Sequence[str]:
    if not sessions["alerts"].sum():
        return ["No session of the period has an alert."]
    if not sessions["labels"].sum():
        return ["No alert of the period is labelled: `turntide alerts label` says whether it was right."]
    return []


def _about(sessions: pl.DataFrame) -> partial[Figure]:
    """Makes figures that are about these sessions and their users."""
    return partial(figure, of={"sessions": sessions.height, "users": sessions["user_id"].n_unique()})


def _figures(frames: Frames, asked: MiningInput) -> list[Figure]:
    sessions = frames["sessions"]
    return [*_volume(sessions), *_escalation(sessions, asked), *_costs(frames)]


def _volume(sessions: pl.DataFrame) -> list[Figure]:
    told = _about(sessions)
    turns, size = _sum(sessions, "turns"), _sum(sessions, "json_bytes")
    return [
        told("sessions", sessions.height, "Sessions that began in the period."),
        told("users", sessions["user_id"].n_unique(), "Users of these sessions."),
        told("turns", turns, "Turns of these sessions, by users, assistants and tools."),
        told("user_turns", _sum(sessions, "user_turns"), "Turns of users among them."),
        told("turns_as_json_mb", size / _MEGABYTE, "Turns as they came, in megabytes."),
        told("json_bytes_per_turn", _per(size, turns), "One turn as it came, in bytes."),
    ]


def _escalation(sessions: pl.DataFrame, asked: MiningInput) -> list[Figure]:
    risk = asked.policy.overview.any_risk
    at_risk = sessions.filter(pl.col("peak_risk") >= risk)
    alerting, labelled = sessions.filter(pl.col("alerts") > 0), sessions.filter(pl.col("labels") > 0)
    of_alerts, part = _about(alerting), part_of(sessions, pl.col("alerts") > 0)
    return [
        _about(at_risk)(
            "at_risk_ratio",
            _per(at_risk.height, sessions.height),
            f"Sessions with a turn at risk {risk:g} or more, of all.",
            better="lower",
            part=part_of(sessions, pl.col("peak_risk") >= risk),
        ),
        of_alerts("alerting_sessions", alerting.height, "Sessions with an alert.", part=part),
        of_alerts(
            "alerts_per_1000_sessions",
            _per(1_000 * _sum(alerting, "alerts"), sessions.height),
            "Alerts raised, per 1,000 sessions.",
            better="lower",
            part=part,
        ),
        _about(labelled)(
            "label_precision_ratio",
            _per(_sum(labelled, "right_labels"), _sum(labelled, "labels")),
            "Labelled alerts that were right, of all labelled ones.",
            better="higher",
            part=part_of(labelled, pl.col("right_labels") > 0),
        ),
    ]


def _costs(frames: Frames) -> list[Figure]:
    """What summaries save, what judges and models take. What belongs to no session is told of the whole traffic."""
    sessions, summaries, operations = frames["sessions"], frames["summaries"], frames["operations"]
    judged = sessions.filter(pl.col("judgements") > 0)
    saved = _sum(summaries, "tokens_before") - _sum(summaries, "tokens_after")
    letters = operations.filter(pl.col("kind") == _DEAD_LETTER)
    made = operations.filter(pl.col("kind") == _MEMORY)
    everybody, of_judges = _about(sessions), _about(judged)
    answers = _sum(judged, "judgements")
    return [
        _about(summaries.unique("session_id"))(
            "tokens_saved", saved, "Tokens that summaries of segments take out of contexts.", better="higher"
        ),
        of_judges("judgements", answers, "Answers of a slower judge to alerts."),
        of_judges(
            "seconds_per_judgement",
            _per(_sum(judged, "judge_ms") / 1_000, answers),
            "Time of the judge for one answer.",
            better="lower",
        ),
        everybody("llm_memory_answers", _sum(made, "count"), "Answers of a language model about memories of apps."),
        everybody("llm_memory_answers_s", _sum(made, "elapsed_ms") / 1_000, "Time that these took, in seconds."),
        everybody("dead_letters", _sum(letters, "count"), "Records that could not be read.", better="lower"),
    ]


def _sum(frame: pl.DataFrame, column: str) -> int:
    return int(frame[column].sum())


def _per(part: float, whole: float) -> float | None:
    return part / whole if whole else None


JOB = Job(
    name="overview",
    title="Overview",
    question="How much was said, how far did it go, and what did it cost?",
    grouped="session",
    reads=("turns", "risk_points", "alerts", "compactions", "controls", "commands", "dead_letters"),
    version=1,
    heavy=heavy,
    find=find,
)
