"""Windows of sessions and of apps against the turns that fell into them."""

# ruff: noqa: S608 - tables are constants of this project, values are numbers

from __future__ import annotations

from typing import NamedTuple

import duckdb
import polars as pl

from jobs.archive.parity.found import Parity, checked
from jobs.archive.parity.sums import running_sums
from jobs.archive.parity.turns import Panes, Place, caused_at, erased_records
from models.partition.app_windows import MAX_CLOSINGS_PER_RECORD, OTHER_APPS
from models.policy import Policy
from streams.archive.schema import RAW

SESSION_WINDOWS, APP_WINDOWS = "session windows", "app windows"
_COUNTED = ("turns", "scored_turns", "risk_max", "alerts", "late_turns", "turns_per_minute", "risk_sum")
_OF_RISK = frozenset(("scored_turns", "risk_max", "risk_sum"))
_BOTH = "parity_counted AS c JOIN parity_windows AS w USING (id)"
_NOT_YET = "risks of theirs stand in profiles that are not there yet: only the turns are compared"

# The risk that the job's own scorer gave stands in the next profile. One that came back may have been forgotten.
_UNTOLD = "verdict = 'new' OR (verdict <> 'duplicate' AND session_id IN (SELECT session_id FROM parity_returned))"
_FOLDED = "ANTI JOIN parity_returned USING (session_id) WHERE verdict IN ('new', 'late')"


def check_session_windows(con: duckdb.DuckDBPyConnection, found: Parity, place: Place, policy: Policy) -> None:
    """Windows of sessions: a turn that counts is in those over its time that are still open, one too late is told."""
    panes = Panes.of(policy.window)
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE parity_joined AS
        {_placed(panes, "session_id", "verdict = 'late'", _FOLDED)}
    """)
    _keep_windows(con, place, "session", "session_id", panes)
    ended = 'SELECT session_id AS name, max(o) AS o FROM parity_profiles WHERE NOT "open" GROUP BY ALL'
    # A session's windows close with a turn of its own, or with the session.
    due = f"""
        SELECT j.* FROM joined AS j
        JOIN (SELECT name, max(closed) AS closed FROM windowed_turns GROUP BY ALL) AS c USING (name)
        LEFT JOIN ({ended}) AS e USING (name)
        WHERE j.first + {panes.span:d} <= c.closed OR (e.o > j.last_o AND e.o <= (SELECT max(o) FROM parity_windows))
    """
    _compare(con, found, _Claim(SESSION_WINDOWS, panes, due))


def check_app_windows(con: duckdb.DuckDBPyConnection, found: Parity, place: Place, policy: Policy) -> None:
    """Windows of apps on this partition: every turn is in them, also one that its session does not count."""
    apps = con.execute("SELECT count(DISTINCT app_id) FROM parity_turns").fetchone() or (0,)
    if apps[0] > min(policy.partition.open_apps, MAX_CLOSINGS_PER_RECORD):
        (windows,) = con.execute(
            f"SELECT count(*) FROM {RAW}.windows WHERE scope = 'app' AND {caused_at(place)}"
        ).fetchone() or (0,)
        found.leave_out(
            APP_WINDOWS, windows, f"so many apps share `{OTHER_APPS}`, or wait for a record, that only --fold tells"
        )
        return
    panes = Panes.of(policy.partition.app_window)
    con.execute(f"CREATE OR REPLACE TEMP TABLE parity_joined AS {_placed(panes, 'app_id', 'false')}")
    _keep_windows(con, place, "app", "app_id", panes)
    due = f"""
        SELECT j.* FROM joined AS j WHERE j.first + {panes.span:d} <= (
          SELECT max((watermark - {panes.grace_us:d}) // {panes.slide_us:d}) FROM parity_clock
          WHERE o < (SELECT max(o) FROM parity_windows)
        )
    """
    _compare(con, found, _Claim(APP_WINDOWS, panes, due, _known(con, place)))


def _placed(panes: Panes, name: str, late: str, among: str = "") -> str:
    """Turns with their pane, and the newest end that the watermark had passed when they came: `Windows._place`."""
    closed = f"(watermark - {panes.grace_us:d}) // {panes.slide_us:d}"
    return f"""
        SELECT {name} AS name, o, closed, CASE WHEN is_late THEN closed ELSE own END AS pane, is_late,
          CASE WHEN NOT is_late THEN risk END AS risk, CASE WHEN is_late THEN 0 ELSE alerts END AS alerts,
          NOT is_late AND is_scored AND risk IS NULL AND ({_UNTOLD}) AS untold
        FROM (
          SELECT *, {closed} AS closed, at_us // {panes.slide_us:d} AS own,
            {late} OR at_us // {panes.slide_us:d} + {panes.span:d} <= {closed} AS is_late
          FROM parity_turns
          {among}
        )
    """


def _keep_windows(con: duckdb.DuckDBPyConnection, place: Place, scope: str, name: str, panes: Panes) -> None:
    """The last of each window that this partition caused, numbered by its first pane."""
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE parity_windows AS
        SELECT *, {name} AS name, source."offset" AS o, epoch_us(window_start) // {panes.slide_us:d} AS first
        FROM raw.windows ANTI JOIN parity_returned USING (session_id)
        WHERE scope = '{scope}' AND {caused_at(place)}
        QUALIFY row_number() OVER (
          PARTITION BY app_id, session_id, window_start ORDER BY kafka_partition, kafka_offset DESC
        ) = 1
    """)


def _known(con: duckdb.DuckDBPyConnection, place: Place) -> str:
    """Windows of apps name nobody: they stay as they were when a session in them is erased.

    Gives the condition on windows that can be told: those that do not count more turns than the archive has, or more by
    more than what was erased before they closed.
    """
    erased = erased_records(con, place)
    if not erased:
        return "true"
    return f"NOT (w.turns > c.turns AND w.turns - c.turns <= {erased:d})"


class _Claim(NamedTuple):
    """What is claimed of windows: the query of those that are due, and the condition on those that can be told."""

    name: str
    panes: Panes
    due: str
    known: str = "true"


def _compare(con: duckdb.DuckDBPyConnection, found: Parity, claim: _Claim) -> None:
    """Hold every window against its count."""
    panes, known = claim.panes, claim.known
    _count(con, panes)
    _add_in_order(con, panes)
    for condition, why in ((known, "they count turns that were erased since"), ("c.untold = 0", _NOT_YET)):
        (left_out,) = con.execute(f"SELECT count(*) FROM {_BOTH} WHERE NOT ({condition})").fetchone() or (0,)
        if left_out:
            found.leave_out(claim.name, left_out, why)
    changed = " UNION ALL ".join(
        f"SELECT 'changed' AS kind, w.id || ' {name}' AS what FROM {_BOTH} "
        f"WHERE w.{name} IS DISTINCT FROM c.{name} AND {known}{' AND c.untold = 0' * (name in _OF_RISK)}"
        for name in _COUNTED
    )
    checked(
        con,
        found,
        claim.name,
        of=f"SELECT count(*) FROM {_BOTH} WHERE {known}",
        differing=f"""
          WITH windowed_turns AS (SELECT * FROM parity_joined WHERE o <= (SELECT max(o) FROM parity_windows)),
          joined AS (
            SELECT name, unnest(range(pane - {panes.span - 1:d}, pane + 1)) AS first, last_o, closed
            FROM (SELECT name, pane, closed, max(o) AS last_o FROM windowed_turns GROUP BY ALL)
          )
          {changed}
          UNION ALL
          SELECT 'false', c.id FROM {_BOTH} WHERE c.turns + c.late_turns = 0 AND {known}
          UNION ALL
          SELECT 'missing', name || ' ' || first FROM (
            SELECT DISTINCT name, first FROM ({claim.due}) WHERE first + {panes.span:d} > closed
          ) ANTI JOIN parity_windows USING (name, first)
        """,
    )


def _count(con: duckdb.DuckDBPyConnection, panes: Panes) -> None:
    """Count every window again of the turns before the record that closed it.

    Which pane a turn is in says in which windows it is: as many as a window has panes, the last of them its own.
    """
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE parity_counted AS
        WITH spread AS (SELECT *, unnest(range(pane - {panes.span - 1:d}, pane + 1)) AS first FROM parity_joined)
        SELECT w.id, w.name, w.first,
          count(*) FILTER (s.is_late = false) AS turns,
          count(s.risk) AS scored_turns,
          coalesce(max(s.risk), 0.0) AS risk_max,
          coalesce(sum(s.alerts), 0)::BIGINT AS alerts,
          count(*) FILTER (s.is_late) AS late_turns,
          count(*) FILTER (s.untold) AS untold,
          count(*) FILTER (s.is_late = false) / any_value(date_diff('second', w.window_start, w.window_end) / 60)
            AS turns_per_minute,
          coalesce(sum(s.risk), 0.0) AS risk_sum
        FROM parity_windows AS w
        LEFT JOIN spread AS s ON s.name = w.name AND s.first = w.first AND s.o < w.o
        GROUP BY ALL
    """)


def _add_in_order(con: duckdb.DuckDBPyConnection, panes: Panes) -> None:
    """Add the risks of windows whose sum differs as the stream does: each pane in order of arrival, then the panes."""
    risks = con.execute(f"""
        WITH differing AS (
          SELECT c.id, c.name, c.first, w.o FROM parity_counted AS c JOIN parity_windows AS w USING (id)
          WHERE c.risk_sum <> w.risk_sum
        )
        SELECT dense_rank() OVER (ORDER BY d.id) AS window_number, d.id, j.pane, j.risk
        FROM differing AS d
        JOIN parity_joined AS j
          ON j.name = d.name AND j.pane BETWEEN d.first AND d.first + {panes.span - 1:d} AND j.o < d.o
        WHERE j.risk IS NOT NULL
        ORDER BY window_number, j.pane, j.o
    """).pl()
    if not risks.height:
        return
    number = (risks["window_number"] * panes.span + risks["pane"] % panes.span).to_numpy()
    by_pane = risks.with_columns(total=pl.Series(running_sums(number, risks["risk"].to_numpy())))
    by_pane = by_pane.group_by("id", "pane", maintain_order=True).last()
    totals = running_sums(by_pane["window_number"].to_numpy(), by_pane["total"].to_numpy())
    summed = by_pane.select("id").with_columns(total=pl.Series(totals)).group_by("id", maintain_order=True).last()
    con.register("parity_summed", summed)
    con.execute("UPDATE parity_counted SET risk_sum = s.total FROM parity_summed AS s WHERE parity_counted.id = s.id")
    con.unregister("parity_summed")
