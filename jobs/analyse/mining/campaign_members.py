"""Members of campaigns among risky messages, and the description of each campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from jobs.analyse.mining.anonymity import smaller_side
from jobs.analyse.mining.likeness import Vectors, scale_to_unit, unit_vectors
from jobs.analyse.mining.near_duplicates import groups_of
from models.policy.archive import AnonymityPolicy, ArchivePolicy


class Campaigns(NamedTuple):
    """What a period's probes were grouped into.

    Attributes:
        probes: All that were compared: `day, date, session_id, user_id, app_id, turn, risk, alerted, text, marks,
            group, likeness`; `likeness` is the cosine with the middle of the group.
        members: Those of groups with enough sessions and users.
        notes: Bounds that were reached.
    """

    probes: pl.DataFrame
    members: pl.DataFrame
    notes: Sequence[str]


def campaigns_of(probes: pl.DataFrame, policy: ArchivePolicy) -> Campaigns:
    """Group the near duplicates.

    Args:
        probes: As `campaigns.refine` keeps them.
        policy: How alike they are, and how many sessions and users make a campaign.
    """
    rules, k = policy.campaigns, policy.anonymity
    texts = (
        probes.sort("risk", "session_id", "turn", descending=[True, False, False])
        .unique("text", keep="first", maintain_order=True)
        .select("text", "signature", "vector")
    )
    notes = []
    if texts.height > rules.most_texts:
        notes.append(f"Of {texts.height:,} different risky messages {rules.most_texts:,}, the riskiest, were compared.")
        texts = texts.head(rules.most_texts)
    vectors = unit_vectors(texts["vector"].to_numpy())
    groups = groups_of(texts["signature"].to_numpy(), vectors, rules)
    grouped = texts.select(
        "text", group=pl.Series(groups, dtype=pl.Int32), likeness=pl.Series(_likeness(vectors, groups))
    )
    compared = probes.drop("signature", "vector").join(grouped, on="text")
    enough = (pl.col("session_id").n_unique().over("group") >= k.min_sessions) & (
        pl.col("user_id").n_unique().over("group") >= k.min_users
    )
    return Campaigns(compared, compared.filter(enough), notes)


def _likeness(vectors: Vectors, groups: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Vectors:
    """Cosine of each text with the middle of its group, `(n_texts,)`."""
    middles = np.zeros((int(groups.max(initial=-1)) + 1, vectors.shape[1]), dtype=np.float32)
    np.add.at(middles, groups, vectors)
    scale_to_unit(middles)
    likeness: Vectors = np.einsum("ij,ij->i", vectors, middles[groups])
    return likeness


def table_of(found: Campaigns, names: Mapping[int, str], k: AnonymityPolicy) -> pl.DataFrame:
    """One row per campaign, the largest first; `group` is its number.

    `first_day` is when k users had come, `last_day` when k were yet to stop: no day of a single person's.
    """
    least = max(k.min_sessions, k.min_users)
    spans = (
        found.members.group_by("group", "user_id")
        .agg(came=pl.col("date").min(), stopped=pl.col("date").max())
        .group_by("group")
        .agg(first_day=pl.col("came").bottom_k(least).max(), last_day=pl.col("stopped").top_k(least).min())
        .with_columns(
            first_day=pl.min_horizontal("first_day", "last_day"), last_day=pl.max_horizontal("first_day", "last_day")
        )
    )
    of_session = pl.col("session_id").filter("alerted").n_unique()
    return (
        found.members.group_by("group")
        .agg(
            sessions=pl.col("session_id").n_unique(),
            users=pl.col("user_id").n_unique(),
            apps=pl.col("app_id").n_unique(),
            turns=pl.len(),
            different_texts=pl.col("text").n_unique(),
            likeness=pl.col("likeness").mean().round(3),
            mean_risk=pl.col("risk").mean().round(3),
            alert_share=(of_session / pl.col("session_id").n_unique()).round(4),
            about_alert_share=smaller_side(pl.col("alerted")),
        )
        .join(spans, on="group")
        .with_columns(span_days=(pl.col("last_day") - pl.col("first_day")).dt.total_days() + 1)
        .sort("users", "sessions", "group", descending=[True, True, False])
        .select(pl.col("group").replace_strict(names, return_dtype=pl.String).alias("campaign"), pl.all())
    )


def days_of(found: Campaigns, names: Mapping[int, str]) -> pl.DataFrame:
    """One row per campaign and day on which its messages came."""
    return (
        found.members.group_by("group", day="date")
        .agg(turns=pl.len(), sessions=pl.col("session_id").n_unique(), users=pl.col("user_id").n_unique())
        .sort("day", "group")
        .select(
            "day",
            campaign=pl.col("group").replace_strict(names, return_dtype=pl.String),
            turns="turns",
            sessions="sessions",
            users="users",
        )
    )
