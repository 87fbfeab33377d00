"""Health of facts: duplicates, stale ones, values that flip back, growth.

States are as of the end of the period, so that periods can be compared: the last change of each fact until then. Age is
against the latest turn by then, never the clock. The sessions of a fact are those that said it last.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, cast

import ibis
import polars as pl

from jobs.analyse.mining.anonymity import beyond, part_of, smaller_side
from jobs.analyse.mining.job import Figure, Finding, MiningInput, Shown, about, figure
from models.policy.archive import MemoryMining

if TYPE_CHECKING:
    import ibis.expr.types as ir

_FACT = ["app_id", "user_id", "category", "key"]
_USER = ["app_id", "user_id"]
_DIGITS = 3
_SAME = "lower(trim(regexp_replace(value, '\\s+', ' ', 'g')))"


def active_facts(asked: MiningInput) -> pl.DataFrame:
    """The active facts at the end of the period, with `heard_at`, and whether each is a duplicate or stale."""
    changes = asked.whole["fact_changes"]
    changes = changes.filter(changes.day <= ibis.literal(asked.period.until))
    newest = ibis.window(group_by=_FACT, order_by=changes.kafka_offset.desc())
    ranked = changes.mutate(place=ibis.row_number().over(newest))
    last = ranked.filter((ranked.place == 0) & ranked.active)
    facts = asked.rows(last.select(*_FACT, "session_id", same=_normal(last.value), heard_at=last.timestamp))
    policy = asked.policy.memory
    long_enough = pl.col("same").str.len_chars() >= policy.duplicate_min_chars
    again = pl.col("key").n_unique().over(*_USER, "same") > 1
    stale_before = _latest(asked, facts) - timedelta(days=policy.stale_days)
    return facts.with_columns(duplicate=long_enough & again, stale=pl.col("heard_at") < stale_before).drop(
        "same", "key"
    )


def _normal(value: ir.StringValue) -> ir.StringValue:
    return value.re_replace(r"\s+", " ").strip().lower()


def _latest(asked: MiningInput, facts: pl.DataFrame) -> datetime:
    turns = asked.whole["turns"]
    until = turns.filter(turns.day <= ibis.literal(asked.period.until))
    found = asked.rows(until.aggregate(latest=until.timestamp.max()))["latest"][0]
    return cast("datetime", found if found is not None else facts["heard_at"].max())


def flips(asked: MiningInput) -> pl.DataFrame:
    """Changes of the period that brought back the value before the last one: A, then B, then A."""
    changes = asked.whole["fact_changes"]
    said = changes.filter((changes.day <= ibis.literal(asked.period.until)) & changes.cause.isin(["stored", "updated"]))
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
    whom = about(facts)
    per_user = facts.group_by(_USER).len()["len"]
    users = changes.group_by(_USER).agg(pl.col("flips").sum())
    return [
        figure("active_facts", float(facts.height), "facts of users that are true now", whom),
        figure(
            "facts_per_user_median",
            _of(per_user.median()),
            "active facts of half of the users that have any",
            whom,
            part=beyond(whom),
        ),
        figure(
            "facts_per_user_p90",
            _of(per_user.quantile(0.9)),
            "and of the tenth with most",
            whom,
            part=beyond(whom, 0.9),
        ),
        figure(
            "duplicate_facts_ratio",
            _of(facts["duplicate"].mean()),
            "active facts whose value stands under another key of the same user",
            whom,
            better="lower",
            part=part_of(facts, pl.col("duplicate")),
        ),
        figure(
            "stale_facts_ratio",
            _of(facts["stale"].mean()),
            "active facts of which nothing was heard for long",
            whom,
            better="lower",
            part=part_of(facts, pl.col("stale")),
        ),
        figure(
            "flipping_users_ratio",
            _of((users["flips"] > 0).mean()),
            "users whose facts changed in the period, and changed back",
            about(changes),
            better="lower",
            part=part_of(changes, pl.col("flips") > 0),
        ),
    ]


def tables_of(facts: pl.DataFrame, changes: pl.DataFrame) -> dict[str, Shown]:
    """By category."""
    now = facts.group_by("category").agg(
        pl.col("session_id").n_unique().alias("sessions"),
        pl.col("user_id").n_unique().alias("users"),
        pl.len().alias("active"),
        pl.col("duplicate", "stale").mean().round(_DIGITS).name.suffix("_ratio"),
        about_duplicate_ratio=smaller_side(pl.col("duplicate")),
        about_stale_ratio=smaller_side(pl.col("stale")),
    )
    now = now.sort("category")
    moved = _by_category(changes)
    counts = facts.group_by(_USER).agg(pl.len().cast(pl.Int64).alias("facts"), pl.col("session_id")).sort("facts")
    growth = (
        counts.join_asof(_SPANS, on="facts")
        .group_by("span")
        .agg(
            pl.col("facts").min(),
            pl.col("user_id").n_unique().alias("users"),
            pl.col("session_id").explode().n_unique().alias("sessions"),
        )
        .sort("facts")
        .drop("facts")
    )
    return {
        "facts": Shown(
            "Facts by category",
            "Active at the end of the period. Duplicates: the same value under several keys of one user; stale: not "
            "heard of for the policy's days before the latest turn. A value that is said again without more certainty "
            "leaves no event: it counts as not heard of.",
            now,
        ),
        "fact_changes": Shown(
            "Facts that changed", "In the period; a flip brings back the value before the last one.", moved
        ),
        "facts_per_user": Shown("Facts a user", "Users by how many active facts they have.", growth),
    }


_SPANS = pl.DataFrame(
    {"facts": [1, 2, 3, 6, 11, 21, 51], "span": ["1", "2", "3-5", "6-10", "11-20", "21-50", "more than 50"]}
).set_sorted("facts")
"""From how many facts on a user is in which row."""


def _by_category(changes: pl.DataFrame) -> pl.DataFrame:
    flipped = smaller_side(pl.col("flips") > 0)
    of_flips = changes.group_by("category").agg(about_flips=flipped, about_flipping_users_ratio=flipped)
    by_user = changes.group_by("category", *_USER).agg(
        pl.col("changes", "updates", "flips").sum(), pl.col("session_id")
    )
    return (
        by_user.group_by("category")
        .agg(
            pl.col("session_id").explode().n_unique().alias("sessions"),
            pl.col("user_id").n_unique().alias("users"),
            pl.col("changes", "updates", "flips").sum(),
            (pl.col("flips") > 0).mean().round(_DIGITS).alias("flipping_users_ratio"),
        )
        .join(of_flips, on="category")
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
        Finding(
            title=f"Facts of category {category} flip back",
            text=f"{flipping:,} of the {users:,} users whose {category} facts changed ({flipping / users:.0%}) said A, "
            "then B, then A again.",
            evidence=_flips_query(category, period.since, period.until),
            strength=flipping / users,
        )
        for category, users, flipping in whose.sort("category").iter_rows()
        if flipping >= policy.flipping_min_ratio * users
    ]
    twice = facts.filter("duplicate")
    if twice.height:
        share = twice.height / facts.height
        found.append(
            Finding(
                title="The same value stands under several keys",
                text=f"{twice.height:,} of {facts.height:,} active facts ({share:.0%}) repeat another of their user.",
                evidence=_duplicates_query(policy, period.until),
                strength=share,
            )
        )
    return found


def _flips_query(category: str, since: date, until: date) -> str:
    return f"""
SELECT app_id, user_id, session_id, date, confidence FROM (
  SELECT *, {_SAME} AS same, lag({_SAME}, 1) OVER earlier AS before, lag({_SAME}, 2) OVER earlier AS first
  FROM fact_changes WHERE cause IN ('stored', 'updated')
  WINDOW earlier AS (PARTITION BY app_id, user_id, category, "key" ORDER BY kafka_offset)
)
WHERE same = first AND same <> before AND category = '{category}'
  AND date BETWEEN DATE '{since}' AND DATE '{until}'
""".strip()  # noqa: S608 - a category of the models, dates


def _duplicates_query(policy: MemoryMining, until: date) -> str:
    return f"""
SELECT app_id, user_id, session_id, category, timestamp FROM (
  SELECT *, count(DISTINCT "key") OVER (PARTITION BY app_id, user_id, {_SAME}) AS keys
  FROM (
    SELECT * FROM fact_changes WHERE date <= DATE '{until}'
    QUALIFY row_number() OVER (PARTITION BY app_id, user_id, category, "key" ORDER BY kafka_offset DESC) = 1
  )
  WHERE active AND length({_SAME}) >= {policy.duplicate_min_chars:d}
)
WHERE keys > 1
""".strip()  # noqa: S608 - names of this module, a date, a number


def _of(value: object) -> float | None:
    return None if value is None else round(float(value), _DIGITS)  # type: ignore[arg-type]
