"""Writing the archive: one catalog transaction holds the rows of all tables and the offsets they came from.

DuckLake writes the Parquet files itself (`INSERT … SELECT`), rather than we with `ducklake_add_data_files`: measured,
both survive `kill -9` at any point (a file without its commit is an orphan that nobody reads), the folders come out the
same, and DuckLake's own files keep row lineage and sorting through merges; own files would cost a second naming, fsync
and schema-mapping path of ours.

Inlining of small inserts into the catalog is off, so that all rows are in open Parquet. The one exception is the
table of offsets: it changes with every landing, a row is 40 bytes, and as Parquet each change would be two files. Its
past versions leave the catalog with the merge (`maintenance`).
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters and frames

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

import duckdb
import polars as pl
import structlog
from aiokafka import TopicPartition
from filelock import FileLock, Timeout

from models.errors import ConfigurationError, Fenced, StoreUnavailable
from streams.archive.buffer import LandingBuffer, Move, unlandable
from streams.archive.catalog import LAKE, METADATA, LakePaths, is_locked, open_writer, unavailable
from streams.archive.columns import grows, type_of_column
from streams.archive.postgres import AdvisoryLock
from streams.archive.schema import OFFSETS, RAW, SKIPPED, TABLES, RawTable, ddl, skipped_frame
from streams.archive.views.published import VIEWS_VERSION, create_views, digest, present_columns, version_of

log = structlog.get_logger(__name__)

_LOCK_TIMEOUT_S = 60
_OPENING_TIMEOUT_S = 180
"""Whoever makes a new archive on a busy machine holds the lock for long, and the others have nothing to do yet."""
_ATTEMPTS = 5
_BACKOFF_S = 0.2

LANDING_LEVEL = 3
"""zstd's level of what lands; merged files are packed more tightly (`maintenance`)."""
DATA_ERRORS = (TypeError, ValueError, ArithmeticError, pl.exceptions.PolarsError)
"""What a value does to a column that cannot hold it."""
_OPTIONS = {
    "data_inlining_row_limit": "0",
    "parquet_compression": "'zstd'",
    "parquet_compression_level": str(LANDING_LEVEL),
    # Its encodings (deltas of numbers and lengths) are 1-10 % smaller than the first version's and quicker to write.
    "parquet_version": "2",
    "hive_file_pattern": "true",
}
_INLINED_OFFSETS = 100_000


class LandedFiles(NamedTuple):
    """What a landing added to one table."""

    rows: int
    files: int
    bytes: int


class LakeWriter:
    """The archive, opened for writing, made if missing. Blocking: call it from a thread, from one at a time.

    Raises:
        StoreUnavailable: It cannot be opened or written.
        ConfigurationError: It holds columns of other types than this version writes.
    """

    def __init__(self, paths: LakePaths) -> None:
        self.paths = paths
        self._lock = writers_lock(paths, timeout_s=_OPENING_TIMEOUT_S)
        with self.exclusively("opening the archive"):
            self.con = open_writer(paths)
            self._create()
        self._lock = writers_lock(paths, timeout_s=_LOCK_TIMEOUT_S)

    def close(self) -> None:
        """Close the connection; nothing is pending."""
        self.con.close()

    def reopen(self) -> None:
        """Let go of what the connection has gathered; call it outside a transaction.

        DuckDB's object cache grows with every landing (measured, 57 KB for one in seven tables) as long as the database
        is open, counts against `memory_limit`, and is not evicted. Reopened after each merge it stays below 1 MB.

        Raises:
            StoreUnavailable: It cannot be opened again; the old connection still serves.
        """
        with self.exclusively("opening the archive again"):
            gathered, self.con = self.con, open_writer(self.paths)
            gathered.close()

    # --- transactions

    @contextmanager
    def exclusively(self, doing: str) -> Iterator[None]:
        """Hold the writers' lock; StoreUnavailable: another process does for a minute, or the engine fails inside."""
        try:
            with self._lock:
                yield
        except Timeout:
            raise StoreUnavailable(
                f"{doing} waited too long for the lock of {self.paths.shown}: another process is writing. "
                "Wait for a merge or erasure to end, or resume a suspended writer"
            ) from None
        except (duckdb.Error, OSError) as error:
            raise unavailable(error, self.paths, doing, getattr(self, "con", None)) from None

    @contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """One catalog transaction: committed at the end, rolled back on any error."""
        self.con.execute("BEGIN")
        try:
            yield self.con
            self.con.execute("COMMIT")
        except BaseException:
            try:
                self.con.execute("ROLLBACK")
            except duckdb.Error:
                log.debug("archive_nothing_to_roll_back")
            raise

    # --- schema

    def _create(self) -> None:
        wanted = sha256(repr((_OPTIONS, ddl(), digest())).encode()).hexdigest()
        found = self.con.execute(
            "SELECT comment FROM duckdb_tables() WHERE database_name = ? AND schema_name = ? AND table_name = ?",
            [LAKE, RAW, OFFSETS],
        ).fetchone()
        if found == (wanted,):
            return
        self._refuse_later()
        for name, value in _OPTIONS.items():
            self.con.execute(f"CALL {LAKE}.set_option('{name}', {value})")
        with self.transaction() as con:
            con.execute(f"CREATE SCHEMA IF NOT EXISTS {RAW}")
            present = present_columns(con, RAW)
            for table, columns in ddl().items():
                if table in present:
                    self._extend(table, columns, present[table])
                else:
                    self._create_table(table, columns)
            create_views(con)
        self.con.execute(
            f"CALL {LAKE}.set_option('data_inlining_row_limit', {_INLINED_OFFSETS}, "
            f"schema => '{RAW}', table_name => '{OFFSETS}')"
        )
        # Last: an archive whose creation was cut short is completed by the next writer.
        self.con.execute(f"COMMENT ON TABLE {RAW}.{OFFSETS} IS '{wanted}'")

    def _refuse_later(self) -> None:
        """What a later release has as views must not be replaced by what this one knows."""
        version = version_of(self.con)
        if version is not None and version > VIEWS_VERSION:
            raise ConfigurationError(
                f"archive {self.paths.shown} has views of version {version}, this release writes {VIEWS_VERSION}: a "
                "later release wrote it. Run that release, or set TURNTIDE_ARCHIVE__CATALOG and "
                "TURNTIDE_ARCHIVE__DATA_PATH to a new place."
            )

    def _create_table(self, name: str, columns: Mapping[str, str]) -> None:
        described = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
        self.con.execute(f"CREATE TABLE {RAW}.{name} ({described})")
        if (table := TABLES.get(name)) is not None:
            self._partition(table)
            self.con.execute(f"ALTER TABLE {RAW}.{name} SET SORTED BY ({', '.join(table.sorted_by)})")

    def _partition(self, table: RawTable) -> None:
        """What lands from now on goes into the table's folders."""
        self.con.execute(f"ALTER TABLE {RAW}.{table.name} SET PARTITIONED BY ({', '.join(table.partitioned_by)})")

    def _extend(self, table: str, wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
        """Events grow by fields only (hazards, Contracts): old rows have null there."""
        for column, kind in wanted.items():
            if column not in present:
                self.con.execute(f'ALTER TABLE {RAW}.{table} ADD COLUMN "{column}" {kind}')
                if table in TABLES and column in TABLES[table].partitioned_by:
                    self._partition(TABLES[table])
            elif (wanted_type := type_of_column(self.con, kind)) == present[column]:
                continue
            elif grows(self.con, present[column], wanted_type):
                self.con.execute(f'ALTER TABLE {RAW}.{table} ALTER COLUMN "{column}" SET DATA TYPE {kind}')
            else:
                raise ConfigurationError(
                    f"archive {self.paths.shown}: column {table}.{column} is {present[column]}, this version writes "
                    f"{kind}. Set TURNTIDE_ARCHIVE__CATALOG and TURNTIDE_ARCHIVE__DATA_PATH to a new place."
                )

    # --- offsets

    def offsets(self) -> dict[TopicPartition, Move]:
        """Where the archive stands, by partition; `expected` is what the next landing must find.

        Raises:
            StoreUnavailable: The catalog cannot be read.
        """
        try:
            rows = self.con.execute(
                f"SELECT topic, kafka_partition, first_offset, next_offset FROM {RAW}.{OFFSETS}"
            ).fetchall()
        except duckdb.Error as error:
            raise unavailable(error, self.paths, "reading the archive's offsets") from None
        return {TopicPartition(topic, partition): Move(next_, first, next_) for topic, partition, first, next_ in rows}

    # --- landing

    def land(self, buffer: LandingBuffer, *, now: datetime) -> dict[str, LandedFiles]:
        """Write the buffer and move the offsets, all or nothing; gives what each table got. Durable on return.

        A row that its table cannot take is noted as skipped instead: one bad record must not stop all others.

        Raises:
            Fenced: A partition's offset is not what the buffer started from, as also after a commit whose outcome was
                unknown: nothing was written. Drop the buffer and read on from `offsets`.
            StoreUnavailable: Disk full, not writable, or locked for long: nothing was written.
        """
        frames = {name: _frame(buffer, name) for name in list(buffer.rows)}
        with self.exclusively("landing rows"):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._land(buffer, frames, now)
                except duckdb.Error as error:
                    if not is_locked(error) or attempt == _ATTEMPTS:
                        raise
                    time.sleep(_BACKOFF_S * 2**attempt)
                else:
                    break
            return self._landed(buffer)

    def _land(self, buffer: LandingBuffer, frames: Mapping[str, pl.DataFrame], now: datetime) -> None:
        with self.transaction():
            # First, since it is cheap and refuses everything else.
            self._move(buffer.moves, now)
            for name, frame in frames.items():
                if frame.height:
                    self._insert(name, frame)
            if buffer.skipped:
                self._insert(SKIPPED, skipped_frame(buffer.skipped, now))

    def _landed(self, buffer: LandingBuffer) -> dict[str, LandedFiles]:
        files = self.con.execute(
            f"SELECT t.table_name, count(*), sum(f.file_size_bytes)::BIGINT FROM {METADATA}.ducklake_data_file f "
            f"JOIN {METADATA}.ducklake_table t USING (table_id) "
            f"WHERE f.begin_snapshot = (SELECT max(snapshot_id) FROM {METADATA}.ducklake_snapshot) GROUP BY ALL"
        ).fetchall()
        return {name: LandedFiles(len(buffer.rows[name]), count, size) for name, count, size in files if name in TABLES}

    def _insert(self, table: str, frame: pl.DataFrame) -> None:
        with self._registered(frame) as name:
            self.con.execute(f"INSERT INTO {RAW}.{table} BY NAME SELECT * FROM {name}")

    @contextmanager
    def _registered(self, frame: pl.DataFrame) -> Iterator[str]:
        # By the Arrow stream interface, which needs no pyarrow. A stream is read once.
        self.con.register("landing", frame.__arrow_c_stream__())
        try:
            yield "temp.main.landing"
        finally:
            self.con.unregister("landing")

    def _move(self, moves: Mapping[TopicPartition, Move], now: datetime) -> None:
        known = {place: move for place, move in moves.items() if move.expected is not None}
        new = {place: move for place, move in moves.items() if move.expected is None}
        stored = self.offsets()
        fenced = [place for place in new if place in stored]
        if known:
            with self._registered(_moves_frame(known)) as name:
                changed: Any = self.con.execute(
                    f"UPDATE {RAW}.{OFFSETS} AS o SET next_offset = m.next_offset, landed_at = ? FROM {name} AS m "
                    "WHERE o.topic = m.topic AND o.kafka_partition = m.kafka_partition AND o.next_offset = m.expected",
                    [now],
                ).fetchone()
            if changed[0] != len(known):
                fenced += [p for p, move in known.items() if stored.get(p) != move._replace(next=move.expected or 0)]
        if fenced:
            places = ", ".join(f"{place.topic}-{place.partition}" for place in fenced)
            raise Fenced(f"archive: another process has landed {places}; the rows in memory are dropped")
        if new:
            with self._registered(_moves_frame(new)) as name:
                self.con.execute(
                    f"INSERT INTO {RAW}.{OFFSETS} "
                    f"SELECT topic, kafka_partition, first_offset, next_offset, ? FROM {name}",
                    [now],
                )


def _frame(buffer: LandingBuffer, name: str) -> pl.DataFrame:
    """The buffer's rows of a table as columns; moves those that have no column form to what is skipped."""
    table, rows = TABLES[name], buffer.rows[name]
    try:
        return table.frame(rows)
    except DATA_ERRORS as error:
        log.warning("archive_rows_unlandable", table=name, error=type(error).__name__)
    good: list[int] = []
    for row in range(len(rows)):
        try:
            table.frame(rows.only([row]))
        except DATA_ERRORS as error:
            if rows.owners[row] is rows.events[row]:  # else it is a part of what has a row
                topic = next(place.topic for place in buffer.moves if place.topic.endswith(f".{table.topic.name}"))
                place = TopicPartition(topic, rows.partitions[row])
                buffer.skip(unlandable(place, rows.offsets[row], error))
        else:
            good.append(row)
    buffer.rows[name] = rows.only(good)
    return table.frame(buffer.rows[name])


def _moves_frame(moves: Mapping[TopicPartition, Move]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "topic": [place.topic for place in moves],
            "kafka_partition": [place.partition for place in moves],
            "expected": [move.expected for move in moves.values()],
            "first_offset": [move.first for move in moves.values()],
            "next_offset": [move.next for move in moves.values()],
        },
        schema_overrides={"expected": pl.Int64},
    )


def writers_lock(paths: LakePaths, *, timeout_s: float) -> FileLock | AdvisoryLock:
    """A file's beside a catalog in SQLite, whose folder is made for it, or PostgreSQL's own; may be entered again.

    Entering it raises `filelock.Timeout` when another process holds it for longer than `timeout_s`.
    """
    if paths.postgres is not None:
        return AdvisoryLock(paths.postgres, timeout_s=timeout_s)
    paths.catalog.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(paths.lock, timeout=timeout_s, thread_local=False)
