"""Memory health: what compaction loses, which facts are doubled, stale or contradict, how full memories are.

States are as of the end of the period, so that periods can be compared: the last change of each fact until then. Age is
against the latest turn by then, never the clock. The sessions of a fact are those that said it last.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, cast

import ibis
import polars as pl

from jobs.analyse.mining.coverage import COUNTED, Coverage, about, beyond, beyond_cell, share, smaller_side, tells_of
from jobs.analyse.mining.job import Figure, Finding, Frames, Job, JobFindings, MiningInput, Period
from jobs.analyse.mining.source import Tables
from jobs.analyse.mining.wording import JOBS, figure, finding
from models.policy.archive import ArchivePolicy, MemoryMining
from streams.archive.catalog import literal

_FACT = ["app_id", "user_id", "category", "key"]
_USER = ["app_id", "user_id"]
DIGITS = 3
_MOST_FACTS = (1, 2, 5, 10, 20, 50)
_SPANS = ("1", "2", "3-5", "6-10", "11-20", "21-50", "more than 50")
"""Rows of users by how many facts they have: up to each of these, and more."""


def until(asked: MiningInput, view: str) -> ibis.Table:
    """The rows of a view up to the period's end."""
    table = asked.whole[view]
    return table.filter(table.day <= ibis.literal(asked.period.until))


def newest(table: ibis.Table, key: list[str]) -> ibis.Table:
    """The last change of each key."""
    last = ibis.window(group_by=key, order_by=table.kafka_offset.desc())
    return table.mutate(place=ibis.row_number().over(last)).filter(ibis._.place == 0).drop("place")


def active_facts(asked: MiningInput) -> pl.DataFrame:
    """The active facts at the end of the period, with `heard_at`, and whether each is a duplicate or stale."""
    last = newest(until(asked, "fact_changes"), _FACT)
    facts = asked.rows(
        last.filter(last.active).select(*_FACT, "session_id", same=_normal(last.value), heard_at=last.timestamp)
    )
    policy = asked.policy.memory
    long_enough = pl.col("same").str.len_chars() >= policy.duplicate_min_chars
    again = pl.col("key").n_unique().over(*_USER, "same") > 1
    turns = until(asked, "turns")
    latest = asked.rows(turns.aggregate(latest=turns.timestamp.max()))["latest"][0] or facts["heard_at"].max()
    stale_before = cast("datetime", latest) - timedelta(days=policy.stale_days)
    return facts.with_columns(duplicate=long_enough & again, stale=pl.col("heard_at") < stale_before).drop(
        "same", "key"
    )


def _normal(value: ibis.expr.types.StringValue) -> ibis.expr.types.StringValue:
    return value.re_replace(r"\s+", " ").strip().lower()


def flips(asked: MiningInput) -> pl.DataFrame:
    """Changes of the period that brought back the value before the last one: A, then B, then A."""
    changes = until(asked, "fact_changes")
    said = changes.filter(changes.cause.isin(["stored", "updated"]))
    order = ibis.window(group_by=_FACT, order_by=said.kafka_offset)
    value = _normal(said.value)
    known = said.mutate(same=value, before=value.lag(1).over(order), earlier=value.lag(2).over(order))
    now = known.filter(known.day >= ibis.literal(asked.period.since))
    flipped = (now.same == now.earlier) & (now.same != now.before)
    return asked.rows(
        now.group_by("app_id", "user_id", "session_id", "category").agg(
            changes=now.count(),
            updates=(now.cause == "updated").sum(),
            flips=ibis.coalesce(flipped, False).cast("int64").sum(),
        )
    )


def fact_figures(facts: pl.DataFrame, changes: pl.DataFrame) -> list[Figure]:
    """Of all active facts, and of what the period changed."""
    whom, per_user = about(facts), facts.group_by(_USER).len()["len"]
    flipping = changes.group_by(_USER).agg(pl.col("flips").sum())["flips"] > 0
    return [
        figure("active_facts", facts.height, whom),
        figure("facts_per_user_median", per_user.median(), whom, part=beyond(whom), digits=DIGITS),
        figure("facts_per_user_p90", per_user.quantile(0.9), whom, part=beyond(whom, 0.9), digits=DIGITS),
        figure("duplicate_facts_ratio", facts["duplicate"].mean(), facts, part=pl.col("duplicate"), digits=DIGITS),
        figure("stale_facts_ratio", facts["stale"].mean(), facts, part=pl.col("stale"), digits=DIGITS),
        figure("flipping_users_ratio", flipping.mean(), changes, part=pl.col("flips") > 0, digits=DIGITS),
    ]


def fact_tables(facts: pl.DataFrame, changes: pl.DataFrame) -> Frames:
    """By category."""
    by_category = facts.group_by("category").agg(
        *COUNTED,
        pl.len().alias("active"),
        *(each for cell in ("duplicate", "stale") for each in share(f"{cell}_ratio", pl.col(cell))),
    )
    place = pl.lit(pl.Series(_MOST_FACTS)).search_sorted(pl.len().over(_USER))
    by_count = facts.with_columns(place=place).group_by("place").agg(*reversed(COUNTED)).sort("place")
    span = pl.col("place").replace_strict(range(len(_SPANS)), _SPANS, return_dtype=pl.String).alias("span")
    return {
        "facts": by_category.with_columns(pl.col("duplicate_ratio", "stale_ratio").round(DIGITS)).sort("category"),
        "fact_changes": _changes_by_category(changes),
        "facts_per_user": by_count.select(span, pl.exclude("place")),
    }


def _changes_by_category(changes: pl.DataFrame) -> pl.DataFrame:
    flipped, users = pl.col("flips") > 0, pl.struct(_USER)
    by_category = changes.group_by("category").agg(
        *COUNTED,
        pl.col("changes", "updates", "flips").sum(),
        (users.filter(flipped).n_unique() / users.n_unique()).round(DIGITS).alias("flipping_users_ratio"),
        *tells_of(smaller_side(flipped), "flips", "flipping_users_ratio"),
    )
    return by_category.sort("category")


def fact_findings(facts: pl.DataFrame, changes: pl.DataFrame, asked: MiningInput) -> Iterator[Finding]:
    """Categories that flip, values that stand twice."""
    policy, period = asked.policy.memory, asked.period
    whose = changes.group_by("category").agg(
        pl.col("user_id").n_unique().alias("users"),
        pl.col("user_id").filter(pl.col("flips") > 0).n_unique().alias("flipping"),
    )
    for category, users, flipping in whose.sort("category").iter_rows():
        if flipping >= policy.flipping_min_ratio * users:
            yield finding(
                "flips",
                period,
                strength=flipping / users,
                category=category,
                users=users,
                flipping=flipping,
                ratio=flipping / users,
                category_sql=literal(category),
            )
    if twice := facts.filter("duplicate").height:
        ratio = twice / facts.height
        yield finding("duplicates", period, strength=ratio, twice=twice, facts=facts.height, ratio=ratio, rules=policy)


_SPACE = ["app_id", "space", "owner"]
_CONTRADICTING = pl.col("conflicts_with").list.len() > 0
_SIZES = ("tokens_before", "tokens_after", "bytes_before", "bytes_after", "probes", "probes_found")
_QUANTILES = (0.1, 0.5, 0.9)
_KEPT_FIGURES = {
    "segments": "segments_tokens_kept_ratio",
    "topics": "topics_tokens_kept_ratio",
    "users' episodes": "users_episodes_tokens_kept_ratio",
}
"""By layer."""


def _heavy(tables: Tables, _policy: ArchivePolicy) -> Mapping[str, ibis.Table]:
    """Sums by day, layer and session: segments and topics of sessions, episodes of users."""
    segments, topics, episodes = tables["segments"], tables["topic_changes"], tables["user_episodes"]
    made = topics.filter(topics.compaction.notnull())
    layers = (
        _summed(segments, "segments", {name: segments[name] for name in _SIZES[:4]}),
        _summed(made, "topics", {name: made.compaction[name] for name in _SIZES}),
        _summed(episodes, "users' episodes", {name: episodes[name] for name in _SIZES[:2]}),
    )
    return {"compactions": ibis.union(*layers)}


def _summed(table: ibis.Table, layer: str, sizes: dict[str, ibis.Value]) -> ibis.Table:
    known = {name: sizes.get(name, ibis.null("int64")).cast("int64") for name in _SIZES}
    wide = table.mutate(layer=ibis.literal(layer), **known)
    summed = {name: wide[name].sum().cast("int64") for name in _SIZES}
    return wide.group_by("day", "layer", "app_id", "session_id", "user_id").agg(compactions=wide.count(), **summed)


def _find(frames: Frames, asked: MiningInput) -> JobFindings:
    compactions = frames["compactions"]
    facts, changes = active_facts(asked), flips(asked)
    of_apps, apps = held_by_apps(asked)
    of_projects, projects = held_by_projects(asked)
    return JobFindings(
        figures=[*figures_of(compactions), *fact_figures(facts, changes), *of_apps, *of_projects],
        findings=[*findings_of(compactions, asked.period, asked.policy.memory), *fact_findings(facts, changes, asked)],
        tables={**tables_of(compactions), **fact_tables(facts, changes), "apps": apps, "projects": projects},
        notes=_notes(compactions, facts),
    )


def _notes(compactions: pl.DataFrame, facts: pl.DataFrame) -> list[str]:
    nothing = {
        "No topic was compacted with anything to search for: loss cannot be told.": _losses(compactions),
        "No user has an active fact.": facts,
    }
    return [note for note, rows in nothing.items() if rows.is_empty()]


def held_by_apps(asked: MiningInput) -> tuple[list[Figure], pl.DataFrame]:
    """What spaces of memories hold."""
    changes = until(asked, "app_memory_changes")
    memories = asked.rows(newest(_owned(changes), [*_SPACE, "memory_id"]).filter(lambda t: t.active))
    spaces = asked.rows(newest(_owned(until(asked, "app_memory_spaces")), _SPACE))
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
        energy_ratio=(pl.col("energy_units").sum() / pl.col("energy_capacity_units").sum()).round(DIGITS),
    )
    owners = memories.join(alike, on=[*_SPACE, "memory_id"], how="semi")
    of_alike = owners.group_by("app_id").agg(about_alike_pairs=smaller_side(pl.lit(value=True)))
    pairs = alike.group_by("app_id").agg(alike_pairs=pl.len()).join(of_alike, on="app_id")
    frame = asked.rows(_counted(changes.group_by("app_id")))
    for other in (energy, held, pairs):
        frame = frame.join(other, on="app_id", how="left")
    frame = frame.with_columns(pl.col("memories", "contradicting", "pinned", "alike_pairs").fill_null(0)).sort("app_id")
    contradicting = memories.select(_CONTRADICTING.mean()).item()
    is_alike = pl.col("memory_id").is_in(alike["memory_id"].implode())
    a_space = memories.height / spaces.height if spaces.height else None
    pairs_found = alike.height if memories.height else None
    figures = [
        figure("app_memories_a_space_mean", a_space, memories, digits=1),
        figure("contradicting_app_memories_ratio", contradicting, memories, part=_CONTRADICTING, digits=DIGITS),
        figure("alike_app_memories_pairs", pairs_found, memories, part=is_alike),
    ]
    return figures, frame


def held_by_projects(asked: MiningInput) -> tuple[list[Figure], pl.DataFrame]:
    """What projects remember, and whether anybody looks at it."""
    changes = until(asked, "project_changes")
    items = newest(changes, ["app_id", "project_id", "kind", "slot"])
    items = items.filter(items.active)
    is_memory, memory = items.kind == "memory", items.memory
    kinds = items.group_by("app_id").agg(
        memories=is_memory.sum(),
        archived=ibis.coalesce(memory["archived"], False).cast("int64").sum(),
        never_accessed=(is_memory & (memory["access_count"] == 0)).sum(),
        superseded=(is_memory & memory["closed_by"].notnull()).sum(),
        pending=(items.kind == "pending").sum(),
    )
    frame = asked.rows(_counted(changes.group_by("app_id"))).join(asked.rows(kinds), on="app_id", how="left")
    frame = frame.fill_null(0).sort("app_id")
    memories = int(frame["memories"].sum())
    whom = cast("Coverage", asked.rows(_counted(changes)).row(0, named=True))
    never = frame["never_accessed"].sum() / memories if memories else None
    figures = [
        figure("project_memories_never_accessed_ratio", never, whom, digits=DIGITS),
        figure("project_facts_pending", frame["pending"].sum() if frame.height else None, whom),
    ]
    return figures, frame


def _counted(changes: Any) -> ibis.Table:
    """How many sessions and users changes are of; `_` is what is aggregated."""
    counts: ibis.Table = changes.agg(sessions=ibis._.session_id.nunique(), users=ibis._.user_id.nunique())
    return counts


def _owned(table: ibis.Table) -> ibis.Table:
    """A user's space is that user's in the app; an app's own has no owner."""
    return table.mutate(owner=ibis.ifelse(table.space == "user", table.user_id, ""))


def _alike(memories: pl.DataFrame, least: float) -> pl.DataFrame:
    """Pairs of one space that share so many words. A space holds few memories, so that all its pairs are looked at."""
    words = memories.select(
        *_SPACE, "memory_id", words=pl.col("content").str.to_lowercase().str.extract_all(r"\w+").list.unique()
    )
    pairs = words.join(words, on=_SPACE, suffix="_other").filter(pl.col("memory_id") < pl.col("memory_id_other"))
    shared = pl.col("words").list.set_intersection("words_other").list.len()
    either = pl.col("words").list.set_union("words_other").list.len()
    return pairs.filter((either > 0) & (shared / either >= least)).select(*_SPACE, "memory_id", "memory_id_other")


def figures_of(sessions: pl.DataFrame) -> list[Figure]:
    """Tokens that are left of each layer, and the share of probes that are lost."""
    lost = _losses(sessions)
    kept = [
        figure(name, of_layer.select(_kept("tokens")).item(), of_layer, digits=DIGITS)
        for layer, name in _KEPT_FIGURES.items()
        if (of_layer := sessions.filter(pl.col("layer") == layer)).height
    ]
    loss = figure("topic_loss_median_ratio", lost["loss"].median(), lost, part=beyond(about(lost)), digits=DIGITS)
    return [*kept, loss]


def tables_of(sessions: pl.DataFrame) -> Frames:
    """By layer and app."""
    sizes = (
        sessions.group_by("layer", "app_id")
        .agg(
            *COUNTED,
            pl.col("compactions", "tokens_before", "tokens_after").sum(),
            _kept("tokens").round(DIGITS),
            _kept("bytes").round(DIGITS),
        )
        .sort("layer", "app_id")
    )
    loss = {f"loss_p{round(q * 100)}": pl.col("loss").quantile(q, "linear").round(DIGITS) for q in _QUANTILES}
    tell_of = {f"about_loss_p{round(q * 100)}": beyond_cell(q) for q in _QUANTILES}
    lost = _losses(sessions).group_by("app_id").agg(*COUNTED, pl.col("probes").sum(), **loss).sort("app_id")
    return {"compaction": sizes, "loss": lost.with_columns(**tell_of)}


def findings_of(sessions: pl.DataFrame, period: Period, policy: MemoryMining) -> list[Finding]:
    """Apps whose topics lose much."""
    by_app = _losses(sessions).group_by("app_id").agg(pl.col("loss").median(), pl.len().alias("n")).sort("app_id")
    return [
        finding("lossy_topics", period, strength=loss, app_id=app_id, sessions=n, loss=loss, app_sql=literal(app_id))
        for app_id, loss, n in by_app.filter(pl.col("loss") > policy.lossy_min_ratio).iter_rows()
    ]


def _losses(sessions: pl.DataFrame) -> pl.DataFrame:
    """One row for each session with probes: sums over its compactions of the period."""
    of_topics = sessions.filter(pl.col("layer") == "topics")
    summed = of_topics.group_by("app_id", "session_id", "user_id").agg(pl.col("probes", "probes_found").sum())
    return summed.filter(pl.col("probes") > 0).with_columns(loss=1 - pl.col("probes_found") / pl.col("probes"))


def _kept(unit: str) -> pl.Expr:
    """Share of the tokens or bytes that summaries keep; null where there were none."""
    before, after = (pl.col(f"{unit}_{when}").sum() for when in ("before", "after"))
    return pl.when(before > 0).then(after / before).alias(f"{unit}_kept_ratio")


JOB = Job("memory", JOBS["memory"], version=1, heavy=_heavy, find=_find)
