"""Overview: how much was said, how far it went, what it cost. The first section of the report.

One row per session is kept of each day; everything else is counted from these. A session counts on the day of its
first turn, with all that happened in it later.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

import ibis
import msgspec
import polars as pl

from jobs.analyse.mining.coverage import COUNTED, PartialShare, part_of, smaller_side, tells_of
from jobs.analyse.mining.job import Figure, Finding, Frames, Job, JobFindings, MiningInput, Period
from jobs.analyse.mining.source import Tables, beside
from jobs.analyse.mining.statistics import ByUser
from jobs.analyse.mining.wording import JOBS, figure, finding
from models.events import Harm, Mode, Role, Severity
from models.events.session import AlertStatus
from models.policy.archive import AnonymityPolicy, ArchivePolicy, OverviewMining
from streams.archive.catalog import literal

_RANKS = {mode: rank for rank, mode in enumerate(Mode)}
_ALERTING = pl.col("alerts") > 0
_CRITICAL = (pl.col("mode_rank") >= _RANKS[Mode.CRITICAL]) | (pl.col("critical_alerts") > 0)
_UNREAD = pl.col("unread").fill_null("{}") != "{}"
_PER = 1_000
_MEGABYTE = 1_000_000
_DEAD_LETTER, _MEMORY = "dead letter", "memory"
_COUNTS = ("mode_rank", "alerts", "critical_alerts", "open_alerts", "labels", "right_labels", "judgements", "judge_ms")
"""Of a session, beside those of its turns; none is 0."""


def heavy(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, ibis.Table]:
    """A row per session; who summarised; what judges and models took, and what could not be read, per day."""
    segments = tables["segments"]
    summaries = segments.group_by("day", "session_id", "user_id", "summarised_by").agg(
        summaries=segments.count(), tokens_before=segments.tokens_before.sum(), tokens_after=segments.tokens_after.sum()
    )
    return {"sessions": _sessions(tables), "summaries": summaries, "operations": _operations(tables)}


def _sessions(tables: Tables) -> ibis.Table:
    turns, points, alerts = tables["turns"], tables["risk_points"], tables["alert_changes"]
    labels, controls, profiles = tables["alert_labels"], tables["controls"], tables["profiles"]
    said = turns.group_by("day", "session_id").agg(
        user_id=turns.user_id.min(),
        app_id=turns.app_id.min(),
        hour=turns.timestamp.min().hour().cast("int64"),
        turns=turns.count(),
        user_turns=(turns.role == Role.USER.value).cast("int64").sum(),
        json_bytes=turns.record_bytes.sum(),
    )
    rank = ibis.cases(*((points["mode"] == mode.value, rank) for mode, rank in _RANKS.items()), else_=0)
    risks = points.group_by("session_id").agg(peak_risk=points.risk.max(), mode_rank=rank.max())
    raised = alerts.group_by("session_id").agg(
        alerts=alerts.alert_id.nunique(),
        critical_alerts=(alerts.severity == Severity.CRITICAL.value).cast("int64").sum(),
        categories=alerts.category.collect(distinct=True).sort(),
    )
    firing = tables["alerts"].filter(tables["alerts"].status == AlertStatus.FIRING.value)
    unanswered = firing.group_by("session_id").agg(open_alerts=firing.count())
    labelled = labels.group_by("session_id").agg(
        labels=labels.count(), right_labels=labels.escalating.cast("int64").sum()
    )
    judged = controls.filter(controls["type"] == "turns_judged")
    judged = judged.group_by("session_id").agg(judgements=judged.count(), judge_ms=judged.elapsed_ms.sum())
    # A session has one profile.
    unread = profiles.group_by("session_id").agg(unread=profiles.unsupported.cast("string").max())
    whole = beside(said, risks, raised, unanswered, labelled, judged, unread)
    return whole.mutate(**{name: whole[name].fill_null(0).cast("int64") for name in _COUNTS})


def _operations(tables: Tables) -> ibis.Table:
    letters, commands = tables["dead_letters"], tables["commands"]
    answers = commands.filter(commands["type"].isin(["memory_proposed", "compaction_decided"]))
    unread = letters.select("day", kind=ibis.literal(_DEAD_LETTER), elapsed_ms=ibis.literal(0, "int64"))
    made = answers.select("day", kind=ibis.literal(_MEMORY), elapsed_ms=answers.elapsed_ms.fill_null(0).cast("int64"))
    both = unread.union(made)
    return both.group_by("day", "kind").agg(count=both.count(), elapsed_ms=both.elapsed_ms.sum())


def find(frames: Frames, asked: MiningInput) -> JobFindings:
    """Figures, the funnel, days, apps and costs of a period."""
    sessions, rules = frames["sessions"], asked.policy.overview
    earlier = asked.earlier("sessions", sessions)
    return JobFindings(
        figures=_figures(frames, rules.any_risk),
        findings=list(findings_of(sessions, earlier, asked.period, asked.policy)),
        tables={
            "funnel": funnel(sessions, asked.policy.anonymity),
            "risk_by_day": risk_by_day(sessions, rules),
            "days": counted_by(sessions, "day").sort("day"),
            **({"hours": counted_by(sessions, "hour").sort("hour")} if asked.period.days == 1 else {}),
            "apps": counted_by(sessions, "app_id").sort("sessions", "app_id", descending=[True, False]),
            "kinds": _by_kind(sessions),
            "languages": unread_languages(sessions),
            "summaries": _by_summariser(frames["summaries"]),
        },
        notes=_notes(sessions),
    )


def funnel(sessions: pl.DataFrame, k: AnonymityPolicy) -> pl.DataFrame:
    """Sessions that came to each stage: `stage`, `sessions`, `users`, `share_ratio` of all sessions.

    A stage that all but a few of the one before came to would tell of these few: it is left out.
    """
    stages = {
        "all sessions": pl.lit(value=True),
        "watch": pl.col("mode_rank") >= _RANKS[Mode.WATCH],
        "elevated": pl.col("mode_rank") >= _RANKS[Mode.ELEVATED],
        "alert": _ALERTING,
        "critical": _CRITICAL,
        "labelled right": pl.col("right_labels") > 0,
    }
    rows: list[pl.DataFrame] = []
    for stage, reached in stages.items():
        row = sessions.filter(reached).select(pl.lit(stage).alias("stage"), *COUNTED)
        if not rows or not 0 < abs(rows[-1]["sessions"][0] - row["sessions"][0]) < k.min_sessions:
            rows.append(row)
    return pl.concat(rows).with_columns(share_ratio=pl.col("sessions") / max(sessions.height, 1))


def risk_by_day(sessions: pl.DataFrame, rules: OverviewMining) -> pl.DataFrame:
    """Quantiles of peak risk: `day`, `quantile`, `peak_risk`, `sessions` and `users` at or above it.

    A quantile that few sessions reach is these sessions' own risk: by their number the row is shown or not.
    """
    scored = sessions.filter(pl.col("peak_risk").is_not_null())
    at = [
        scored.with_columns(peak=pl.col("peak_risk").quantile(quantile, interpolation="lower").over("day"))
        .filter(pl.col("peak_risk") >= pl.col("peak"))
        .group_by("day")
        .agg(
            pl.lit(f"{quantile:.0%} lie below").alias("quantile"),
            pl.col("peak").first().round(4).alias("peak_risk"),
            *COUNTED,
        )
        for quantile in rules.risk_quantiles
    ]
    return pl.concat(at).sort("day", "quantile") if at else scored.clear()


def counted_by(sessions: pl.DataFrame, by: str) -> pl.DataFrame:
    """Of each day or app: sessions, users, turns, megabytes, sessions that alerted, alerts per 1,000 sessions."""
    return sessions.group_by(by).agg(
        *COUNTED,
        pl.col("turns").sum(),
        pl.col("turns").mean().round(1).alias("turns_per_session"),
        (pl.col("json_bytes").sum() / _MEGABYTE).round(2).alias("json_mb"),
        _ALERTING.sum().alias("alerting_sessions"),
        (_PER * pl.col("alerts").sum() / pl.len()).round(2).alias("alerts_per_1000_sessions"),
        *tells_of(smaller_side(_ALERTING), "alerting_sessions", "alerts_per_1000_sessions"),
    )


def unread_languages(sessions: pl.DataFrame) -> pl.DataFrame:
    """Turns of users that no rule reads and no scorer, by language: `turns`, and `share_ratio` of all of users."""
    told = sessions.filter(_UNREAD).select("session_id", "user_id", "unread")
    rows = [
        {"session_id": session, "user_id": user, "language": language, "turns": turns}
        for session, user, unread in told.iter_rows()
        for language, turns in msgspec.json.decode(unread, type=dict[str, int]).items()
    ]
    schema = {"session_id": pl.String, "user_id": pl.String, "language": pl.String, "turns": pl.Int64}
    return (
        pl.DataFrame(rows, schema)
        .group_by("language")
        .agg(*COUNTED, pl.col("turns").sum())
        .with_columns(share_ratio=pl.col("turns") / max(_sum(sessions, "user_turns"), 1))
        .sort("turns", "language", descending=[True, False])
    )


def _by_kind(sessions: pl.DataFrame) -> pl.DataFrame:
    """Sessions that alerted, in each kind that their alerts name; `other` where they name none."""
    named = pl.col("categories").list.set_difference([Harm.OTHER.value])
    each = sessions.filter(_ALERTING).with_columns(category=named).explode("category")
    each = each.with_columns(pl.col("category").fill_null(Harm.OTHER.value))
    return each.group_by("category").agg(*COUNTED).sort("sessions", "category", descending=[True, False])


def _by_summariser(summaries: pl.DataFrame) -> pl.DataFrame:
    return (
        summaries.group_by("summarised_by")
        .agg(*COUNTED, pl.col("summaries", "tokens_before", "tokens_after").sum())
        .with_columns(tokens_saved=pl.col("tokens_before") - pl.col("tokens_after"))
        .sort("summaries", "summarised_by", descending=[True, False])
    )


def _notes(sessions: pl.DataFrame) -> Sequence[str]:
    if not sessions["alerts"].sum():
        return ["No session of the period has an alert."]
    if not sessions["labels"].sum():
        return ["No alert of the period is labelled: `turntide alerts label` says whether it was right."]
    return []


def _figures(frames: Frames, risk: float) -> list[Figure]:
    """Volume, escalation and costs. What belongs to no session is told of the whole traffic.

    Alerts, their labels and critical sessions are counted however few they are: a week with one of them is not calm.
    """
    sessions, summaries, operations = frames["sessions"], frames["summaries"], frames["operations"]
    at_risk = pl.col("peak_risk") >= risk
    risky, alerting, critical, labelled, judged = (
        sessions.filter(each)
        for each in (at_risk, _ALERTING, _CRITICAL, pl.col("labels") > 0, pl.col("judgements") > 0)
    )
    letters, made = (operations.filter(pl.col("kind") == kind) for kind in (_DEAD_LETTER, _MEMORY))
    turns, size, answers = _sum(sessions, "turns"), _sum(sessions, "json_bytes"), _sum(judged, "judgements")
    unread, of_users = _sum(unread_languages(sessions), "turns"), _sum(sessions, "user_turns")
    alerts, right = _sum(sessions, "alerts"), _sum(labelled, "right_labels")
    precision = _per(right, _sum(labelled, "labels"))
    return [
        figure("sessions", sessions.height, sessions),
        figure("users", sessions["user_id"].n_unique(), sessions),
        figure("turns", turns, sessions),
        figure("user_turns", of_users, sessions),
        figure("unread_turns_ratio", _per(unread, of_users), sessions, part=_UNREAD),
        figure("turns_as_json_mb", size / _MEGABYTE, sessions),
        figure("json_bytes_per_turn", _per(size, turns), sessions),
        figure("at_risk_ratio", _per(risky.height, sessions.height), risky, part=part_of(sessions, at_risk), risk=risk),
        figure("alerts", alerts, alerting, always=True),
        figure("alerting_sessions", alerting.height, alerting, always=True),
        figure("critical_sessions", critical.height, critical, always=True),
        figure("open_alerts", _sum(sessions, "open_alerts"), alerting, always=True),
        figure("right_alerts", right, labelled, always=True),
        figure("false_alerts", _sum(labelled, "labels") - right, labelled, always=True),
        figure("alerts_per_1000_sessions", _per(_PER * alerts, sessions.height), sessions),
        figure("label_precision_ratio", precision, labelled, part=pl.col("right_labels") > 0),
        figure("tokens_saved", _sum(summaries, "tokens_before") - _sum(summaries, "tokens_after"), summaries),
        figure("judgements", answers, judged),
        figure("seconds_per_judgement", _per(_sum(judged, "judge_ms") / 1_000, answers), judged),
        figure("llm_memory_answers", _sum(made, "count"), sessions),
        figure("llm_memory_answers_s", _sum(made, "elapsed_ms") / 1_000, sessions),
        figure("dead_letters", _sum(letters, "count"), sessions),
    ]


def _sum(frame: pl.DataFrame, column: str) -> int:
    return int(frame[column].sum())


def _per(part: float, whole: float) -> float | None:
    return part / whole if whole else None


class _Alerting(NamedTuple):
    """How many of some sessions alerted."""

    alerting: int
    sessions: int

    @property
    def share(self) -> float:
        return self.alerting / self.sessions

    @property
    def text(self) -> str:
        return f"{_PER * self.share:,.1f} in 1,000"

    def shown(self, text: str, instead: str) -> PartialShare:
        """A text with this share, which tells of the sessions that alerted."""
        few = {"sessions": self.alerting, "users": self.alerting} if self.alerting else None
        return PartialShare(text, few, instead)  # type: ignore[arg-type]


def findings_of(
    sessions: pl.DataFrame, earlier: pl.DataFrame, period: Period, policy: ArchivePolicy
) -> Iterator[Finding]:
    """Days and apps with far more alerting sessions than the rest, and a change of their share from the days before.

    Shares are compared with users as the unit (`ByUser`), corrected for all days, or all apps, together (Benjamini and
    Hochberg). The strength is the part of the greater share that the other does not explain: 1 - rest / share.
    """
    fewer = f"fewer than {max(policy.anonymity.min_sessions, policy.anonymity.min_users)}"
    for by, named in (("day", "alerting_day"), ("app_id", "alerting_app")):
        for name, group, rest in _standing_out(sessions, by, policy.overview):
            yield finding(
                named,
                Period(name, name) if isinstance(name, date) else period,
                strength=1 - rest.share / group.share,
                shares=(rest.shown(rest.text, f"{fewer} sessions"),),
                name=name,
                group=group,
                besides_sql="" if by == "day" else f"app_id = {literal(str(name))} AND ",
            )
    both = pl.concat(
        [frame.select("user_id", "alerts", here=here) for frame, here in ((sessions, True), (earlier, False))]
    )
    for here, group, rest in _standing_out(both, "here", policy.overview):
        shares = (
            each.shown(
                f"{each.alerting:,} of {each.sessions:,} sessions ({each.text})",
                f"{fewer} of {each.sessions:,} sessions",
            )
            for each in ((group, rest) if here else (rest, group))
        )
        yield finding(
            "alerts_changed",
            Period(period.earlier.since, period.until),
            strength=1 - rest.share / group.share,
            shares=tuple(shares),
            more="More" if here else "Fewer",
            days=period.days,
            besides_sql="",
        )


def _standing_out(
    sessions: pl.DataFrame, by: str, rules: OverviewMining
) -> Iterator[tuple[object, _Alerting, _Alerting]]:
    """Days, apps or periods with more alerting sessions than the rest, and the rest."""
    counts = sessions.group_by(by).agg(alerting=_ALERTING.sum(), sessions=pl.len()).sort(by)
    counts = counts.filter(pl.col("sessions") < sessions.height)
    users, alerting = ByUser(sessions["user_id"]), (sessions["alerts"] > 0).to_numpy()
    rates = users.share_rates(((sessions[by] == name).to_numpy() for name in counts[by]), alerting)
    for (name, hits, of), rate in zip(counts.iter_rows(), rates, strict=True):
        group, rest = _Alerting(hits, of), _Alerting(int(alerting.sum()) - hits, sessions.height - of)
        if rate <= rules.significance and group.share >= rules.times_the_rest * rest.share:
            yield name, group, rest


JOB = Job("overview", JOBS["overview"], version=6, heavy=heavy, find=find)
