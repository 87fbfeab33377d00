"""Which clusters of topics grow, are new, or hold more sessions with alerts than others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, hypergeom

from jobs.mining.job import Asked, Finding, Period
from jobs.mining.topic_names import Lookup, lookup, name_of
from models.archive_policy import ArchivePolicy

Words = Mapping[int, Sequence[str]]
"""Of each cluster that has a name, the most telling first."""
Row = Mapping[str, Any]
Counts = NDArray[np.int64]
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
    alerted = sessions.filter("alerted").select("session_id").with_columns(alerted=True)
    here = (
        of.filter("here")
        .join(alerted, on="session_id", how="left")
        .with_columns(pl.col("alerted").fill_null(value=False))
    )
    before = of.filter(~pl.col("here")).group_by("group").agg(before=pl.col("session_id").n_unique())
    counted = (
        here.group_by("group")
        .agg(
            sessions=pl.col("session_id").n_unique(),
            users=pl.col("user_id").n_unique(),
            alerts=pl.col("alerted").sum(),
            novel_ratio=pl.col("novel_ratio").mean().round(3),
        )
        .join(before, on="group", how="left")
        .with_columns(pl.col("before").fill_null(0))
        .sort("sessions", "group", descending=[True, False])
    )
    now, then = (texts.filter(pl.col("here") == each)["session_id"].n_unique() for each in (True, False))
    with_alerts = texts.filter("here").join(alerted, on="session_id")["session_id"].n_unique()
    x, alerts, x_before = (counted[name].to_numpy().astype(np.int64) for name in ("sessions", "alerts", "before"))
    names = names_of(counted["group"], words, policy.topics.name_words)
    return counted.select(
        "group",
        topic=pl.col("group").replace_strict(names, return_dtype=pl.String),
        sessions="sessions",
        users="users",
        share=(pl.col("sessions") / now).round(4),
        share_before=(pl.col("before") / then).round(4) if then else pl.lit(None, pl.Float64),
        growth_q=pl.Series(q_values(x, now, x_before, then)),
        alert_share=(pl.col("alerts") / pl.col("sessions")).round(4),
        alert_share_others=pl.Series(
            np.divide(with_alerts - alerts, now - x, out=np.full(len(x), np.nan), where=now > x)
        )
        .round(4)
        .fill_nan(None),
        alert_q=pl.Series(q_values(alerts, x, with_alerts - alerts, now - x)),
        novel_ratio="novel_ratio",
    )


def q_values(x: Counts, of: Counts | int, others: Counts | int, of_others: Counts | int) -> NDArray[np.float64]:
    """False discovery rates (Benjamini-Hochberg) of two shares being different: Fisher's exact test, two-sided.

    Twice the smaller tail, which is exact where a normal approximation of the two proportions is not: in small groups.
    """
    if not len(x):
        return np.zeros(0)
    of, others, of_others = (np.broadcast_to(np.asarray(each), x.shape) for each in (of, others, of_others))
    drawn_from = of + of_others, x + others, of
    tails = hypergeom.sf(x - 1, *drawn_from), hypergeom.cdf(x, *drawn_from)
    p_values = np.clip(2 * np.minimum(*tails), 0, 1)
    q_values: NDArray[np.float64] = np.round(false_discovery_control(p_values), 6)
    return q_values


def cluster_findings(texts: pl.DataFrame, table: pl.DataFrame, words: Words, asked: Asked) -> list[Finding]:
    """New, growing and risky clusters that have a name."""
    here = texts.filter("here")
    findings = []
    for row in table.filter(pl.col("group").is_in(list(words))).iter_rows(named=True):
        grown, risky = _has_grown(row, asked), _is_risky(row, asked)
        if grown or risky:
            by = lookup(here["marks"], here["group"] == row["group"], words[row["group"]])
            findings += [_grown(row, by, asked.period)] if grown else []
            findings += [_risky(row, by, asked.period)] if risky else []
    return findings


def _has_grown(row: Row, asked: Asked) -> bool:
    before = row["share_before"]
    return before is not None and row["growth_q"] <= asked.policy.topics.significance and row["share"] > before


def _is_risky(row: Row, asked: Asked) -> bool:
    others = row["alert_share_others"]
    return others is not None and row["alert_q"] <= asked.policy.topics.significance and row["alert_share"] > others


def _grown(row: Row, by: Lookup, period: Period) -> Finding:
    new = (row["novel_ratio"] or 0) >= _MOSTLY
    return Finding(
        title=f"{'New' if new else 'Growing'} topic: {row['topic']}",
        text=f"{row['share']:.1%} of sessions are about it, {row['share_before']:.1%} were in the earlier period "
        f"(false discovery rate {row['growth_q']:.2g}). {by.told}",
        evidence=evidence(by, period),
        strength=round(1 - row["share_before"] / row["share"], 3),
    )


def _risky(row: Row, by: Lookup, period: Period) -> Finding:
    return Finding(
        title=f"Risky topic: {row['topic']}",
        text=f"{row['alert_share']:.1%} of the sessions about it have an alert, {row['alert_share_others']:.1%} of the "
        f"others (false discovery rate {row['alert_q']:.2g}). {by.told}",
        evidence=evidence(by, period) + _WITH_ALERT,
        strength=round(1 - row["alert_share_others"] / row["alert_share"], 3),
    )


def evidence(words: Lookup, period: Period) -> str:
    """The texts of a period that hold enough of the words."""
    return (
        f"SELECT * FROM ({_TEXTS}) WHERE date BETWEEN DATE '{period.since}' AND DATE '{period.until}' "  # noqa: S608
        f"AND {words.sql('text')}"
    )
