"""Coverage of values: how many sessions and users a row, a cell, a figure or a share in a text tells of.

Jobs state it beside each value; `anonymity` alone decides by it what is shown. A cell that counts some of a row's
sessions, like the share that escalates, is about those that do, and by subtraction about those that do not: it has a
column `about_<cell>` beside it, see `smaller_side`.
"""

from typing import NamedTuple, TypedDict

import polars as pl

from models.policy.archive import AnonymityPolicy

SESSIONS, USERS = "sessions", "users"
ABOUT = "about_"
ABOUT_TYPE = pl.Struct({SESSIONS: pl.UInt32, USERS: pl.UInt32})
"""Of the columns `about_…`."""
COUNTED = (pl.col("session_id").n_unique().alias(SESSIONS), pl.col("user_id").n_unique().alias(USERS))
"""The columns that every table needs, for `agg`."""
_HALF = 50.0
_SHARE_DIGITS = 6


class Coverage(TypedDict):
    """How many sessions and users something is about."""

    sessions: int
    users: int


def about(rows: pl.DataFrame) -> Coverage:
    """Whom rows with `session_id` and `user_id` are about. Null and "" are nobody."""
    sessions, users = (rows[name].filter(rows[name].fill_null("") != "") for name in ("session_id", "user_id"))
    return {"sessions": sessions.n_unique(), "users": users.n_unique()}


def smaller_side(holds: pl.Expr) -> pl.Expr:
    """Whom a share of rows is about: fewest sessions and users, of the rows for which it holds and of the others.

    A struct of `sessions` and `users` for `agg`; a side without rows tells of nobody and does not count.
    """
    known = holds.fill_null(value=False)
    return pl.struct(
        pl.min_horizontal(*(pl.col(column).filter(side).n_unique().replace(0, None) for side in (known, ~known))).alias(
            name
        )
        for column, name in (("session_id", SESSIONS), ("user_id", USERS))
    )


def share(cell: str, holds: pl.Expr, *, scale: float = 1.0) -> tuple[pl.Expr, pl.Expr]:
    """A cell with the share of rows for which something holds, and whom it is about: for `agg`."""
    return (holds.mean() * scale).alias(cell), smaller_side(holds).alias(ABOUT + cell)


def part_of(rows: pl.DataFrame, holds: pl.Expr) -> Coverage | None:
    """`smaller_side` of all rows, for a figure; None: of nobody."""
    part: Coverage = rows.select(smaller_side(holds)).item()
    return part if part["sessions"] is not None else None


def beyond(whom: Coverage, quantile: float = 0.5) -> Coverage:
    """Whom a quantile tells of: those on its smaller side, for a figure.

    >>> beyond({"sessions": 51, "users": 20}, 0.9)
    {'sessions': 5, 'users': 2}
    """
    part = round(min(quantile, 1 - quantile), _SHARE_DIGITS)
    return {"sessions": int(whom["sessions"] * part), "users": int(whom["users"] * part)}


def beyond_cell(quantile: float) -> pl.Expr:
    """Likewise of the column `about_<cell>`, from the row's `sessions` and `users`."""
    part = round(min(quantile, 1 - quantile), _SHARE_DIGITS)
    return pl.struct(*((pl.col(name) * part).floor().cast(pl.UInt32).alias(name) for name in (SESSIONS, USERS)))


def tells_of(whom: pl.Expr, *cells: str) -> list[pl.Expr]:
    """The columns `about_<cell>` of cells that tell of the same people."""
    return [whom.alias(ABOUT + cell) for cell in cells]


def fewest(one: Coverage | None, other: Coverage | None) -> Coverage | None:
    """Whom two shares tell of of which, with their total, either gives the other."""
    if one is None or other is None:
        return one or other
    return {"sessions": min(one["sessions"], other["sessions"]), "users": min(one["users"], other["users"])}


def counted(sessions: pl.Expr, users: pl.Expr) -> pl.Expr:
    """A column `about_<cell>` of counts that are known; none of either is nobody."""
    return pl.struct(
        pl.when(sessions > 0).then(count).cast(pl.UInt32).alias(name)
        for name, count in ((SESSIONS, sessions), (USERS, users))
    )


def enough(k: AnonymityPolicy, sessions: pl.Expr = pl.col(SESSIONS), users: pl.Expr = pl.col(USERS)) -> pl.Expr:
    """Condition on two counts, by default those of a table's row: as many as something shown needs."""
    return (sessions >= k.min_sessions) & (users >= k.min_users)


def is_few(part: Coverage | None, k: AnonymityPolicy) -> bool:
    """Whether something is about some, but too few."""
    if part is None or part["sessions"] is None:
        return False
    return part["sessions"] < k.min_sessions or part["users"] < k.min_users


class PartialShare(NamedTuple):
    """A share in the text of a finding, whom it tells of, and what the text says where these are too few."""

    text: str
    part: Coverage | None
    instead: str


def percent(value: float, part: Coverage | None) -> PartialShare:
    """A share in percent.

    >>> percent(12.34, None)
    PartialShare(text='12.3 %', part=None, instead='few')
    """
    return PartialShare(f"{value:.1f} %", part, "few" if value < _HALF else "most")
