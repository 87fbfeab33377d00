"""Alerts as people found them: which were right, how soon somebody looked, and what was missed.

An alert counts on the day of its session's first turn, with what was said of it later. Times are those at which the
broker took the records, so that no producer's clock is in them. Labels by kind of harm and labels by app are two tables
with nothing in common but their sum: kinds of one app would tell by subtraction of the apps that are too small.
"""

from collections.abc import Mapping, Sequence

import ibis
import polars as pl

from jobs.analyse.mining.coverage import ABOUT, COUNTED, about, beyond, beyond_cell, part_of
from jobs.analyse.mining.job import Figure, Frames, Job, JobFindings, MiningInput
from jobs.analyse.mining.source import Tables, beside
from jobs.analyse.mining.statistics import precision_by, rounded
from jobs.analyse.mining.wording import JOBS, figure
from models.events import AlertStatus
from models.policy.archive import ArchivePolicy

_SLOW = 0.9
"""Of the times until somebody looked, beside the median."""
_MINUTE_S = 60
_ANSWERED, _LABELLED, _RIGHT = (
    pl.col("minutes").is_not_null(), pl.col("escalating").is_not_null(), pl.col("escalating").fill_null(value=False),
)  # fmt: skip


def heavy(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, ibis.Table]:
    """A row per alert, with its label; a row per session that was labelled as escalating and raised none."""
    changes, labels, controls, turns = (tables[view] for view in ("alert_changes", "alert_labels", "controls", "turns"))
    answered = changes.status == AlertStatus.ACKNOWLEDGED.value
    alerts = changes.group_by("day", "session_id", "alert_id").agg(
        user_id=changes.user_id.min(),
        app_id=changes.app_id.min(),
        category=changes.category.argmax(changes.kafka_offset),
        raised_s=changes.appended_at.min().epoch_seconds(),
        answered_s=changes.appended_at.min(where=answered).epoch_seconds(),
    )
    said = labels.select("session_id", "alert_id", "escalating")
    alerts = alerts.left_join(said, ["session_id", "alert_id"]).drop("session_id_right", "alert_id_right")
    alerts = alerts.mutate(minutes=(alerts.answered_s - alerts.raised_s).cast("double") / _MINUTE_S)

    of_sessions = controls.filter((controls["type"] == "alert_labelled") & (controls.alert_id == ""))
    latest = of_sessions.group_by("day", "session_id").agg(
        escalating=of_sessions.escalating.argmax(of_sessions.kafka_offset)
    )
    missed = latest.filter(latest.escalating).anti_join(changes, "session_id").drop("escalating")
    whose = turns.group_by("session_id").agg(user_id=turns.user_id.min(), app_id=turns.app_id.min())
    return {"alerts": alerts.drop("alert_id", "raised_s", "answered_s"), "missed": beside(missed, whose)}


def find(frames: Frames, _asked: MiningInput) -> JobFindings:
    """Precision by kind of harm and by app with its interval, times by app, and sessions that were missed."""
    alerts, missed = frames["alerts"], frames["missed"]
    labelled, answered = alerts.filter(_LABELLED), alerts.filter(_ANSWERED)
    tables = {
        "kinds": precision_by(labelled, "category"),
        "apps": precision_by(labelled, "app_id"),
        "answers": _answers(answered),
        "missed": missed.group_by("app_id").agg(*COUNTED).sort("sessions", "app_id", descending=[True, False]),
    }
    return JobFindings(
        figures=_figures(alerts, missed),
        tables={name: rounded(table) for name, table in tables.items()},
        notes=_notes(alerts, missed),
    )


def _answers(answered: pl.DataFrame) -> pl.DataFrame:
    at = {"minutes_median": 0.5, "minutes_p90": _SLOW}
    table = answered.group_by("app_id").agg(
        *COUNTED,
        pl.len().alias("acknowledged"),
        *(pl.col("minutes").quantile(quantile, interpolation="linear").alias(cell) for cell, quantile in at.items()),
    )
    whom = [beyond_cell(quantile).alias(ABOUT + cell) for cell, quantile in at.items()]
    return table.with_columns(whom).sort("acknowledged", "app_id", descending=[True, False])


def _figures(alerts: pl.DataFrame, missed: pl.DataFrame) -> list[Figure]:
    answered, right = alerts.filter(_ANSWERED), alerts.filter(_RIGHT)
    known = pl.concat(
        [
            right.select("session_id", "user_id", found=pl.lit(value=True)).unique(),
            missed.select("session_id", "user_id", found=pl.lit(value=False)),
        ]
    )
    minutes, whom = answered["minutes"], about(answered)
    slow = minutes.quantile(_SLOW, interpolation="linear")
    return [
        figure("labelled_alerts_ratio", alerts.select(_LABELLED.mean()).item(), alerts, part=_LABELLED),
        figure("acknowledged_alerts_ratio", alerts.select(_ANSWERED.mean()).item(), alerts, part=_ANSWERED),
        figure("minutes_to_acknowledge_median", minutes.median(), answered, part=beyond(whom)),
        figure("minutes_to_acknowledge_p90", slow, answered, part=beyond(whom, _SLOW)),
        figure("missed_sessions", missed.height, missed, always=True),
        figure("found_of_known_ratio", known["found"].mean(), known, part=part_of(known, pl.col("found"))),
    ]


def _notes(alerts: pl.DataFrame, missed: pl.DataFrame) -> Sequence[str]:
    notes = []
    if not alerts.filter(_LABELLED).height:
        notes.append("No alert of the period is labelled: `turntide alerts label` says whether it was right.")
    if not missed.height:
        notes.append(
            "Nobody has labelled a session without an alert as escalating (`turntide alerts label --session`): how "
            "many were missed is not known."
        )
    return notes


JOB = Job("alerts", JOBS["alerts"], version=1, heavy=heavy, find=find)
