"""Memory health: what compaction loses, which facts are doubled, stale or contradict, how full memories are."""

# ruff: noqa: S608 - evidence is made of quoted names and dates

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import ibis
import polars as pl

from jobs.analyse.mining import memory_facts, memory_spaces
from jobs.analyse.mining.anonymity import beyond, beyond_cell
from jobs.analyse.mining.job import Asked, Figure, Finding, Found, Frames, Job, Period, Shown, about, figure
from models.policy.archive import ArchivePolicy, MemoryMining
from streams.archive.catalog import literal

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from jobs.analyse.mining.tables import Tables

_SIZES = ("tokens_before", "tokens_after", "bytes_before", "bytes_after", "probes", "probes_found")
_DIGITS = 3
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
            None if not lost.height else round(float(lost["loss"].median()), _DIGITS),
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


def _find(frames: Frames, asked: Asked) -> Found:
    compactions = frames["compactions"]
    facts, changes = memory_facts.standing(asked), memory_facts.flips(asked)
    of_apps, apps = memory_spaces.apps(asked)
    of_projects, projects = memory_spaces.projects(asked)
    return Found(
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
