"""Memories of apps and of projects: how much of their room is used, what says the same, what contradicts.

As of the end of the period. Their sessions and users are those whose conversations changed them, ever before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis
import polars as pl

from jobs.analyse.mining.anonymity import part_of, smaller_side
from jobs.analyse.mining.job import About, Asked, Figure, Shown, about, figure

if TYPE_CHECKING:
    import ibis.expr.types as ir

_SPACE = ["app_id", "space", "owner"]
_DIGITS = 3
_CONTRADICTING = pl.col("conflicts_with").list.len() > 0


def apps(asked: Asked) -> tuple[list[Figure], Shown]:
    """What spaces of memories hold."""
    changes = _until(asked, "app_memory_changes")
    memories = asked.rows(_last(_owned(changes), [*_SPACE, "memory_id"]).filter(lambda t: t.active))
    spaces = asked.rows(_last(_owned(_until(asked, "app_memory_spaces")), _SPACE))
    whom = asked.rows(
        changes.group_by("app_id").agg(sessions=changes.session_id.nunique(), users=changes.user_id.nunique())
    )
    alike = _alike(memories, asked.policy.memory.alike_min_ratio)
    held = memories.group_by("app_id").agg(
        memories=pl.len(),
        contradicting=_CONTRADICTING.sum(),
        pinned=pl.col("pinned").sum(),
        about_contradicting=smaller_side(_CONTRADICTING),
        about_pinned=smaller_side(pl.col("pinned")),
    )
    energy = spaces.group_by("app_id").agg(
        spaces=pl.len(),
        memories_a_space=pl.col("memories").mean().round(1),
        compactions=pl.col("compactions").sum(),
        waiting=pl.col("waiting").sum(),
        energy_ratio=(pl.col("energy_units").sum() / pl.col("energy_capacity_units").sum()).round(_DIGITS),
    )
    frame = whom.join(energy, on="app_id", how="left").join(held, on="app_id", how="left")
    owners = memories.join(alike, on=[*_SPACE, "memory_id"], how="semi")
    of_alike = owners.group_by("app_id").agg(about_alike_pairs=smaller_side(pl.lit(value=True)))
    pairs = alike.group_by("app_id").agg(alike_pairs=pl.len()).join(of_alike, on="app_id")
    frame = frame.join(pairs, on="app_id", how="left")
    frame = frame.with_columns(pl.col("memories", "contradicting", "pinned", "alike_pairs").fill_null(0)).sort("app_id")
    counts = about(memories)
    figures = [
        figure(
            "app_memories_a_space_mean",
            round(memories.height / spaces.height, 1) if spaces.height else None,
            "memories that an app's space holds; at most ten by the usual policy",
            counts,
        ),
        figure(
            "contradicting_app_memories_ratio",
            _share(frame["contradicting"].sum(), memories.height),
            "memories of apps that contradict another one",
            counts,
            better="lower",
            part=part_of(memories, _CONTRADICTING),
        ),
        figure(
            "alike_app_memories_pairs",
            float(alike.height) if memories.height else None,
            "pairs of memories of one space that say the same in other words",
            counts,
            better="lower",
            part=part_of(memories, pl.col("memory_id").is_in(alike["memory_id"].implode())),
        ),
    ]
    return figures, Shown("Memories of apps", "How much of their room is used, and of their energy left.", frame)


def projects(asked: Asked) -> tuple[list[Figure], Shown]:
    """What projects remember, and whether anybody looks at it."""
    changes = _until(asked, "project_changes")
    items = _last(changes, ["app_id", "project_id", "kind", "slot"])
    items = items.filter(items.active)
    kinds = asked.rows(
        items.group_by("app_id").agg(
            memories=(items.kind == "memory").sum(),
            archived=ibis.coalesce(items.memory["archived"], False).cast("int64").sum(),
            never_accessed=((items.kind == "memory") & (items.memory["access_count"] == 0)).sum(),
            superseded=((items.kind == "memory") & items.memory["closed_by"].notnull()).sum(),
            pending=(items.kind == "pending").sum(),
        )
    )
    whom = asked.rows(
        changes.group_by("app_id").agg(sessions=changes.session_id.nunique(), users=changes.user_id.nunique())
    )
    frame = whom.join(kinds, on="app_id", how="left").fill_null(0).sort("app_id")
    memories = int(frame["memories"].sum())
    whole = asked.rows(changes.aggregate(sessions=changes.session_id.nunique(), users=changes.user_id.nunique()))
    counts: About = {"sessions": int(whole["sessions"][0]), "users": int(whole["users"][0])}
    figures = [
        figure(
            "project_memories_never_accessed_ratio",
            _share(frame["never_accessed"].sum(), memories),
            "memories of projects that nobody has asked for yet",
            counts,
            better="lower",
        ),
        figure(
            "project_facts_pending",
            float(frame["pending"].sum()) if frame.height else None,
            "facts of projects that wait for somebody to confirm them",
            counts,
            better="lower",
        ),
    ]
    return figures, Shown("Memories of projects", "What they hold, and what of it was never asked for.", frame)


def _until(asked: Asked, view: str) -> ir.Table:
    table = asked.whole[view]
    return table.filter(table.day <= ibis.literal(asked.period.until))


def _owned(table: ir.Table) -> ir.Table:
    """A user's space is that user's in the app; an app's own has no owner."""
    return table.mutate(owner=ibis.ifelse(table.space == "user", table.user_id, ""))


def _last(table: ir.Table, key: list[str]) -> ir.Table:
    newest = ibis.window(group_by=key, order_by=table.kafka_offset.desc())
    return table.mutate(place=ibis.row_number().over(newest)).filter(lambda t: t.place == 0).drop("place")


def _alike(memories: pl.DataFrame, least: float) -> pl.DataFrame:
    """Pairs of one space that share so many words. A space holds few memories, so that all its pairs are looked at."""
    words = memories.select(
        *_SPACE, "memory_id", words=pl.col("content").str.to_lowercase().str.extract_all(r"\w+").list.unique()
    )
    pairs = words.join(words, on=_SPACE, suffix="_other").filter(pl.col("memory_id") < pl.col("memory_id_other"))
    shared = pl.col("words").list.set_intersection("words_other").list.len()
    either = pl.col("words").list.set_union("words_other").list.len()
    return pairs.filter((either > 0) & (shared / either >= least)).select(*_SPACE, "memory_id", "memory_id_other")


def _share(part: object, of: int) -> float | None:
    return round(float(part) / of, _DIGITS) if of else None  # type: ignore[arg-type]
