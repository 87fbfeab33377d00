"""Nothing is shown about fewer than k sessions and k users.

It is enforced here, on what leaves a job, and nowhere else: tables by row and by cell, figures and findings one by one.
What is left out is counted, never described. What is left out alone could be told by subtraction from a known sum; so
the next smallest goes as well, until what is left out is about enough, too.

A cell that counts some of a row's sessions, like the share that escalates, is about those that do, and by subtraction
about those that do not: a job says so by a column `about_<cell>`, see `smaller_side`.

Two reports over periods that differ in one day can be subtracted from each other; against that nothing here helps.
"""

from __future__ import annotations

from typing import NamedTuple

import duckdb
import polars as pl
from msgspec.structs import replace

from jobs.analyse.mining.job import Coverage, Figure, Finding, Shown
from models.errors import ConfigurationError
from models.policy.archive import AnonymityPolicy

SESSIONS, USERS = "sessions", "users"
ABOUT = "about_"
ABOUT_TYPE = pl.Struct({SESSIONS: pl.UInt32, USERS: pl.UInt32})
"""Of the columns `about_…`."""
_HALF = 50.0
_SHARE_DIGITS = 6


class Evidence(NamedTuple):
    """What a finding rests on. `sessions` is None where its rows belong to no session."""

    rows: int
    sessions: int | None
    users: int


def smaller_side(holds: pl.Expr) -> pl.Expr:
    """Whom a share of rows is about: fewest sessions and users, of the rows for which it holds and of the others.

    A struct of `sessions` and `users` for `agg`; a side without rows tells of nobody and does not count.
    """
    known = holds.fill_null(value=False)
    counts = (
        pl.min_horizontal(*(_some(pl.col(column).filter(side).n_unique()) for side in (known, ~known))).alias(name)
        for column, name in (("session_id", SESSIONS), ("user_id", USERS))
    )
    return pl.struct(*counts)


def _some(count: pl.Expr) -> pl.Expr:
    return pl.when(count > 0).then(count)


def part_of(rows: pl.DataFrame, holds: pl.Expr) -> Coverage | None:
    """Likewise of a figure: `Figure(…, part=part_of(rows, holds))`; None: of nobody."""
    part: Coverage = rows.select(smaller_side(holds)).item()
    return part if part["sessions"] is not None else None


def is_few(part: Coverage | None, k: AnonymityPolicy) -> bool:
    """Whether something is about some, but too few."""
    if part is None or part["sessions"] is None:
        return False
    return part["sessions"] < k.min_sessions or part["users"] < k.min_users


def shown_percent(percent: float, part: Coverage | None, k: AnonymityPolicy) -> str:
    """A share for the text of a finding, in words where it is about too few.

    >>> k = AnonymityPolicy()
    >>> shown_percent(12.34, {"sessions": 9, "users": 8}, k), shown_percent(2.1, {"sessions": 2, "users": 1}, k)
    ('12.3 %', 'few')
    """
    if is_few(part, k):
        return "few" if percent < _HALF else "most"
    return f"{percent:.1f} %"


def beyond(whom: Coverage, quantile: float = 0.5) -> Coverage:
    """Whom a quantile tells of: those on its smaller side, for a figure.

    >>> beyond({"sessions": 51, "users": 20}, 0.9)
    {'sessions': 5, 'users': 2}
    """
    share = round(min(quantile, 1 - quantile), _SHARE_DIGITS)
    return {"sessions": int(whom["sessions"] * share), "users": int(whom["users"] * share)}


def beyond_cell(quantile: float) -> pl.Expr:
    """Likewise of the column `about_<cell>`, from the row's `sessions` and `users`."""
    share = round(min(quantile, 1 - quantile), _SHARE_DIGITS)
    return pl.struct(*((pl.col(name) * share).floor().cast(pl.UInt32).alias(name) for name in (SESSIONS, USERS)))


def fewest(one: Coverage | None, other: Coverage | None) -> Coverage | None:
    """Whom two shares tell of of which, with their total, either gives the other."""
    if one is None or other is None:
        return one or other
    return {"sessions": min(one["sessions"], other["sessions"]), "users": min(one["users"], other["users"])}


def counted(sessions: pl.Expr, users: pl.Expr) -> pl.Expr:
    """A column `about_<cell>` of counts that are known; none of either is nobody."""
    return pl.struct(
        *(
            pl.when(sessions > 0).then(count).cast(pl.UInt32).alias(name)
            for name, count in ((SESSIONS, sessions), (USERS, users))
        )
    )


def shown_rows(table: Shown, k: AnonymityPolicy) -> tuple[pl.DataFrame, int]:
    """Rows about enough sessions and users without the cells that are not, and how many rows were left out.

    Raises:
        ValueError: A column `sessions` or `users` is missing: the table must not be shown.
    """
    frame = table.frame
    if missing := {SESSIONS, USERS} - set(frame.columns):
        raise ValueError(f"a table that is shown needs the columns {sorted(missing)}")
    sessions, users = pl.col(SESSIONS).fill_null(0), pl.col(USERS).fill_null(0)
    few = (sessions < k.min_sessions) | (users < k.min_users)
    hidden = _with_next_smallest(few, pl.lit(value=True), sessions, users, k=k, within=table.within)
    shown = frame.filter(~hidden)
    cells = [column.removeprefix(ABOUT) for column in frame.columns if column.startswith(ABOUT)]
    blank = [pl.when(~_few_cell(cell, k, table.within)).then(pl.col(cell)).alias(cell) for cell in cells]
    return shown.with_columns(blank).drop(ABOUT + cell for cell in cells), frame.height - shown.height


def _few_cell(cell: str, k: AnonymityPolicy, within: tuple[str, ...]) -> pl.Expr:
    part = pl.col(ABOUT + cell)
    sessions, users = (part.struct.field(name) for name in (SESSIONS, USERS))
    few = ((sessions < k.min_sessions) | (users < k.min_users)).fill_null(value=False)
    shown = pl.col(cell).is_not_null()
    nonzero = shown & (pl.col(cell).cast(pl.Float64) != 0)
    return _with_next_smallest(few & shown, nonzero, sessions.fill_null(0), users.fill_null(0), k=k, within=within)


def _with_next_smallest(
    few: pl.Expr, others: pl.Expr, sessions: pl.Expr, users: pl.Expr, *, k: AnonymityPolicy, within: tuple[str, ...]
) -> pl.Expr:
    """What is few, and of the others the smallest where a sum would tell what is few."""

    def each(expression: pl.Expr) -> pl.Expr:
        return expression.over(within) if within else expression

    gone = each(few.sum())
    of_sessions, of_users = (each(pl.when(few).then(count).otherwise(0).sum()) for count in (sessions, users))
    shown = (gone == 1) | ((gone > 0) & ((of_sessions < k.min_sessions) | (of_users < k.min_users)))
    smallest = each(pl.when(others & ~few).then(users).rank("ordinal")) == 1
    return few | (shown & smallest).fill_null(value=False)


def shown_figure(figure: Figure, k: AnonymityPolicy) -> Figure:
    """The figure, without its value and counts where these are about too few."""
    if figure.sessions >= k.min_sessions and figure.users >= k.min_users and not is_few(figure.part, k):
        return replace(figure, part=None)
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
