"""Growth of topic clusters: those that grow, are new, or hold more sessions with alerts than others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from jobs.analyse.mining.anonymity import counted as known
from jobs.analyse.mining.anonymity import shown_percent, smaller_side
from jobs.analyse.mining.job import Finding, MiningInput, Period, begun
from jobs.analyse.mining.statistics import ByUser, Floats, false_discovery_rates
from jobs.analyse.mining.topic_names import Lookup, lookup, name_of
from models.policy.archive import ArchivePolicy

Words = Mapping[int, Sequence[str]]
"""Of each cluster that has a name, the most telling first."""
Row = Mapping[str, Any]
_MOSTLY = 0.5
_WITH_ALERT = " AND session_id IN (SELECT session_id FROM alerts)"
_TEXTS = (
    "SELECT session_id, user_id, app_id, date, concat_ws(' ', title, summary) AS text FROM topics UNION ALL "
    "SELECT session_id, user_id, app_id, date, array_to_string(key_topics, ' ') FROM segments"
)


def names_of(groups: Iterable[int], words: Words, most: int) -> dict[int, str]:
    """A name of its own for each cluster: of two with the same words, the second has a number.

    >>> names_of([0, 1], {0: ["refund"], 1: ["refund"]}, 4)
    {0: 'refund', 1: 'refund (2)'}
    """
    found: dict[int, str] = {}
    for group in sorted(groups):
        name, number = name_of(words.get(group, []), most), 1
        while (unique := name if number == 1 else f"{name} ({number})") in found.values():
            number += 1
        found[group] = unique
    return found


def members(texts: pl.DataFrame, policy: ArchivePolicy) -> pl.DataFrame:
    """One row per session and cluster that it is about: `here, day, session_id, user_id, group, novel_ratio`."""
    return (
        texts.group_by("here", "day", "session_id", "user_id", "group")
        .agg(texts=pl.len(), novel_ratio=pl.col("novel").cast(pl.Float64).mean())
        .with_columns(share=pl.col("texts") / pl.col("texts").sum().over("here", "session_id"))
        .filter(pl.col("share") >= policy.topics.session_share)
        .select("here", "day", "session_id", "user_id", "group", "novel_ratio")
    )


def cluster_table(texts: pl.DataFrame, sessions: pl.DataFrame, words: Words, policy: ArchivePolicy) -> pl.DataFrame:
    """One row per cluster of the period, the largest first.

    Columns: `group, topic, sessions, users, share, share_before, growth_q, alert_share, alert_share_others, alert_q,
    novel_ratio`; what needs an earlier period is null without one.
    """
    of = members(texts, policy)
    compared = texts.filter(~pl.col("learnt"))
    alerted = sessions.filter("alerted").select("session_id").with_columns(alerted=True)
    here = (
        of.filter("here")
        .join(alerted, on="session_id", how="left")
        .with_columns(pl.col("alerted").fill_null(value=False))
    )
    before = (
        of.filter(~pl.col("here"))
        .join(compared.select("session_id").unique(), on="session_id", how="semi")
        .group_by("group")
        .agg(before=pl.col("session_id").n_unique(), users_before=pl.col("user_id").n_unique())
    )
    counted = (
        here.group_by("group")
        .agg(
            sessions=pl.col("session_id").n_unique(),
            users=pl.col("user_id").n_unique(),
            alerts=pl.col("alerted").sum(),
            novel_ratio=pl.col("novel_ratio").mean().round(3),
            about_alert_share=smaller_side(pl.col("alerted")),
            about_novel_ratio=smaller_side(pl.col("novel_ratio") > 0),
        )
        .join(before, on="group", how="left")
        .with_columns(pl.col("before").fill_null(0))
        .sort("sessions", "group", descending=[True, False])
    )
    now, then = (compared.filter(pl.col("here") == each)["session_id"].n_unique() for each in (True, False))
    with_alerts = texts.filter("here").join(alerted, on="session_id")["session_id"].n_unique()
    x, alerts = (counted[name].to_numpy().astype(np.int64) for name in ("sessions", "alerts"))
    growth, risk = _rates(compared, of, alerted["session_id"], counted["group"])
    names = names_of(counted["group"], words, policy.topics.name_words)
    before_of = known(pl.col("before"), pl.col("users_before"))
    with_alert, without = with_alerts - pl.col("alerts"), now - with_alerts - pl.col("sessions") + pl.col("alerts")
    # Of the other clusters' sessions the users are not told apart: at least one is.
    fewest = pl.min_horizontal(*(pl.when(side > 0).then(side) for side in (with_alert, without)))
    # All sessions' share is known, so either of the two gives the other.
    shares_of = pl.struct(
        pl.min_horizontal(fewest.cast(pl.UInt32), pl.col("about_alert_share").struct.field(name)).alias(name)
        for name in ("sessions", "users")
    )
    return counted.select(
        "group",
        topic=pl.col("group").replace_strict(names, return_dtype=pl.String),
        sessions="sessions",
        users="users",
        share=(pl.col("sessions") / now).round(4),
        share_before=(pl.col("before") / then).round(4) if then else pl.lit(None, pl.Float64),
        growth_q=pl.Series(growth),
        alert_share=(pl.col("alerts") / pl.col("sessions")).round(4),
        alert_share_others=pl.Series(
            np.divide(with_alerts - alerts, now - x, out=np.full(len(x), np.nan), where=now > x)
        )
        .round(4)
        .fill_nan(None),
        alert_q=pl.Series(risk),
        novel_ratio="novel_ratio",
        about_share_before=before_of,
        about_growth_q=before_of,
        about_alert_share=shares_of,
        about_alert_share_others=shares_of,
        about_alert_q=shares_of,
        about_novel_ratio="about_novel_ratio",
    )


def _rates(texts: pl.DataFrame, of: pl.DataFrame, alerted: pl.Series, groups: pl.Series) -> tuple[Floats, Floats]:
    """False discovery rates of each cluster: that its share changed, and that its sessions alert as others do."""
    sessions = texts.select("session_id", "user_id", "here").unique().sort("session_id")
    alerts = sessions["session_id"].is_in(alerted.implode()).to_numpy()
    here, users = sessions["here"].to_numpy(), ByUser(sessions["user_id"])
    users_here = ByUser(sessions.filter("here")["user_id"])
    growth, risk = [], []
    for group in groups:
        having = sessions["session_id"].is_in(of.filter(pl.col("group") == group)["session_id"].implode()).to_numpy()
        growth.append(users.share_chance(here, having))
        risk.append(users_here.share_chance(having[here], alerts[here]))
    return false_discovery_rates(growth), false_discovery_rates(risk)


def cluster_findings(
    texts: pl.DataFrame, sessions: pl.DataFrame, table: pl.DataFrame, words: Words, asked: MiningInput
) -> list[Finding]:
    """New, growing and risky clusters that have a name."""
    here, alerted = texts.filter("here"), sessions.filter("alerted")["session_id"]
    findings = []
    k = asked.policy.anonymity
    enough = (pl.col("sessions") >= k.min_sessions) & (pl.col("users") >= k.min_users)
    for row in table.filter(enough, pl.col("group").is_in(list(words))).iter_rows(named=True):
        grown, risky = _has_grown(row, asked), _is_risky(row, asked)
        if grown or risky:
            by = lookup(here["marks"], here["group"] == row["group"], words[row["group"]])
            found = here.filter(by.holds(here["marks"]))["session_id"].unique()
            alerting = found.filter(found.is_in(alerted.implode()))
            findings += [_grown(row, by, found.len(), asked)] if grown else []
            findings += [_risky(row, by, alerting.len(), asked)] if risky else []
    return findings


def _has_grown(row: Row, asked: MiningInput) -> bool:
    before = row["share_before"]
    return before is not None and row["growth_q"] <= asked.policy.topics.significance and row["share"] > before


def _is_risky(row: Row, asked: MiningInput) -> bool:
    others = row["alert_share_others"]
    if others is None or row["alert_share"] * row["sessions"] < asked.policy.anonymity.min_sessions:
        return False
    return bool(row["alert_q"] <= asked.policy.topics.significance and row["alert_share"] > others)


def _grown(row: Row, by: Lookup, found: int, asked: MiningInput) -> Finding:
    before = shown_percent(100 * row["share_before"], row["about_share_before"], asked.policy.anonymity)
    new = (row["novel_ratio"] or 0) >= _MOSTLY
    return Finding(
        title=f"{'New' if new else 'Growing'} topic: {row['topic']}",
        text=f"{row['share']:.1%} of sessions are about it, {before} were in the earlier period "
        f"(false discovery rate {row['growth_q']:.2g}). {by.about_text(found)}",
        evidence=evidence(by, asked.period),
        strength=round(1 - row["share_before"] / row["share"], 3),
    )


def _risky(row: Row, by: Lookup, found: int, asked: MiningInput) -> Finding:
    others = shown_percent(100 * row["alert_share_others"], row["about_alert_share_others"], asked.policy.anonymity)
    return Finding(
        title=f"Risky topic: {row['topic']}",
        text=f"{row['alert_share']:.1%} of the sessions about it have an alert, {others} of the "
        f"others (false discovery rate {row['alert_q']:.2g}). {by.about_text(found)}",
        evidence=evidence(by, asked.period) + _WITH_ALERT,
        strength=round(1 - row["alert_share_others"] / row["alert_share"], 3),
    )


def evidence(words: Lookup, period: Period) -> str:
    """The texts of a period's sessions that hold enough of the words."""
    return (
        f"SELECT * FROM ({_TEXTS}) WHERE {begun(period)} "  # noqa: S608
        f"AND {words.sql('text')}"
    )
