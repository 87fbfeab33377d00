"""Nothing is shown about fewer than k sessions and k users.

It is enforced here, on what leaves a job, and nowhere else: tables by row, figures and findings one by one. What is
left out is counted, never described. One row left out could be told by subtraction from a known sum; so a table
that lost exactly one row loses the next smallest as well.
"""

from __future__ import annotations

from typing import NamedTuple

import duckdb
import polars as pl

from jobs.mining.job import Figure, Finding
from models.archive_policy import AnonymityPolicy
from models.errors import ConfigurationError

SESSIONS, USERS = "sessions", "users"
TOO_FEW = "of too few sessions or users"


class Evidence(NamedTuple):
    """What a finding rests on. `sessions` is None where its rows belong to no session."""

    rows: int
    sessions: int | None
    users: int


def shown_rows(frame: pl.DataFrame, k: AnonymityPolicy) -> tuple[pl.DataFrame, int]:
    """Rows about enough sessions and users, and how many were left out.

    Raises:
        ValueError: A column `sessions` or `users` is missing: the table must not be shown.
    """
    if missing := {SESSIONS, USERS} - set(frame.columns):
        raise ValueError(f"a table that is shown needs the columns {sorted(missing)}")
    enough = _enough(k)
    left_out = frame.height - frame.select(enough.sum()).item() if frame.height else 0
    shown = frame.filter(enough)
    if left_out == 1 and shown.height:
        smallest = shown[USERS].arg_min()
        shown = shown.with_row_index("_row").filter(pl.col("_row") != smallest).drop("_row")
        left_out = 2
    return shown, int(left_out)


def _enough(k: AnonymityPolicy) -> pl.Expr:
    return ((pl.col(SESSIONS) >= k.min_sessions) & (pl.col(USERS) >= k.min_users)).fill_null(value=False)


def shown_figure(figure: Figure, k: AnonymityPolicy) -> Figure:
    """The figure, without its value and counts where these are about too few."""
    if figure.sessions >= k.min_sessions and figure.users >= k.min_users:
        return figure
    return Figure(name=figure.name, value=None, meaning=figure.meaning, sessions=0, users=0, better=figure.better)


def evidence_of(con: duckdb.DuckDBPyConnection, finding: Finding) -> Evidence:
    """Count what the evidence query gives.

    Raises:
        ConfigurationError: It gives no `user_id`, so that nobody can tell whom it is about.
    """
    described = con.execute(f"DESCRIBE {finding.evidence}").fetchall()
    columns = {str(row[0]) for row in described}
    if "user_id" not in columns:
        raise ConfigurationError(f"evidence of {finding.title!r} gives no user_id")
    sessions = "count(DISTINCT session_id)" if "session_id" in columns else "NULL"
    counted = con.execute(
        f"SELECT count(*), {sessions}, count(DISTINCT user_id) FROM ({finding.evidence})"  # noqa: S608 - a job's own
    ).fetchone()
    assert counted is not None  # noqa: S101 - an aggregate has one row
    return Evidence(*counted)


def is_enough(evidence: Evidence, k: AnonymityPolicy) -> bool:
    """Whether a finding with this evidence may be shown."""
    sessions = k.min_sessions if evidence.sessions is None else evidence.sessions
    return sessions >= k.min_sessions and evidence.users >= k.min_users
