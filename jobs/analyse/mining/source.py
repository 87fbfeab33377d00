"""The archive as a mining job reads it: views through Ibis, sessions with their first day, days with a mark.

A day's mark is made of the places in the log of its rows, so that merging files does not change it, and a row that came
late, was erased, or lost its words by retention does: also on a machine that did neither.
"""

# ruff: noqa: S608 - tables are constants of this package

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Literal, NamedTuple

import duckdb
import ibis
import polars as pl
from ibis.expr import operations as ops
from ibis.formats.polars import PolarsData
from msgspec import Struct

from jobs.analyse.mining.job import Job
from streams.archive.catalog import LAKE
from streams.archive.rows import opened_frame
from streams.archive.schema import RAW, RETAINED, ddl

_COHORT = "mining_cohort"
_TABLES = {"turns": ("turns", "numbered_turns")}
"""Of a view that is made of two."""
_SESSION = "r.app_id || '/' || r.session_id"


class Tables(Struct, frozen=True):
    """`tables["turns"]`: a view with the column `day`, the day that each row belongs to.

    Attributes:
        read: A view of the engine by name, with all its rows.
        grouped: By the first day of the row's session, or by the date on which it was received. Views without a session
            are by date in either case.
        days: Only these; None: all.
        cohort: `session_id` and `day` of every session; None: made of the turns.
        without: Dates of receipt whose rows are not read.
    """

    read: Callable[[str], ibis.Table]
    grouped: Literal["session", "date"] = "date"
    days: Collection[date] | None = None
    cohort: ibis.Table | None = None
    without: Collection[date] = ()

    def __getitem__(self, view: str) -> ibis.Table:
        table = _bound(self.read(view))
        dated = "date" in table.columns
        if dated and self.without:
            table = table.filter(~table.date.isin(sorted(self.without)))
        if self.grouped == "session" and "session_id" in table.columns:
            if dated and self.days:
                table = table.filter(table.date >= ibis.literal(min(self.days)))
            return table.inner_join(self._sessions(), "session_id")
        if not dated:
            return table
        table = table.mutate(day=table.date)
        return table if self.days is None else table.filter(table.day.isin(sorted(self.days)))

    def _sessions(self) -> ibis.Table:
        cohort = self.cohort
        if cohort is None:
            turns = _bound(self.read("turns"))
            cohort = turns.group_by("session_id").agg(day=turns.date.min())
        cohort = cohort.select("session_id", "day")
        return cohort if self.days is None else cohort.filter(cohort.day.isin(sorted(self.days)))


def _bound(table: ibis.Table) -> ibis.Table:
    """With sessions named by their app and id: an id is unique within its app alone."""
    if not {"app_id", "session_id"} <= set(table.columns):
        return table
    return table.mutate(session_id=table.app_id.concat("/", table.session_id))


def beside(sessions: ibis.Table, *others: ibis.Table) -> ibis.Table:
    """Sessions with the columns of others, null where these do not have the session."""
    for other in others:
        sessions = sessions.left_join(other, "session_id").drop("session_id_right")
    return sessions


def first_alerts(tables: Tables) -> ibis.Table:
    """The turn of each session's first alert: `session_id, alert_turn`."""
    changes = tables["alert_changes"]
    return changes.group_by("session_id").agg(alert_turn=changes.turn.min())


def with_alerted(sessions: ibis.Table, tables: Tables) -> ibis.Table:
    """Rows with `alerted`: whether their session has an alert."""
    alerts = tables["alerts"].select("session_id").distinct().mutate(alerted=ibis.literal(True))
    joined = beside(sessions, alerts)
    return joined.mutate(alerted=joined.alerted.fill_null(False))


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

    def rows(self, expression: ibis.Table) -> pl.DataFrame:
        """Execute an expression."""
        frame = opened_frame(pl.DataFrame(self.con.sql(self._ibis.compile(expression))))
        converted: pl.DataFrame = PolarsData.convert_table(frame, expression.schema())
        return converted

    def tables(self, grouped: Literal["session", "date"] = "date", days: Collection[date] | None = None) -> Tables:
        """The views, of some days or of all."""
        cohort = None
        if grouped == "session":
            self._make_cohort()
            cohort = self._table(_COHORT, "temp", "main")
        return Tables(self._table, grouped=grouped, days=days, cohort=cohort, without=self.without)

    def _table(self, name: str, *places: str) -> ibis.Table:
        """A table or view: Ibis itself asks for its columns by way of pyarrow, 170 MB that nothing else here needs."""
        columns = self.con.execute(f"DESCRIBE {'.'.join([*places, name])}").fetchall()
        types = self._ibis.compiler.type_mapper
        schema = {column: types.from_string(kind, nullable=null == "YES") for column, kind, null, *_ in columns}
        place = ops.Namespace(*places)
        return ops.DatabaseTable(name, schema=schema, source=self._ibis, namespace=place).to_expr()

    def days(self, job: Job) -> dict[date, Day]:
        """Every day that has rows of the job, with its mark."""
        found: dict[date, tuple[int, list[str]]] = {}
        for table in (each for name in job.about.reads for each in _TABLES.get(name, (name,))):
            for day, rows, places in self._marks_of(job, table):
                count, marks = found.setdefault(day, (0, []))
                found[day] = (count + rows, [*marks, f"{table}:{rows}:{places}"])
        return {day: Day(" ".join(marks), rows) for day, (rows, marks) in sorted(found.items())}

    def latest_day(self) -> date | None:
        """The last day on which a turn was received; None: there are no turns."""
        found = self.con.execute(f"SELECT max(date) FROM v1.turns WHERE {self._read('turns')}").fetchone()
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
        key = (snapshot[0] if snapshot else 0, table, job.about.grouped == "session")
        if key not in self._marked:
            self._marked[key] = self.con.execute(self._marks(job, table)).fetchall()
        return self._marked[key]

    def _marks(self, job: Job, table: str) -> str:
        read, before = self._read(table), self._emptied_before(table)
        emptied = "false" if before is None else f"r.date < DATE '{before}'"
        mark = f"count(*), bit_xor(hash(kafka_partition, kafka_offset, {emptied}))"
        if job.about.grouped == "date" or "session_id" not in ddl()[table]:
            return f"SELECT date, {mark} FROM {RAW}.{table} AS r WHERE {read} GROUP BY date"
        self._make_cohort()
        return (
            f"SELECT c.day, {mark} FROM {RAW}.{table} AS r JOIN temp.main.{_COHORT} AS c "
            f"ON c.session_id = {_SESSION} WHERE {read} GROUP BY c.day"
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
                f"SELECT {_SESSION} AS session_id, min(date) AS day FROM v1.turns AS r WHERE {self._read('turns')} "
                "GROUP BY ALL"
            )
            self._has_cohort = True
