"""The archive as a mining job reads it: views through Ibis on DuckDB, sessions with their first day, days with a mark.

A day's mark is made of the places in the log of its rows, so that merging files does not change it, and a row that came
late, was erased, or lost its words by retention does: also on a machine that did neither.
"""

# ruff: noqa: S608 - tables are constants of this package

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Literal, NamedTuple

import duckdb
import ibis
import polars as pl

from jobs.analyse.mining.job import Job
from jobs.analyse.mining.tables import Tables
from streams.archive.catalog import LAKE
from streams.archive.schema import RAW, RETAINED, ddl

if TYPE_CHECKING:
    import ibis.expr.types as ir

_COHORT = "mining_cohort"


class Day(NamedTuple):
    """A day of the archive, as a job sees it."""

    mark: str
    """Changes with the rows that the job reads."""
    rows: int


class MiningSource:
    """A reader of the archive.

    Args:
        con: `streams.archive.catalog.open_reader`'s.
        without: Dates that cannot be read, see `streams.archive.damage`.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, *, without: Collection[date] = ()) -> None:
        self.con = con
        self.without = frozenset(without)
        self._ibis = ibis.duckdb.from_connection(con)
        self._has_cohort = False
        self._marked: dict[tuple[int, str, bool], list[tuple[date, int, int]]] = {}

    def rows(self, expression: ir.Table) -> pl.DataFrame:
        """Execute an expression."""
        frame: pl.DataFrame = expression.to_polars()
        return frame

    def tables(self, grouped: Literal["session", "date"] = "date", days: Collection[date] | None = None) -> Tables:
        """The views, of some days or of all."""
        cohort = None
        if grouped == "session":
            self._make_cohort()
            cohort = self._ibis.table(_COHORT, database=("temp", "main"))
        return Tables(self._ibis.table, grouped=grouped, days=days, cohort=cohort, without=self.without)

    def days(self, job: Job) -> dict[date, Day]:
        """Every day that has rows of the job, with its mark."""
        found: dict[date, tuple[int, list[str]]] = {}
        for table in job.reads:
            for day, rows, places in self._marks_of(job, table):
                count, marks = found.setdefault(day, (0, []))
                found[day] = (count + rows, [*marks, f"{table}:{rows}:{places}"])
        return {day: Day(" ".join(marks), rows) for day, (rows, marks) in sorted(found.items())}

    def latest_day(self) -> date | None:
        """The last day on which a turn was received; None: there are no turns."""
        found = self.con.execute(f"SELECT max(date) FROM {RAW}.turns WHERE {self._read('turns')}").fetchone()
        return found[0] if found else None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything inside is read from one moment of the archive."""
        self.con.execute("BEGIN")
        try:
            yield
        finally:
            self.con.execute("ROLLBACK")
            self._has_cohort = False  # It went with the transaction.

    def _marks_of(self, job: Job, table: str) -> list[tuple[date, int, int]]:
        """Day, rows, and what they hash to; looked up once for all jobs that see the same snapshot."""
        snapshot = self.con.execute(f"SELECT max(snapshot_id) FROM ducklake_snapshots('{LAKE}')").fetchone()
        key = (snapshot[0] if snapshot else 0, table, job.grouped == "session")
        if key not in self._marked:
            self._marked[key] = self.con.execute(self._marks(job, table)).fetchall()
        return self._marked[key]

    def _marks(self, job: Job, table: str) -> str:
        read, before = self._read(table), self._emptied_before(table)
        emptied = "false" if before is None else f"r.date < DATE '{before}'"
        mark = f"count(*), bit_xor(hash(kafka_partition, kafka_offset, {emptied}))"
        if job.grouped == "date" or "session_id" not in ddl()[table]:
            return f"SELECT date, {mark} FROM {RAW}.{table} AS r WHERE {read} GROUP BY date"
        self._make_cohort()
        return (
            f"SELECT c.day, {mark} FROM {RAW}.{table} AS r JOIN temp.main.{_COHORT} AS c USING (session_id) "
            f"WHERE {read} GROUP BY c.day"
        )

    def _emptied_before(self, table: str) -> date | None:
        """Rows of earlier dates have no words any more."""
        found = self.con.execute(
            f"SELECT max(before) FROM {RAW}.{RETAINED} WHERE table_name = ? AND what = 'words'", [table]
        ).fetchone()
        return found[0] if found else None

    def _read(self, table: str) -> str:
        days = ", ".join(f"DATE '{day}'" for day in sorted(self.without))
        return f"date NOT IN ({days})" if days and "date" in ddl()[table] else "true"

    def _make_cohort(self) -> None:
        if not self._has_cohort:
            self.con.execute(
                f"CREATE OR REPLACE TEMP TABLE {_COHORT} AS "
                f"SELECT session_id, min(date) AS day FROM {RAW}.turns WHERE {self._read('turns')} GROUP BY session_id"
            )
            self._has_cohort = True
