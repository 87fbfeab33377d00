"""Publishing the archive: each table of `raw` becomes an Iceberg table of the same name, partitioned by day.

For each table, from one snapshot of the archive and one of the Iceberg table: rows beyond the marks are appended, days
that lost rows are written anew (`changes`), and the new marks go with them in one commit. A commit is refused
when another publisher was quicker; then all of it starts again from what that one left.

After a removal the old snapshots are forgotten at once and every file that only they named is deleted; a further,
empty commit drops the list of replaced files, whose statistics name sessions. Each step may be repeated: the next call
completes what a killed one left.

From rows of a day to Parquet files of an Iceberg table, a bounded number of bytes at a time.

PyIceberg's own `write_file` makes an empty list of a list of structs that is null (apache/iceberg-python#3833), in the
file, where no reader can tell. So the columns are cast by Arrow here, and PyIceberg only writes and describes the file.
"""

import itertools
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import NamedTuple

import duckdb
import pyarrow as pa
import structlog
from msgspec import Struct
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.io.fileformat import FileFormatFactory
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata

from models.errors import ConfigurationError, StoreUnavailable
from streams.archive.iceberg import tables
from streams.archive.iceberg.changes import TableChanges
from streams.archive.iceberg.tables import REMOVED, Marks, marks_of, removed
from streams.archive.schema import TABLES
from streams.archive.schema import RawTable as ArchiveTable
from streams.settings.archive import IcebergSettings


class FileWriter:
    """Writes the files of one commit. A commit that fails leaves them behind, see `tables`."""

    def __init__(self, metadata: TableMetadata, io: FileIO, *, file_bytes: int) -> None:
        self._metadata = metadata
        self._io = io
        self._file_bytes = file_bytes
        self._columns = schema_to_pyarrow(metadata.schema())
        self._locations = load_location_provider(metadata.location, metadata.properties)
        self._names = (f"{number:05}-{uuid.uuid4()}.parquet" for number in itertools.count())

    def write(self, day: date, batches: Iterable[pa.RecordBatch]) -> Iterator[DataFile]:
        """Write the rows of a day."""
        spec = self._metadata.spec()
        key = PartitionKey([PartitionFieldValue(spec.fields[0], day)], spec, self._metadata.schema())
        for portion in _portions(batches, self._file_bytes):
            yield self._write(key, portion)

    def _write(self, key: PartitionKey, portion: list[pa.RecordBatch]) -> DataFile:
        path = self._locations.new_data_location(next(self._names), key)
        output = self._io.new_output(path)
        form = FileFormatFactory.get(FileFormat.PARQUET)
        with form.create_writer(output, self._metadata.schema(), self._metadata.properties) as writer:
            writer.write(self._as_the_table_has_it(pa.Table.from_batches(portion)))
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=key.partition,
            file_size_in_bytes=len(output),
            sort_order_id=None,
            spec_id=self._metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **writer.result().to_serialized_dict(),
        )

    def _as_the_table_has_it(self, rows: pa.Table) -> pa.Table:
        """Types and field ids of the table; null for columns that the archive no longer has."""
        columns = [
            rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(len(rows), field.type)
            for field in self._columns
        ]
        return pa.Table.from_arrays(columns, schema=self._columns)


def _portions(batches: Iterable[pa.RecordBatch], size_bytes: int) -> Iterator[list[pa.RecordBatch]]:
    portion: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        portion.append(batch)
        size += batch.nbytes
        if size >= size_bytes:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


log = structlog.get_logger(__name__)

_ATTEMPTS = 5
_EPOCH = date(1970, 1, 1)


class PublishedTable(Struct, frozen=True, kw_only=True):
    """What a run did to one table, or would do.

    Attributes:
        table: Its name in both places.
        rows_added: Rows that readers did not see before.
        rows_deleted: Rows that readers do not see any more.
        days_rewritten: Days that were written anew.
        files_deleted: Files that no snapshot names any more.
        rows: Rows of the table now.
        snapshot_id: Its current snapshot, None where nothing has been published.
    """

    table: str
    rows_added: int
    rows_deleted: int
    days_rewritten: int
    files_deleted: int
    rows: int
    snapshot_id: int | None


def publish(
    con: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    settings: IcebergSettings,
    *,
    now: datetime,
    only: Collection[str] = (),
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[PublishedTable]:
    """Bring every Iceberg table, or `only` some, to where the archive stands, or say what would be done. Blocking.

    Raises:
        ConfigurationError: A table is not of this archive, is partitioned otherwise, or a tag keeps erased rows.
        StoreUnavailable: Others were quicker several times in a row. Tables that were done stay so.
    """
    done = []
    wanted = [table for table in TABLES.values() if not only or table.name in only]
    for number, table in enumerate(wanted):
        progress(number, len(wanted))
        publisher = _Publisher(con, catalog, settings, table, now)
        done.append(publisher.plan_only() if dry_run else publisher.publish())
    progress(len(wanted), len(wanted))
    return done


class _Plan(NamedTuple):
    """What there is to do to one table."""

    changes: TableChanges
    columns: pa.Schema
    files: Mapping[date, Sequence[DataFile]]
    """Of the Iceberg table."""
    stale: set[date]
    """Days to write anew."""
    new: set[date]
    """Days with rows beyond the marks."""
    added: int
    gone: int
    withdraws: bool
    """Whether rows or words go that no older snapshot may keep."""
    has_work: bool


class _Publisher:
    """Publishes one table."""

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        settings: IcebergSettings,
        table: ArchiveTable,
        now: datetime,
    ) -> None:
        self._con = con
        self._catalog = catalog
        self._settings = settings
        self._table = table
        self._now = now
        self._identifier = (settings.namespace, table.name)
        self._rows_added = self._rows_deleted = self._days_rewritten = self._files_deleted = 0

    def plan_only(self) -> PublishedTable:
        """Say what there is to do."""
        target = tables.found(self._catalog, self._identifier)
        with self._plan(target) as plan:
            self._count(plan)
        return self._described(target)

    def publish(self) -> PublishedTable:
        """Do it, and clear away what nothing names any more."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._described(self._publish())
            except (CommitFailedException, CommitStateUnknownException) as error:
                # What became of an unknown commit is seen in the marks.
                log.info("iceberg_commit_refused", table=self._table.name, attempt=attempt, error=type(error).__name__)
        raise StoreUnavailable(
            f"Iceberg table {'.'.join(self._identifier)}: other writers committed {_ATTEMPTS} times in a row during "
            "this publication: run only one publisher at a time"
        )

    def _publish(self) -> Table:
        target = tables.found(self._catalog, self._identifier)
        if target is None:
            columns = TableChanges(self._con, self._table, Marks()).columns
            target = tables.created(self._catalog, self._identifier, columns)
        target = tables.checked(target)
        # Before the state that the commit starts from: see `tables`.
        present = tables.listed(target)
        target.refresh()
        with self._plan(target) as plan:
            if plan.has_work or present - tables.named(target):
                self._commit(target, plan)
                self._count(plan)
        if (current := target.current_snapshot()) is not None and removed(current):
            _append_nothing(target)
        present |= tables.named(target)
        tables.expire(target, self._now - self._settings.keep_snapshots)
        target.refresh()
        self._files_deleted += tables.remove(target, present - tables.named(target))
        return target

    @contextmanager
    def _plan(self, target: Table | None) -> Iterator[_Plan]:
        """What there is to do, while the archive's snapshot is held."""
        self._con.execute("BEGIN")
        try:
            marks = Marks() if target is None else marks_of(target)
            changes = TableChanges(self._con, self._table, marks)
            if not marks.before(changes.standing):
                raise ConfigurationError(
                    f"Iceberg table {'.'.join(self._identifier)} is ahead of the archive, or of other topics: it was "
                    "published from another archive. Set TURNTIDE_ICEBERG__NAMESPACE to another one, or drop the table"
                )
            yield self._plan_of(changes, target, marks)
        finally:
            self._con.execute("ROLLBACK")

    def _plan_of(self, changes: TableChanges, target: Table | None, marks: Marks) -> _Plan:
        columns = changes.columns
        published = {} if target is None else _files_by_day(target)
        emptied = changes.were_emptied(published)
        small = {
            day: sum(file.file_size_in_bytes < self._settings.small_file_bytes for file in files)
            for day, files in published.items()
        }
        stale = emptied | {day for day, files in small.items() if files > self._settings.small_files_per_day}
        changes.hide_repeats()
        gone = 0
        if target is not None and (stale or changes.some_went):
            days = None if changes.some_went else stale
            found, gone = changes.compare(_places(target, changes, days), days)
            stale |= found
        kept = sum(file.record_count for day in stale for file in published.get(day, ())) - gone
        new = changes.new_rows()
        added = sum(rows for day, rows in new.items() if day not in stale) + changes.rows_of(stale) - kept
        return _Plan(
            changes=changes,
            columns=columns,
            files=published,
            stale=stale,
            new=set(new),
            added=added,
            gone=gone,
            withdraws=bool(gone or emptied),
            has_work=bool(stale) or changes.standing != marks or (target is not None and tables.lacks(target, columns)),
        )

    def _commit(self, target: Table, plan: _Plan) -> None:
        """Write the files and commit them, with the marks."""
        summary = plan.changes.standing.summary | ({REMOVED: "true"} if plan.withdraws else {})
        with target.transaction() as change:
            tables.grow(change, plan.columns)
            writer = FileWriter(change.table_metadata, target.io, file_bytes=self._settings.file_bytes)
            update = change.update_snapshot(snapshot_properties=summary)
            with update.overwrite() if plan.stale else update.merge_append() as snapshot:
                for day in plan.stale:
                    for file in plan.files.get(day, ()):
                        snapshot.delete_data_file(file)
                for day in sorted(plan.new | plan.stale):
                    for file in writer.write(day, plan.changes.read(day, whole=day in plan.stale)):
                        snapshot.append_data_file(file)

    def _count(self, plan: _Plan) -> None:
        self._rows_added += plan.added
        self._rows_deleted += plan.gone
        self._days_rewritten += len(plan.stale)

    def _described(self, target: Table | None) -> PublishedTable:
        current = None if target is None else target.current_snapshot()
        summary = None if current is None else current.summary
        return PublishedTable(
            table=self._table.name,
            rows_added=self._rows_added,
            rows_deleted=self._rows_deleted,
            days_rewritten=self._days_rewritten,
            files_deleted=self._files_deleted,
            rows=0 if summary is None else int(summary.additional_properties.get("total-records", 0)),
            snapshot_id=None if current is None else current.snapshot_id,
        )


def _append_nothing(target: Table) -> None:
    """Commit again what stands, without the list of what was replaced."""
    with target.transaction() as change:
        change.update_snapshot(snapshot_properties=marks_of(target).summary).fast_append().commit()


def _files_by_day(target: Table) -> Mapping[date, list[DataFile]]:
    found: defaultdict[date, list[DataFile]] = defaultdict(list)
    for task in target.scan(selected_fields=(tables.DAY,)).plan_files():
        found[_EPOCH + timedelta(days=task.file.partition[0])].append(task.file)
    return found


def _places(target: Table, changes: TableChanges, days: Collection[date] | None) -> pa.RecordBatchReader:
    """Places and days of the published rows."""
    listed = ", ".join(f"'{day}'" for day in sorted(days or ()))
    only = AlwaysTrue() if days is None else f"{tables.DAY} IN ({listed})"
    return target.scan(only, selected_fields=(*changes.places, tables.DAY)).to_arrow_batch_reader()
