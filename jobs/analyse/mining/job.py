"""The types of a mining job, of its findings, and of what is shown of them, which names no session and no user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple

import polars as pl
from msgspec import Struct

from jobs.analyse.mining.coverage import Coverage, PartialShare
from models.policy.archive import ArchivePolicy

if TYPE_CHECKING:
    import ibis

    from jobs.analyse.mining.source import Tables

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


class JobWording(Struct, frozen=True):
    """What a job is about, without its code.

    Attributes:
        title: Of its section.
        question: What it answers, one sentence.
        grouped: Which day a row belongs to: that of its session's first turn (`session`: a session is whole on one day)
            or that on which it was received (`date`).
        reads: Tables of the schema `raw` that `heavy` rests on: a day is made again when their rows change.
        tables: What is said of each table that `find` gives.
    """

    title: str
    question: str
    grouped: Literal["session", "date"]
    reads: tuple[str, ...]
    tables: dict[str, TableWording]


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


class ShownFinding(Struct, frozen=True, kw_only=True):
    """A finding with what its evidence was counted to be."""

    finding: Finding
    rows: int
    sessions: int | None
    users: int


class ShownTable(Struct, frozen=True, kw_only=True):
    """What is said of a table; its rows are in `<name>.parquet`."""

    title: str
    meaning: str
    rows: int
    left_out: int
    cells_hidden: int = 0
    """Of the rows that are shown."""


class ReportSection(Struct, frozen=True, kw_only=True):
    """One job's part of the report."""

    job: str
    title: str
    question: str
    since: date
    until: date
    made_at: datetime
    made_of: str
    """Changes with the rows that it was made of, the rules and the job's version."""
    days: int
    """Of the period, those that have rows."""
    days_left_out: list[date]
    """Whose files are damaged."""
    seconds: float
    figures: list[Figure]
    findings: list[ShownFinding]
    tables: dict[str, ShownTable]
    notes: list[str]
    findings_left_out: int
    """About too few sessions or users."""

    @property
    def period(self) -> Period:
        """The days that it is about."""
        return Period(self.since, self.until)


class JobResult(Struct, frozen=True):
    """A section with its tables."""

    section: ReportSection
    tables: Frames


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


class Job(NamedTuple):
    """One mining job.

    Attributes:
        name: Of the command and the folder.
        about: Its words and what it reads.
        version: Raise it with any change of `heavy` or `refine`: kept days are made again.
        heavy: Expressions over the views of some days, each with the column `day`. They run on every engine that Ibis
            speaks to, so they use no function of one engine alone.
        find: Over the frames of all days of the period.
        refine: What is made of the heavy frames, day by day, where SQL is not enough; each with the column `day`.
    """

    name: str
    about: JobWording
    version: int
    heavy: Callable[[Tables, ArchivePolicy], Mapping[str, ibis.Table]]
    find: Callable[[Frames, MiningInput], JobFindings]
    refine: Callable[[Frames, ArchivePolicy], Frames] = lambda frames, _policy: frames


JOB_NAMES = ("overview", "alerts", "escalation", "sequences", "topics", "campaigns", "memory", "drift")
"""In the order of the report."""


def job_of(name: str) -> Job:
    """The job of this name: the `JOB` of its module, which imports what it needs."""
    job: Job = import_module(f"jobs.analyse.mining.{name}").JOB
    return job
