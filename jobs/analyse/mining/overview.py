"""Overview: how much was said, how far it went, what it cost. The first section of the report.

One row per session is kept of each day; everything else is counted from these. A session counts on the day of its
first turn, with all that happened in it later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import ibis
import polars as pl

from jobs.analyse.mining import overview_tables as shown
from jobs.analyse.mining.anonymity import part_of
from jobs.analyse.mining.job import About, Asked, Figure, Finding, Found, Frames, Job, Shown
from jobs.analyse.mining.overview_findings import findings_of
from jobs.analyse.mining.overview_pictures import pictures
from jobs.analyse.mining.tables import Tables
from models.events import Mode, Role, Severity
from models.policy.archive import ArchivePolicy

if TYPE_CHECKING:
    import ibis.expr.types as ir

_MEGABYTE = 1_000_000
Better = Literal["higher", "lower"] | None
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


def find(frames: Frames, asked: Asked) -> Found:
    """Figures, the funnel, days, apps and costs of a period."""
    sessions = frames["sessions"]
    rules = asked.policy.overview
    days = shown.by_day(sessions)
    apps = shown.by_app(sessions)
    funnel = shown.funnel(sessions, rules, asked.policy.anonymity)
    quantiles = shown.risk_by_day(sessions, rules)
    tables = {
        "funnel": Shown(
            "How far sessions went",
            f"Each stage counts sessions on its own; a risk is a turn at {rules.any_risk:g} or more.",
            funnel,
        ),
        "risk_by_day": Shown(
            "Risk by day",
            "Quantiles of the sessions' highest risk, by their first day, and how many sessions and users are there or "
            "above. A quantile that fewer reach than may be shown is left out.",
            quantiles,
        ),
        "days": Shown("Days", "Sessions by their first day (UTC).", days),
        "apps": Shown("Apps", "", apps),
        "summaries": Shown(
            "Summaries",
            "Who summarised the segments that stand, and the tokens that conversations keep instead of all.",
            shown.by_summariser(frames["summaries"]),
        ),
    }
    return Found(_figures(frames, asked), _findings(sessions, asked), tables, _notes(sessions))


def _findings(sessions: pl.DataFrame, asked: Asked) -> Sequence[Finding]:
    earlier = asked.parts(asked.period.earlier).get("sessions", sessions.clear())
    return findings_of(sessions, earlier, asked.period, asked.policy)


def _notes(sessions: pl.DataFrame) -> Sequence[str]:
    if not sessions["alerts"].sum():
        return ["No session of the period has an alert."]
    if not sessions["labels"].sum():
        return ["No alert of the period is labelled: `turntide alerts label` says whether it was right."]
    return []


class _About:
    """Makes figures that are about some sessions."""

    def __init__(self, sessions: pl.DataFrame) -> None:
        self._sessions, self._users = sessions.height, sessions["user_id"].n_unique()

    def figure(
        self, name: str, value: float | None, meaning: str, better: Better = None, part: About | None = None
    ) -> Figure:
        """One figure about these sessions and their users."""
        return Figure(
            name=name,
            value=value,
            meaning=meaning,
            sessions=self._sessions,
            users=self._users,
            better=better,
            part=part,
        )


def _figures(frames: Frames, asked: Asked) -> list[Figure]:
    sessions = frames["sessions"]
    return [*_volume(sessions), *_escalation(sessions, asked), *_costs(frames)]


def _volume(sessions: pl.DataFrame) -> list[Figure]:
    figure = _About(sessions).figure
    turns, size = _sum(sessions, "turns"), _sum(sessions, "json_bytes")
    return [
        figure("sessions", sessions.height, "Sessions that began in the period."),
        figure("users", sessions["user_id"].n_unique(), "Users of these sessions."),
        figure("turns", turns, "Turns of these sessions, by users, assistants and tools."),
        figure("user_turns", _sum(sessions, "user_turns"), "Turns of users among them."),
        figure("turns_as_json_mb", size / _MEGABYTE, "Turns as they came, in megabytes."),
        figure("json_bytes_per_turn", _per(size, turns), "One turn as it came, in bytes."),
    ]


def _escalation(sessions: pl.DataFrame, asked: Asked) -> list[Figure]:
    risk = asked.policy.overview.any_risk
    at_risk = sessions.filter(pl.col("peak_risk") >= risk)
    alerting, labelled = sessions.filter(pl.col("alerts") > 0), sessions.filter(pl.col("labels") > 0)
    of_alerts, part = _About(alerting), part_of(sessions, pl.col("alerts") > 0)
    return [
        _About(at_risk).figure(
            "at_risk_ratio",
            _per(at_risk.height, sessions.height),
            f"Sessions with a turn at risk {risk:g} or more, of all.",
            "lower",
            part_of(sessions, pl.col("peak_risk") >= risk),
        ),
        of_alerts.figure("alerting_sessions", alerting.height, "Sessions with an alert.", part=part),
        of_alerts.figure(
            "alerts_per_1000_sessions",
            _per(1_000 * _sum(alerting, "alerts"), sessions.height),
            "Alerts raised, per 1,000 sessions.",
            "lower",
            part,
        ),
        _About(labelled).figure(
            "label_precision_ratio",
            _per(_sum(labelled, "right_labels"), _sum(labelled, "labels")),
            "Labelled alerts that were right, of all labelled ones.",
            "higher",
            part_of(labelled, pl.col("right_labels") > 0),
        ),
    ]


def _costs(frames: Frames) -> list[Figure]:
    """What summaries save, what judges and models take. What belongs to no session is told of the whole traffic."""
    sessions, summaries, operations = frames["sessions"], frames["summaries"], frames["operations"]
    judged = sessions.filter(pl.col("judgements") > 0)
    saved = _sum(summaries, "tokens_before") - _sum(summaries, "tokens_after")
    letters = operations.filter(pl.col("kind") == _DEAD_LETTER)
    made = operations.filter(pl.col("kind") == _MEMORY)
    everybody, of_judges = _About(sessions), _About(judged)
    answers = _sum(judged, "judgements")
    return [
        _About(summaries.unique("session_id")).figure(
            "tokens_saved", saved, "Tokens that summaries of segments take out of contexts.", "higher"
        ),
        of_judges.figure("judgements", answers, "Answers of a slower judge to alerts."),
        of_judges.figure(
            "seconds_per_judgement",
            _per(_sum(judged, "judge_ms") / 1_000, answers),
            "Time of the judge for one answer.",
            "lower",
        ),
        everybody.figure(
            "llm_memory_answers", _sum(made, "count"), "Answers of a language model about memories of apps."
        ),
        everybody.figure("llm_memory_answers_s", _sum(made, "elapsed_ms") / 1_000, "Time that these took, in seconds."),
        everybody.figure("dead_letters", _sum(letters, "count"), "Records that could not be read.", "lower"),
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
    pictures=pictures,
)
