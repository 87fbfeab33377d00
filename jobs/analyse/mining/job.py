"""The type of a mining job, and of its findings.

Coverage of values: how many sessions and users a row, a cell, a figure or a share in a text tells of.

Jobs state it beside each value; `anonymity` alone decides by it what is shown.

A cell that counts some of a row's sessions, like the share that escalates, is about those that do, and by subtraction
about those that do not: it has a column `about_<cell>` beside it, see `smaller_side`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

import polars as pl
from msgspec import Struct

from models.policy.archive import AnonymityPolicy, ArchivePolicy

if TYPE_CHECKING:
    import ibis

    from jobs.analyse.mining.source import Tables
    from jobs.shared.pictures import Drawn

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


Frames = Mapping[str, pl.DataFrame]
"""By name. Frames of days have a column `day`; frames that are shown have `sessions` and `users`."""


ALL_APPS = "all apps"
"""Stands for an app in a table's row that is about all."""


class Period(NamedTuple):
    """UTC days from `since` to `until`, both of them part of it."""

    since: date
    until: date

    @property
    def days(self) -> int:
        """How many days it has."""
        return (self.until - self.since).days + 1

    @property
    def earlier(self) -> Period:
        """As many days right before it.

        >>> print(*Period(date(2026, 3, 8), date(2026, 3, 14)).earlier)
        2026-03-01 2026-03-07
        """
        return Period(self.since - timedelta(days=self.days), self.since - timedelta(days=1))

    @classmethod
    def last(cls, days: int, until: date) -> Period:
        """So many days up to one.

        >>> print(*Period.last(7, date(2026, 3, 14)))
        2026-03-08 2026-03-14
        """
        return cls(until - timedelta(days=days - 1), until)

    def __contains__(self, day: object) -> bool:
        return isinstance(day, date) and self.since <= day <= self.until


class Figure(Struct, frozen=True, kw_only=True):
    """One number of a section.

    Attributes:
        name: Stable, in snake case, with its unit: periods are compared by it.
        value: None where there is nothing to tell, or it would be about too few.
        meaning: One line for the reader.
        better: Which way is better; None: neither.
        part: Of a share, or a count of some of these sessions: whom it would tell of (`coverage.part_of`). Not kept.
        always: It is shown however few it is about: a count of alerts, which names nobody and must not be missed.
        hidden: There is a value, about too few.
    """

    name: str
    value: float | None
    meaning: str
    sessions: int
    users: int
    better: Literal["higher", "lower"] | None = None
    part: Coverage | None = None
    always: bool = False
    hidden: bool = False


SHARE = "{share}"
"""Stands in a finding's text for the next of its `shares`."""


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pattern worth somebody's time.

    Attributes:
        title: What was found, in a few words without names of sessions or users.
        text: One or two sentences with the figures.
        evidence: SQL over the archive's views whose rows are the evidence. It names no session and no user, and gives
            `user_id` and, where rows belong to sessions, `session_id`: by these it is counted.
        strength: Orders findings of all jobs, 0-1: how far it is from what chance or habit would give.
        shares: Stand in the text where it says `SHARE`, unless they are about too few. Not kept.
    """

    title: str
    text: str
    evidence: str
    strength: float
    shares: tuple[PartialShare, ...] = ()


class SessionMeasure(Struct, frozen=True):
    """A measure of a session.

    Attributes:
        title: In plain words.
        view: Which view the evidence reads, and …
        value: … what it computes of a session's rows.
    """

    title: str
    view: str
    value: str


class TableWording(Struct, frozen=True):
    """What the report says of a table.

    Attributes:
        title: Above it.
        meaning: Below the title; `{campaigns.risk}` stands for that rule of the policy.
        within: Columns whose groups of rows add up to something known; none: all rows do.
    """

    title: str
    meaning: str = ""
    within: tuple[str, ...] = ()


class JobFindings(NamedTuple):
    """What a job found in a period, before anything is left out for being about too few.

    Every row of a table has the columns `sessions` and `users`, what the row is about. A column `about_<cell>` says
    whom a cell is about that counts some of them (`coverage.smaller_side`): it is not shown, nor is the cell where they
    are too few.
    """

    figures: Sequence[Figure] = ()
    findings: Sequence[Finding] = ()
    tables: Mapping[str, pl.DataFrame] = {}
    notes: Sequence[str] = ()
    """What the reader must know: too little data for something, a bound that was reached."""


class MiningInput(NamedTuple):
    """What `find` may look at beside the frames of the period's days."""

    period: Period
    policy: ArchivePolicy
    parts: Callable[[Period], Frames]
    """Frames of another period, as far as its days are made: `asked.parts(asked.period.earlier)`."""
    whole: Tables
    """All days of the archive: for states, like facts, that belong to none."""
    rows: Callable[[ibis.Table], pl.DataFrame]
    """Execute an expression over `whole`."""

    def earlier(self, name: str, here: pl.DataFrame) -> pl.DataFrame:
        """The frame of as many days right before the period; without rows where none of them is made."""
        return self.parts(self.period.earlier).get(name, here.clear())


def as_they_are(frames: Frames, _policy: ArchivePolicy) -> Frames:
    """Nothing is made of them."""
    return frames


class Job(NamedTuple):
    """One mining job.

    Attributes:
        name: Of the command and the folder.
        question: What it answers, one sentence.
        grouped: Which day a row belongs to: that of its session's first turn (`session`: a session is whole on one day)
            or that on which it was received (`date`).
        reads: Tables of the schema `raw` that `heavy` rests on: a day is made again when their rows change.
        version: Raise it with any change of `heavy` or `refine`: kept days are made again.
        heavy: Expressions over the views of some days, each with the column `day`. They run on every engine that Ibis
            speaks to, so they use no function of one engine alone.
        tables: What is said of each table that `find` gives.
        find: Over the frames of all days of the period.
        refine: What is made of the heavy frames, day by day, where SQL is not enough; each with the column `day`.
    """

    name: str
    title: str
    question: str
    grouped: Literal["session", "date"]
    reads: tuple[str, ...]
    tables: Mapping[str, TableWording]
    version: int
    heavy: Callable[[Tables, ArchivePolicy], Mapping[str, ibis.Table]]
    find: Callable[[Frames, MiningInput], JobFindings]
    refine: Callable[[Frames, ArchivePolicy], Frames] = as_they_are

    def pictures(self, tables: Frames) -> Sequence[Drawn]:
        """Of the tables that are shown, after what is about too few was left out."""
        from jobs.analyse.mining.pictures import pictures_of

        return pictures_of(self.name, tables)


_JOBS = ("overview", "alerts", "escalation", "sequences", "topics", "campaigns", "memory", "drift")


def job_names() -> tuple[str, ...]:
    """Every job's name, in the order of the report."""
    return _JOBS


def job_of(name: str) -> Job:
    """The job of this name: the `JOB` of its module, which imports what it needs."""
    job: Job = import_module(f"jobs.analyse.mining.{name}").JOB
    return job
