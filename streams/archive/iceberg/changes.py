"""Difference between a table of the archive and its Iceberg table, both ways.

Readers of Iceberg see each turn and each event with an id once, as the archive's views show them: of rows with the same
key the first by log order, or the one that was published already. Rows that are not shown are called hidden.

Nothing is deleted row by row: a day on which rows went, or one came back because the one before it went, is written
anew.
"""

# ruff: noqa: S608 - tables, columns and whole numbers are of this package, values travel as parameters and frames

from collections.abc import Collection, Iterable, Iterator
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa

from streams.archive.iceberg.tables import Marks, PublishedMark
from streams.archive.schema import OFFSETS, RAW, RETAINED, RawTable, ddl

_HIDDEN, _PUBLISHED, _UNPUBLISHED, _BACK = (
    f"temp.main.iceberg_{name}" for name in ("hidden", "published", "unpublished", "back")
)
_ROWS_AT_ONCE = 2_048
"""Of a batch; a file is made of as many as fill it."""
_SESSION_TURN = ("app_id", "session_id", "turn")
_KEYS = {"turns": _SESSION_TURN, "risk_points": _SESSION_TURN, "controls": (), "commands": (), "project_commands": ()}
"""What tells an event from its repeat, where that is not its id; the views show every command and control."""
_PARTS_OF_A_RECORD = {"risk_points": ("turn",)}
"""Tables with several rows of one record, and what tells these apart."""


class TableChanges:
    """One table of the archive beside its marks; inside of the caller's transaction, so of one moment."""

    def __init__(self, con: duckdb.DuckDBPyConnection, table: RawTable, marks: Marks) -> None:
        names = ddl()[table.name]
        self._con = con
        self._of = f"{RAW}.{table.name}"
        self._sorted_by = ", ".join(table.sorted_by)
        self._key = _KEYS.get(table.name, ("id",) if "id" in names else ())
        self.places = ("kafka_partition", "kafka_offset", *_PARTS_OF_A_RECORD.get(table.name, ()))
        """Columns that tell a row from every other one."""
        self._place = ", ".join(self.places)
        self._beyond = _beyond(marks)
        self._marks = marks
        self.standing, self._below = self._stand(table)
        self._make(_HIDDEN, f"SELECT {self._place} FROM {self._of} WHERE false")

    @property
    def columns(self) -> pa.Schema:
        """The archive's columns."""
        return self._con.execute(f"SELECT * FROM {self._of} LIMIT 0").to_arrow_table().schema

    @property
    def has_new(self) -> bool:
        """Whether offsets were archived beyond the marks, with or without a row."""
        known = self._marks.partitions
        return any(
            partition not in known or mark.next > known[partition].next
            for partition, mark in self.standing.partitions.items()
        )

    @property
    def some_went(self) -> bool:
        """Whether rows below the marks have gone since."""
        return any(self._below.get(partition, 0) < mark.rows for partition, mark in self._marks.partitions.items())

    def were_emptied(self, days: Iterable[date]) -> set[date]:
        """Which of these days have lost their words since."""
        before, known = self.standing.emptied_before, self._marks.emptied_before
        return {day for day in days if before is not None and day < before and (known is None or day >= known)}

    def hide_repeats(self) -> None:
        """Hide new rows whose key was seen before, or a second time among them."""
        if not self._key or not self.has_new:
            return
        key, place = ", ".join(self._key), self._place
        self._con.execute(
            f"INSERT INTO {_HIDDEN} WITH new AS (SELECT {self._place_and_key} FROM {self._of} WHERE {self._beyond}), "
            f"again AS (SELECT {key} FROM new GROUP BY ALL HAVING count(*) > 1), "
            f"known AS (SELECT DISTINCT {key} FROM {self._of} SEMI JOIN new USING ({key}) WHERE NOT ({self._beyond})), "
            f"numbered AS (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {place}) AS nth "
            f"FROM new SEMI JOIN again USING ({key})) "
            f"SELECT {place} FROM new SEMI JOIN known USING ({key}) UNION SELECT {place} FROM numbered WHERE nth > 1"
        )

    def compare(self, published: pa.RecordBatchReader, days: Collection[date] | None) -> tuple[set[date], int]:
        """Hide again what was hidden before; gives days on which rows went or are to come back, and how many went."""
        self._con.register("iceberg_rows", published)
        try:
            self._make(_PUBLISHED, "SELECT * FROM temp.main.iceberg_rows")
        finally:
            self._con.unregister("iceberg_rows")
        gone = self._con.execute(
            f"SELECT date, count(*) FROM {_PUBLISHED} ANTI JOIN {self._of} USING ({self._place}) GROUP BY ALL"
        ).fetchall()
        self._make(
            _UNPUBLISHED,
            f"SELECT {self._place_and_key}, date FROM {self._of} ANTI JOIN {_PUBLISHED} USING ({self._place}) "
            f"WHERE NOT ({self._beyond}) AND (? OR list_contains(?::DATE[], date))",
            [days is None, sorted(days or ())],
        )
        back = self._coming_back() if self._key else set()
        return {day for day, _ in gone} | back, sum(count for _, count in gone)

    def _coming_back(self) -> set[date]:
        """Hide the unpublished but the first of each key of which nothing that is published is left; their days."""
        key, place = ", ".join(self._key), self._place
        shown = (
            f"SELECT {self._place_and_key} FROM {self._of} SEMI JOIN {_UNPUBLISHED} USING ({key}) "
            f"ANTI JOIN {_UNPUBLISHED} USING ({place}) WHERE NOT ({self._beyond})"
        )
        self._make(
            _BACK,
            f"SELECT {place}, date FROM {_UNPUBLISHED} ANTI JOIN ({shown}) USING ({key}) "
            f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {place}) = 1",
        )
        self._con.execute(f"INSERT INTO {_HIDDEN} SELECT {place} FROM {_UNPUBLISHED} ANTI JOIN {_BACK} USING ({place})")
        return {day for (day,) in self._con.execute(f"SELECT DISTINCT date FROM {_BACK}").fetchall()}

    def new_rows(self) -> dict[date, int]:
        """How many rows beyond the marks are to be shown, by day."""
        if not self.has_new:
            return {}
        return dict(self._con.execute(f"{self._shown('date, count(*)', self._beyond)} GROUP BY ALL").fetchall())

    def rows_of(self, days: Collection[date]) -> int:
        """How many rows of these days are to be shown, new or not."""
        sql = self._shown("count(*)", "list_contains(?::DATE[], date)")
        counted: Any = self._con.execute(sql, [sorted(days)]).fetchone()
        return int(counted[0])

    def read(self, day: date, *, whole: bool) -> Iterator[pa.RecordBatch]:
        """Rows of a day in the order of the table: the new ones, or all. Nothing else may be asked meanwhile."""
        condition = "date = ?" if whole else f"date = ? AND ({self._beyond})"
        sql = f"{self._shown('*', condition)} ORDER BY {self._sorted_by}"
        yield from self._con.execute(sql, [day]).to_arrow_reader(_ROWS_AT_ONCE)

    @property
    def _place_and_key(self) -> str:
        return ", ".join(dict.fromkeys((*self.places, *self._key)))

    def _shown(self, what: str, condition: str) -> str:
        return f"SELECT {what} FROM {self._of} ANTI JOIN {_HIDDEN} USING ({self._place}) WHERE {condition}"

    def _make(self, table: str, query: str, parameters: list[Any] | None = None) -> None:
        self._con.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {query}", parameters)

    def _stand(self, table: RawTable) -> tuple[Marks, dict[int, int]]:
        """Where the archive stands, and how many rows each partition has below the marks."""
        landed = self._con.execute(
            f"SELECT topic, kafka_partition, next_offset FROM {RAW}.{OFFSETS} WHERE ends_with(topic, '.' || ?) "
            "ORDER BY ALL",
            [table.topic.name],
        ).fetchall()
        counted = self._con.execute(
            f"SELECT kafka_partition, count(*), count(*) FILTER (NOT ({self._beyond})) FROM {self._of} GROUP BY ALL"
        ).fetchall()
        emptied: Any = self._con.execute(
            f"SELECT max(before) FROM {RAW}.{RETAINED} WHERE table_name = ? AND what = 'words'", [table.name]
        ).fetchone()
        rows = {partition: count for partition, count, _ in counted}
        marks = {partition: PublishedMark(next_, rows.get(partition, 0)) for _, partition, next_ in landed}
        below = {partition: count for partition, _, count in counted}
        return Marks(landed[0][0] if landed else "", marks, emptied[0]), below


def _beyond(marks: Marks) -> str:
    """SQL that tells whether a row is beyond the marks."""
    if not marks.partitions:
        return "true"
    nexts = " ".join(f"WHEN {partition} THEN {mark.next}" for partition, mark in marks.partitions.items())
    return f"kafka_offset >= CASE kafka_partition {nexts} ELSE 0 END"
