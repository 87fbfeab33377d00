"""Counted turns of each session, from the log alone: the rules of `models.session.fold`, as SQL.

A session has lives: from its first turn to its end, and from the first higher number after it to the next. A closing
profile says where a life ends. Within one, a turn is

* `new`: its number is higher than all before, or among the last `reorder_reach_turns` and not there yet: it counts;
* `duplicate`: its number is there;
* `late`: it is further back than that, or not above the life before;
* `ended`: it came after the end, with no higher number: it belongs to no life.
"""

# ruff: noqa: S608 - tables are constants of this project, values are numbers

from __future__ import annotations

from typing import NamedTuple

import duckdb

from models.events.base import Role
from models.policy import Policy
from models.policy.stream import WindowShape
from streams.archive.catalog import literal
from streams.archive.schema import AGED, ERASED, EXPIRED, OFFSETS, RAW, SKIPPED

MICROSECOND = 1_000_000
TABLES = (
    "profiles",
    "points",
    "raised",
    "read",
    "clock",
    "turns",
    "returned",
    "claimed",
    "sums",
    "joined",
    "windows",
    "counted",
)
"""Temporary tables of the checks, without their prefix."""


class Place(NamedTuple):
    """A partition of `turns.v1`, by the topic's full name."""

    topic: str
    partition: int


class Panes(NamedTuple):
    """A window's shape in whole numbers, see `models.risk.windows`."""

    slide_us: int
    grace_us: int
    span: int

    @classmethod
    def of(cls, shape: WindowShape) -> Panes:
        """Of the policy's shape."""
        return cls(
            int(shape.slide.total_seconds() * MICROSECOND),
            int(shape.grace.total_seconds() * MICROSECOND),
            shape.length // shape.slide,
        )


def lay_out(con: duckdb.DuckDBPyConnection, place: Place, policy: Policy) -> None:
    """Make the temporary tables that the checks of one partition read.

    * `parity_profiles`: its profiles, each once, `o` the offset of their cause;
    * `parity_points`: their risk points;
    * `parity_raised`: alerts that they raised;
    * `parity_clock`: the watermark after each record, in µs;
    * `parity_turns`: its turns, with `verdict`, `life`, the watermark, the turn's `risk`, and what the session's life
      came to with it;
    * `parity_returned`: sessions of which nothing is told: after their end came a number below it. A session that is
      forgotten by then begins anew; whether it is depends on all others of the partition.
    """
    con.execute(f"CREATE OR REPLACE TEMP TABLE parity_profiles AS {_profiles(place)}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE parity_points AS {_POINTS}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE parity_raised AS {_raised(place)}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE parity_read AS {_read(place)}")
    lateness_us = int(policy.partition.watermark_lateness.total_seconds() * MICROSECOND)
    con.execute(f"CREATE OR REPLACE TEMP TABLE parity_clock AS {_clock(place, lateness_us)}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE parity_turns AS {_turns(policy)}")
    con.execute(f"CREATE OR REPLACE TEMP TABLE parity_returned AS {_RETURNED}")


def drop(con: duckdb.DuckDBPyConnection) -> None:
    """Remove them."""
    for table in TABLES:
        con.execute(f"DROP TABLE IF EXISTS temp.main.parity_{table}")


def caused_at(place: Place) -> str:
    """Condition on an event: a record of the partition caused it."""
    return f'source.topic = {literal(place.topic)} AND source."partition" = {place.partition:d}'


def erased_records(con: duckdb.DuckDBPyConnection, place: Place) -> int:
    """How many records of the partition an erasure has removed from the archive."""
    found = con.execute(
        f"SELECT coalesce(sum(last_offset - first_offset + 1), 0)::BIGINT FROM {RAW}.{SKIPPED} "
        "WHERE topic = ? AND kafka_partition = ? AND reason = ?",
        [*place, ERASED],
    ).fetchone()
    return int(found[0]) if found else 0


def why_incomplete(con: duckdb.DuckDBPyConnection, place: Place) -> str:
    """Why a partition cannot be counted again; empty where it can."""
    held = con.execute(
        f"SELECT first_offset, next_offset FROM {RAW}.{OFFSETS} WHERE topic = ? AND kafka_partition = ?", list(place)
    ).fetchone()
    first, following = held or (0, 0)
    (rows,) = con.execute(
        f"SELECT (SELECT count(*) FROM {RAW}.turns WHERE kafka_partition = ?) "
        f"+ (SELECT count(*) FROM {RAW}.controls WHERE kafka_partition = ?)",
        [place.partition, place.partition],
    ).fetchone() or (0,)
    skipped = dict(
        con.execute(
            f"SELECT reason, sum(last_offset - first_offset + 1)::BIGINT FROM {RAW}.{SKIPPED} "
            "WHERE topic = ? AND kafka_partition = ? GROUP BY reason",
            list(place),
        ).fetchall()
    )
    if first or skipped.get(EXPIRED):
        return "its beginning is not archived: retention removed it from the topic before"
    if skipped.get(AGED):
        return "records are not in the archive any more: its own retention removed them"
    return "" if following <= rows + sum(skipped.values()) else "records are missing: see `turntide archive verify`"


def _profiles(place: Place) -> str:
    return f"""
        SELECT *, source."offset" AS o FROM raw.profiles WHERE {caused_at(place)}
        QUALIFY row_number() OVER (PARTITION BY id ORDER BY kafka_partition, kafka_offset) = 1
    """


_POINTS = """
    SELECT r.id, r.session_id, r.turn, r.risk, r.risk_source, p.o
    FROM raw.risk_points AS r JOIN parity_profiles AS p USING (id)
    QUALIFY row_number() OVER (PARTITION BY r.id, r.turn ORDER BY r.kafka_partition, r.kafka_offset) = 1
"""


def _raised(place: Place) -> str:
    return f"""
        SELECT session_id, source."offset" AS o, alert_id, count(*) AS alerts
        FROM alert_changes WHERE cause = 'raised' AND {caused_at(place)} GROUP BY ALL
    """


_RETURNED = "SELECT DISTINCT session_id FROM parity_turns WHERE turn <= floor"


def _read(place: Place) -> str:
    return f"""
        SELECT session_id, turn, user_id, app_id, role, risk AS upstream, timestamp, epoch_us(timestamp) AS at_us,
          content_bytes, (length(content) + 3) // 4 AS tokens, kafka_offset AS o
        FROM raw.turns WHERE kafka_partition = {place.partition:d}
    """


def _clock(place: Place, lateness_us: int) -> str:
    """The watermark after each record. Erasures and labels do not move it; a tick has the broker's time."""
    return f"""
        SELECT o, max(at_us - {lateness_us:d}) OVER (ORDER BY o) AS watermark
        FROM (
          SELECT o, at_us FROM parity_read
          UNION ALL
          SELECT kafka_offset, epoch_us(CASE WHEN type = 'clock_ticked' THEN appended_at ELSE timestamp END)
          FROM raw.controls WHERE kafka_partition = {place.partition:d} AND type <> 'alert_labelled'
        )
    """


def _turns(policy: Policy) -> str:
    scored = ", ".join(literal(Role(role).value) for role in policy.risk.scored_roles)
    life = "PARTITION BY session_id, life ORDER BY o"
    before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    return f"""
    WITH placed AS (
      SELECT session_id, o, 0 AS is_turn, NULL AS turn FROM parity_profiles WHERE NOT "open"
      UNION ALL
      SELECT session_id, o, 1, turn FROM parity_read
    ),
    lived AS (
      SELECT *, (sum(1 - is_turn) OVER (PARTITION BY session_id ORDER BY o, is_turn))::BIGINT AS life FROM placed
    ),
    floored AS (
      SELECT session_id, o, turn, life,
        coalesce(max(turn) OVER earlier, -1) AS floor
      FROM lived WHERE is_turn = 1
      WINDOW earlier AS (PARTITION BY session_id ORDER BY life RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),
    ahead AS (
      SELECT *,
        coalesce(max(turn) FILTER (turn > floor) OVER ({life} {before}), floor) AS highest,
        row_number() OVER (PARTITION BY session_id, life, turn ORDER BY o) > 1 AS again
      FROM floored
    ),
    judged AS (
      SELECT session_id, o, turn, life, floor,
        CASE
          WHEN turn > highest THEN 'new'
          WHEN highest = floor THEN 'ended'
          WHEN turn <= floor OR highest - turn >= {policy.session.reorder_reach_turns:d} THEN 'late'
          WHEN again THEN 'duplicate'
          ELSE 'new'
        END AS verdict
      FROM ahead
    ),
    told AS (
      SELECT j.*, t.* EXCLUDE (session_id, turn, o), c.watermark,
        CASE WHEN j.verdict = 'new' THEN coalesce(r.risk, t.upstream) END AS risk,
        t.upstream IS NOT NULL OR t.role IN ({scored}) AS is_scored, coalesce(a.alerts, 0) AS alerts
      FROM judged AS j
      JOIN parity_read AS t ON t.o = j.o
      JOIN parity_clock AS c ON c.o = j.o
      LEFT JOIN (SELECT session_id, turn, any_value(risk) AS risk FROM parity_points GROUP BY ALL) AS r
        ON r.session_id = j.session_id AND r.turn = j.turn
      LEFT JOIN (SELECT session_id, o, sum(alerts)::BIGINT AS alerts FROM parity_raised GROUP BY ALL) AS a
        ON a.session_id = j.session_id AND a.o = j.o
    )
    SELECT *,
      count(*) FILTER (verdict = 'new') OVER ({life}) AS turn_count,
      count(*) FILTER (verdict = 'duplicate') OVER ({life}) AS duplicate_turns,
      count(*) FILTER (verdict = 'late') OVER ({life}) AS late_turns,
      max(turn) FILTER (verdict = 'new') OVER ({life}) AS last_turn,
      min(turn) FILTER (verdict = 'new') OVER ({life}) AS first_turn,
      min(timestamp) FILTER (verdict = 'new') OVER ({life}) AS started_at,
      max(timestamp) FILTER (verdict = 'new') OVER ({life}) AS ended_at,
      count(risk) OVER ({life}) AS scored_turns,
      max(o) FILTER (risk IS NOT NULL) OVER ({life}) AS scored_o,
      coalesce(max(risk) OVER ({life}), 0.0) AS peak_risk
    FROM told
    """
