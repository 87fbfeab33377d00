"""Profiles and risk points against the turns they count."""

from __future__ import annotations

import duckdb
import polars as pl

from jobs.archive.parity.found import Parity, checked
from jobs.archive.parity.sums import running_sums
from models.policy import Policy

PROFILES, RISK_POINTS = "profiles", "risk points"

_RISKS = """
    SELECT o, risk, dense_rank() OVER (ORDER BY session_id, life) AS number
    FROM parity_turns WHERE risk IS NOT NULL ORDER BY number, o
"""

# A closing profile may be caused by the session's own next turn, which it does not count. `turn_o` is the offset of the
# last turn that came before it in its life: found by sorting both together, far faster than an ASOF join.
_CLAIMED = """
    CREATE OR REPLACE TEMP TABLE parity_claimed AS
    WITH claims AS (
      SELECT *, CASE WHEN "open" THEN o ELSE o - 1 END AS upto,
        coalesce(sum(CASE WHEN "open" THEN 0 ELSE 1 END) OVER (
          PARTITION BY session_id ORDER BY o, "open" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0)::BIGINT AS life
      FROM parity_profiles
      ANTI JOIN parity_returned USING (session_id)
    ),
    mixed AS (
      SELECT session_id, life, o AS place, 0 AS is_claim, o AS turn_o, NULL AS id FROM parity_turns
      UNION ALL
      SELECT session_id, life, upto, 1, NULL, id FROM claims
    ),
    filled AS (
      SELECT id, max(turn_o) OVER (
        PARTITION BY session_id, life ORDER BY place, is_claim ROWS UNBOUNDED PRECEDING
      ) AS turn_o
      FROM mixed
    )
    SELECT c.*, f.turn_o FROM claims AS c JOIN filled AS f ON f.id = c.id
"""

_COUNTED = (
    "turn_count",
    "duplicate_turns",
    "late_turns",
    "last_turn",
    "started_at",
    "peak_risk",
    "mean_risk",
    "user_id",
    "app_id",
)
"""Fields that are recomputed."""


def check_profiles(con: duckdb.DuckDBPyConnection, found: Parity, policy: Policy) -> None:
    """Every profile's counts, times, peak and mean risk, as of the record that caused it."""
    con.execute(_CLAIMED)
    keep_sums(con)
    changed = " UNION ALL ".join(
        f"""SELECT 'changed' AS kind, id || ' ' || '{name}' AS what FROM compared
            WHERE {name} IS DISTINCT FROM told_{name}"""  # noqa: S608 - names of this module
        for name in _COUNTED
    )
    checked(
        con,
        found,
        PROFILES,
        of="SELECT count(*) FROM parity_claimed",
        differing=f"WITH compared AS ({_COMPARED}) {changed} UNION ALL "
        + _MISSING.format(every_turns=policy.profile.every_turns),
    )


def keep_sums(con: duckdb.DuckDBPyConnection) -> None:
    """Keep the running sum of every session's risks, in the order of arrival, as table `parity_sums`."""
    risks = con.execute(_RISKS).pl()
    sums = running_sums(risks["number"].to_numpy(), risks["risk"].to_numpy())
    frame = risks.select("o").with_columns(risk_sum=pl.Series(sums))
    con.register("parity_summed", frame)
    con.execute("CREATE OR REPLACE TEMP TABLE parity_sums AS SELECT * FROM parity_summed")
    con.unregister("parity_summed")


# A session that began with a control has no turn yet.
_COMPARED = """
    SELECT c.*,
      coalesce(t.turn_count, 0) AS told_turn_count,
      coalesce(t.duplicate_turns, 0) AS told_duplicate_turns,
      coalesce(t.late_turns, 0) AS told_late_turns,
      coalesce(t.last_turn, c.last_turn) AS told_last_turn,
      coalesce(t.started_at, c.started_at) AS told_started_at,
      coalesce(t.peak_risk, 0.0) AS told_peak_risk,
      CASE WHEN s.risk_sum IS NULL THEN 0.0 ELSE s.risk_sum / t.scored_turns END AS told_mean_risk,
      coalesce(f.user_id, c.user_id) AS told_user_id,
      coalesce(f.app_id, c.app_id) AS told_app_id
    FROM parity_claimed AS c
    LEFT JOIN parity_turns AS t ON t.o = c.turn_o
    LEFT JOIN parity_sums AS s ON s.o = t.scored_o
    LEFT JOIN (
      SELECT session_id, life, arg_min(user_id, o) AS user_id, arg_min(app_id, o) AS app_id
      FROM parity_turns WHERE verdict = 'new' GROUP BY ALL
    ) AS f ON f.session_id = c.session_id AND f.life = c.life
"""

# A profile is due when so many turns were counted since the last one, whenever an alert changes, and at the end.
_MISSING = """
    SELECT 'missing' AS kind, session_id || ' ' || turn_count AS what
    FROM (
      SELECT session_id, turn_count,
        turn_count - lag(turn_count, 1, 0) OVER (PARTITION BY session_id, life ORDER BY o, "open" DESC) AS since
      FROM parity_claimed
    )
    WHERE since > {every_turns}
    UNION ALL
    SELECT 'missing', session_id || ' ' || turn
    FROM (
      SELECT *, max(told) OVER (
        PARTITION BY session_id, life ORDER BY o, is_turn ROWS UNBOUNDED PRECEDING
      ) AS told_before
      FROM (
        SELECT session_id, life, o, 1 AS is_turn, turn, turn_count, 0 AS told FROM parity_turns WHERE verdict = 'new'
        UNION ALL
        SELECT session_id, life, o, 0, NULL, NULL, turn_count FROM parity_claimed
      )
    ) AS t
    ANTI JOIN parity_returned USING (session_id)
    WHERE is_turn = 1 AND turn_count - told_before >= {every_turns} AND o < (SELECT max(o) FROM parity_profiles)
"""


def check_risk_points(con: duckdb.DuckDBPyConnection, found: Parity) -> None:
    """Every risk point is of a turn that counts, once, and carries a producer's risk as it came."""
    checked(
        con,
        found,
        RISK_POINTS,
        of="SELECT count(*) FROM parity_points ANTI JOIN parity_returned USING (session_id)",
        differing="""
          WITH points AS (SELECT * FROM parity_points ANTI JOIN parity_returned USING (session_id)),
          counted AS (
            SELECT t.session_id, t.turn, t.o, t.upstream, t.is_scored, p.last
            FROM parity_turns AS t
            JOIN (
              SELECT session_id, max(o) FILTER ("open") AS last FROM parity_profiles GROUP BY ALL
            ) AS p USING (session_id)
            WHERE t.verdict = 'new'
          )
          SELECT 'doubled' AS kind, session_id || ' ' || turn AS what
          FROM points GROUP BY session_id, turn HAVING count(*) > 1
          UNION ALL
          SELECT 'false', p.session_id || ' ' || p.turn FROM points AS p
          ANTI JOIN counted AS c ON c.session_id = p.session_id AND c.turn = p.turn AND c.o <= p.o AND c.is_scored
          UNION ALL
          SELECT 'changed', p.session_id || ' ' || p.turn FROM points AS p
          JOIN counted AS c USING (session_id, turn)
          WHERE c.upstream IS DISTINCT FROM CASE WHEN p.risk_source = 'upstream' THEN p.risk END
          UNION ALL
          SELECT 'missing', c.session_id || ' ' || c.turn FROM counted AS c
          ANTI JOIN points AS p USING (session_id, turn)
          ANTI JOIN parity_returned USING (session_id)
          WHERE c.is_scored AND c.o <= c.last
        """,
    )
