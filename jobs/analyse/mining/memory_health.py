"""Memory health: what compaction loses, which facts are doubled, stale or contradict, how full memories are."""

# ruff: noqa: S608 - evidence is made of quoted names and dates

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import ibis
import polars as pl

from jobs.analyse.mining import memory_facts
from jobs.analyse.mining.anonymity import beyond, beyond_cell, part_of, smaller_side
from jobs.analyse.mining.job import (
    Coverage,
    Figure,
    Finding,
    Frames,
    Job,
    JobFindings,
    MiningInput,
    Period,
    Shown,
    about,
    figure,
)
from models.policy.archive import ArchivePolicy, MemoryMining
from streams.archive.catalog import literal

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from jobs.analyse.mining.tables import Tables

_SPACE = ["app_id", "space", "owner"]
_DIGITS = 3
_CONTRADICTING = pl.col("conflicts_with").list.len() > 0


def held_by_apps(asked: MiningInput) -> tuple[list[Figure], Shown]:
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


def held_by_projects(asked: MiningInput) -> tuple[list[Figure], Shown]:
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
    counts: Coverage = {"sessions": int(whole["sessions"][0]), "users": int(whole["users"][0])}
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


def _until(asked: MiningInput, view: str) -> ir.Table:
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


_SIZES = ("tokens_before", "tokens_after", "bytes_before", "bytes_after", "probes", "probes_found")
_QUANTILES = (0.1, 0.5, 0.9)


def compactions(tables: Tables) -> ir.Table:
    """Sums by day, layer and session: segments and topics of sessions, episodes of users."""
    segments, topics, episodes = tables["segments"], tables["topic_changes"], tables["user_episodes"]
    made = topics.filter(topics.compaction.notnull())
    of_topics = {name: made.compaction[name] for name in _SIZES}
    of_segments = {name: segments[name] for name in _SIZES[:4]}
    of_episodes = {name: episodes[name] for name in _SIZES[:2]}
    return ibis.union(
        _summed(segments, "segments", of_segments),
        _summed(made, "topics", of_topics),
        _summed(episodes, "users' episodes", of_episodes),
    )


def _summed(table: ir.Table, layer: str, sizes: dict[str, ir.Value]) -> ir.Table:
    missing = {name: ibis.null("int64") for name in _SIZES if name not in sizes}
    wide = table.mutate(
        layer=ibis.literal(layer), **{name: size.cast("int64") for name, size in sizes.items()}, **missing
    )
    summed = {name: wide[name].sum().cast("int64") for name in _SIZES}
    return wide.group_by("day", "layer", "app_id", "session_id", "user_id").agg(compactions=wide.count(), **summed)


def figures_of(sessions: pl.DataFrame) -> list[Figure]:
    """Tokens that are left of each layer, and the share of probes that are lost."""
    found = [
        figure(
            f"{layer.replace(chr(39), '').replace(' ', '_')}_tokens_kept_ratio",
            _kept(of_layer, "tokens"),
            f"tokens of summaries to tokens of what they stand for, {layer}",
            about(of_layer),
        )
        for (layer,), of_layer in sessions.sort("layer").group_by("layer", maintain_order=True)
    ]
    lost = _losses(sessions)
    return [
        *found,
        figure(
            "topic_loss_median_ratio",
            None if not lost.height else round(float(lost["loss"].median()), _DIGITS),  # type: ignore[arg-type]
            "probes that a search for what was said no longer finds in a topic's summary, of half the sessions",
            about(lost),
            better="lower",
            part=beyond(about(lost)),
        ),
    ]


def tables_of(sessions: pl.DataFrame) -> dict[str, Shown]:
    """By layer and app."""
    about = [pl.col("session_id").n_unique().alias("sessions"), pl.col("user_id").n_unique().alias("users")]
    sizes = (
        sessions.group_by("layer", "app_id").agg(*about, pl.col("compactions", *_SIZES).sum()).sort("layer", "app_id")
    )
    sizes = sizes.select(
        "layer", "app_id", "sessions", "users", "compactions", "tokens_before", "tokens_after",
        tokens_kept_ratio=_ratio("tokens_after", "tokens_before"),
        bytes_kept_ratio=_ratio("bytes_after", "bytes_before"),
    )  # fmt: skip
    quantiles = [
        pl.col("loss").quantile(q, "linear").round(_DIGITS).alias(f"loss_p{round(q * 100)}") for q in _QUANTILES
    ]
    tell_of = [beyond_cell(q).alias(f"about_loss_p{round(q * 100)}") for q in _QUANTILES]
    lost = _losses(sessions).group_by("app_id").agg(*about, pl.col("probes").sum(), *quantiles).sort("app_id")
    lost = lost.with_columns(tell_of)
    return {
        "compaction": Shown(
            "What compaction keeps", "Sizes of what was said, and of the summaries that stand for it.", sizes
        ),
        "loss": Shown(
            "What a search no longer finds",
            "Probes are messages that name something to search for; loss is the share that the summary does not "
            "answer. One value for each session; the messages themselves are in the archive.",
            lost,
        ),
    }


def findings_of(sessions: pl.DataFrame, period: Period, policy: MemoryMining) -> list[Finding]:
    """Apps whose topics lose much."""
    by_app = _losses(sessions).group_by("app_id").agg(pl.col("loss").median(), pl.len().alias("n")).sort("app_id")
    return [
        Finding(
            title=f"Topics of {app_id} lose what was said",
            text=f"In half of {n} sessions a search misses {loss:.0%} or more of what compacted topics named.",
            evidence=f"""
SELECT session_id, user_id, topic_id, compaction.probes AS probes, compaction.probes_found AS probes_found,
  compaction.loss AS loss
FROM topic_changes
WHERE compaction.probes > 0 AND app_id = {literal(app_id)}
  AND date BETWEEN DATE '{period.since}' AND DATE '{period.until}'
""".strip(),
            strength=float(loss),
        )
        for app_id, loss, n in by_app.filter(pl.col("loss") > policy.lossy_min_ratio).iter_rows()
    ]


def _losses(sessions: pl.DataFrame) -> pl.DataFrame:
    """One row for each session with probes: sums over its compactions of the period."""
    of_topics = sessions.filter(pl.col("layer") == "topics")
    summed = of_topics.group_by("app_id", "session_id", "user_id").agg(pl.col("probes", "probes_found").sum())
    return summed.filter(pl.col("probes") > 0).with_columns(loss=1 - pl.col("probes_found") / pl.col("probes"))


def _ratio(after: str, before: str) -> pl.Expr:
    return pl.when(pl.col(before) > 0).then(pl.col(after) / pl.col(before)).round(_DIGITS)


def _kept(sessions: pl.DataFrame, unit: str) -> float | None:
    before, after = (float(sessions[f"{unit}_{when}"].sum()) for when in ("before", "after"))
    return round(after / before, _DIGITS) if before else None


def _heavy(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, ir.Table]:
    return {"compactions": compactions(tables)}


def _find(frames: Frames, asked: MiningInput) -> JobFindings:
    compactions = frames["compactions"]
    facts, changes = memory_facts.active_facts(asked), memory_facts.flips(asked)
    of_apps, apps = held_by_apps(asked)
    of_projects, projects = held_by_projects(asked)
    return JobFindings(
        figures=[
            *figures_of(compactions),
            *memory_facts.figures_of(facts, changes),
            *of_apps,
            *of_projects,
        ],
        findings=[
            *findings_of(compactions, asked.period, asked.policy.memory),
            *memory_facts.findings_of(facts, changes, asked),
        ],
        tables={
            **tables_of(compactions),
            **memory_facts.tables_of(facts, changes),
            "apps": apps,
            "projects": projects,
        },
        notes=_notes(compactions, facts),
    )


def _notes(compactions: pl.DataFrame, facts: pl.DataFrame) -> list[str]:
    notes = []
    if not compactions.filter(pl.col("probes") > 0).height:
        notes.append("No topic was compacted with anything to search for: loss cannot be told.")
    if not facts.height:
        notes.append("No user has an active fact.")
    return notes


JOB = Job(
    name="memory",
    title="Memory health",
    question="Is what is remembered short, true, of use, and still what was said?",
    grouped="date",
    reads=(
        *("compactions", "topics", "user_episodes", "facts", "turns"),
        *("memories", "memory_spaces", "project_items"),
    ),
    version=1,
    heavy=_heavy,
    find=_find,
)
