"""Health of facts: duplicates, stale ones, values that flip back, growth.

States are as of the end of the period, so that periods can be compared: the last change of each fact until then. Age is
against the latest turn by then, never the clock. The sessions of a fact are those that said it last.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

import ibis
import polars as pl

from jobs.analyse.mining.coverage import COUNTED, about, beyond, share, smaller_side
from jobs.analyse.mining.job import Figure, Finding, Frames, MiningInput
from jobs.analyse.mining.wording import figure, finding
from streams.archive.catalog import literal

_FACT = ["app_id", "user_id", "category", "key"]
_USER = ["app_id", "user_id"]
DIGITS = 3


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
    stale_before = _latest(asked, facts) - timedelta(days=policy.stale_days)
    return facts.with_columns(duplicate=long_enough & again, stale=pl.col("heard_at") < stale_before).drop(
        "same", "key"
    )


def _normal(value: ibis.expr.types.StringValue) -> ibis.expr.types.StringValue:
    return value.re_replace(r"\s+", " ").strip().lower()


def _latest(asked: MiningInput, facts: pl.DataFrame) -> datetime:
    turns = until(asked, "turns")
    found = asked.rows(turns.aggregate(latest=turns.timestamp.max()))["latest"][0]
    return cast("datetime", found if found is not None else facts["heard_at"].max())


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


def figures_of(facts: pl.DataFrame, changes: pl.DataFrame) -> list[Figure]:
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


def tables_of(facts: pl.DataFrame, changes: pl.DataFrame) -> Frames:
    """By category."""
    by_category = facts.group_by("category").agg(
        *COUNTED,
        pl.len().alias("active"),
        *(each for cell in ("duplicate", "stale") for each in share(f"{cell}_ratio", pl.col(cell))),
    )
    per_user = facts.group_by(_USER).agg(pl.len().cast(pl.Int64).alias("facts"), pl.col("session_id"))
    by_count = (
        per_user.sort("facts")
        .join_asof(_SPANS, on="facts")
        .explode("session_id")
        .group_by("span")
        .agg(pl.col("facts").min(), *reversed(COUNTED))
        .sort("facts")
        .drop("facts")
    )
    return {
        "facts": by_category.with_columns(pl.col("duplicate_ratio", "stale_ratio").round(DIGITS)).sort("category"),
        "fact_changes": _changes_by_category(changes),
        "facts_per_user": by_count,
    }


_SPANS = pl.DataFrame(
    {"facts": [1, 2, 3, 6, 11, 21, 51], "span": ["1", "2", "3-5", "6-10", "11-20", "21-50", "more than 50"]}
).set_sorted("facts")
"""From how many facts on a user is in which row."""


def _changes_by_category(changes: pl.DataFrame) -> pl.DataFrame:
    flipping = changes.group_by("category", *_USER).agg(pl.col("flips").sum()).group_by("category")
    users = flipping.agg((pl.col("flips") > 0).mean().round(DIGITS).alias("flipping_users_ratio"))
    flipped = smaller_side(pl.col("flips") > 0)
    return (
        changes.group_by("category")
        .agg(
            *COUNTED,
            pl.col("changes", "updates", "flips").sum(),
            about_flips=flipped,
            about_flipping_users_ratio=flipped,
        )
        .join(users, on="category")
        .sort("category")
    )


def findings_of(facts: pl.DataFrame, changes: pl.DataFrame, asked: MiningInput) -> list[Finding]:
    """Categories that flip, values that stand twice."""
    policy, period = asked.policy.memory, asked.period
    whose = changes.group_by("category").agg(
        pl.col("user_id").n_unique().alias("users"),
        pl.col("user_id").filter(pl.col("flips") > 0).n_unique().alias("flipping"),
    )
    found = [
        finding(
            "flips",
            period,
            strength=flipping / users,
            category=category,
            users=users,
            flipping=flipping,
            ratio=flipping / users,
            category_sql=literal(category),
        )
        for category, users, flipping in whose.sort("category").iter_rows()
        if flipping >= policy.flipping_min_ratio * users
    ]
    if twice := facts.filter("duplicate").height:
        ratio = twice / facts.height
        duplicates = finding(
            "duplicates", period, strength=ratio, twice=twice, facts=facts.height, ratio=ratio, rules=policy
        )
        found.append(duplicates)
    return found
