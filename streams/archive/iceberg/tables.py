"""Iceberg tables: made, grown and found; how far each is published; its files, and removal of the rest."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import NamedTuple

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyarrow.fs import FileSelector, FileSystem, FileType
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Snapshot, ancestors_of
from pyiceberg.transforms import IdentityTransform

from models.errors import ConfigurationError

DAY = "date"
"""The column that every table is partitioned by."""
_BOUNDED = (
    *("kafka_partition", "kafka_offset", "appended_at", "timestamp"),
    *("session_id", "user_id", "app_id", "id", "turn"),
)
"""Columns whose least and greatest value per file find rows; others' would put conversations' words in manifests."""
_PROPERTIES = {
    "format-version": "2",
    # PyIceberg tries a refused commit again on top of whatever was committed meanwhile: for two publishers of the same
    # rows that doubles them.
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    "write.metadata.metrics.default": "counts",
}


def found(catalog: Catalog, identifier: tuple[str, str]) -> Table | None:
    """The table, None where there is none."""
    try:
        return catalog.load_table(identifier)
    except NoSuchTableError:
        return None


def created(catalog: Catalog, identifier: tuple[str, str], columns: pa.Schema) -> Table:
    """A new table with these columns, empty; the one of a publisher that was quicker."""
    bounds = {f"write.metadata.metrics.column.{name}": "truncate(64)" for name in columns.names if name in _BOUNDED}
    catalog.create_namespace_if_not_exists(identifier[0])
    try:
        with (
            catalog.create_table_transaction(identifier, columns, properties={**_PROPERTIES, **bounds}) as staged,
            staged.update_spec() as spec,
        ):
            spec.add_field(DAY, IdentityTransform(), DAY)
    except TableAlreadyExistsError:
        pass
    return catalog.load_table(identifier)


def checked(table: Table) -> Table:
    """The table, whose commits are not tried again behind our back.

    Raises:
        ConfigurationError: Somebody partitioned it otherwise.
    """
    if not all(spec.is_unpartitioned() or _is_by_day(spec, table) for spec in table.specs().values()):
        raise ConfigurationError(
            f"Iceberg table {'.'.join(table.name())} is not partitioned by {DAY} alone: drop it, and "
            "`turntide archive publish` writes it anew"
        )
    retries = "commit.retry.num-retries"
    if table.properties.get(retries) != _PROPERTIES[retries]:
        with table.transaction() as change:
            change.set_properties({retries: _PROPERTIES[retries]})
    return table


def lacks(table: Table, columns: pa.Schema) -> bool:
    """Whether the archive has columns, or fields of structs, that the table has not."""
    change = table.transaction()
    grow(change, columns)
    return change.table_metadata.schema() != table.schema()


def grow(change: Transaction, columns: pa.Schema) -> None:
    """Add what the archive has and the table has not: columns, and fields of structs."""
    with change.update_schema() as schema:
        schema.union_by_name(columns)


def _is_by_day(spec: PartitionSpec, table: Table) -> bool:
    return [(table.schema().find_column_name(field.source_id), str(field.transform)) for field in spec.fields] == [
        (DAY, "identity")
    ]


MARKS = "turntide.marks"
REMOVED = "turntide.removed"
"""In the summary of a snapshot after which nothing older may stay."""


class PublishedMark(NamedTuple):
    """How far one partition of the topic is published."""

    next: int
    """The next offset to publish."""
    rows: int
    """How many rows of the archive's table had a lower one, whether or not they are shown."""


class Marks(Struct, frozen=True):
    """How far a table is published, kept in the summary of the very snapshot that brought it there.

    Rows and marks are one commit, so a publisher that dies at any moment neither loses nor doubles. Beside the next
    offset stands how many rows the archive had below it: rows are only ever removed there, so fewer of them mean that
    something was erased or grew too old, whoever noted that.
    """

    topic: str = ""
    """Full name; empty where nothing has landed yet."""
    partitions: dict[int, PublishedMark] = {}
    emptied_before: date | None = None
    """Rows received on earlier days have no words any more (`streams.archive.retention`)."""

    @property
    def summary(self) -> dict[str, str]:
        """As properties of a snapshot."""
        return {MARKS: msgspec.json.encode(self).decode()}

    def before(self, standing: Marks) -> bool:
        """Whether an archive that stands there can be what was published so far."""
        if not self.partitions:
            return True
        return self.topic == standing.topic and all(
            partition in standing.partitions and mark.next <= standing.partitions[partition].next
            for partition, mark in self.partitions.items()
        )


def marks_of(table: Table) -> Marks:
    """The marks of the latest snapshot of ours; others may have compacted the table since.

    Raises:
        ConfigurationError: None of the table's snapshots is ours.
    """
    current = table.current_snapshot()
    if current is None:
        return Marks()
    found = next((mark for each in ancestors_of(current, table.metadata) if (mark := _property(each, MARKS))), None)
    if found is None:
        raise ConfigurationError(
            f"Iceberg table {'.'.join(table.name())}: no snapshot records how far it is published. Another writer "
            "changed it, or expired our snapshots: drop the table, and `turntide archive publish` writes it anew"
        )
    return msgspec.json.decode(found, type=Marks)


def removed(snapshot: Snapshot) -> bool:
    """Whether rows left the table with this snapshot."""
    return _property(snapshot, REMOVED) is not None


def _property(snapshot: Snapshot, name: str) -> str | None:
    return None if snapshot.summary is None else snapshot.summary.additional_properties.get(name)


def listed(table: Table) -> set[str]:
    """Every file under the table's location.

    A file that nothing names is what a killed publisher left, or what another one is about to commit. It is removed
    only when it was listed before a commit of ours: whoever wrote it began from an older snapshot, and will be refused.
    """
    files, folder = _files_of(table, table.location())
    found = files.get_file_info(FileSelector(folder, recursive=True, allow_not_found=True))
    return {each.path for each in found if each.type == FileType.File}


def named(table: Table) -> set[str]:
    """Every file that the table's metadata names, its snapshots' manifests and their files among them.

    And the checksums that a REST server with Hadoop's files keeps beside what it writes, as long as that stays.
    """
    metadata = table.metadata
    paths = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    paths |= {each.statistics_path for each in (*metadata.statistics, *metadata.partition_statistics)}
    manifests: dict[str, ManifestFile] = {}
    for snapshot in metadata.snapshots:
        paths.add(snapshot.manifest_list)
        manifests |= {manifest.manifest_path: manifest for manifest in snapshot.manifests(table.io)}
    for path, manifest in manifests.items():
        paths.add(path)
        paths |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    places = {_files_of(table, path)[1] for path in paths}
    return places | {f"{folder}{slash}.{name}.crc" for folder, slash, name in (each.rpartition("/") for each in places)}


def remove(table: Table, paths: Iterable[str]) -> int:
    """Remove files of the table, as `listed` has them; returns how many."""
    files, _ = _files_of(table, table.location())
    count = 0
    for path in sorted(paths):
        if files.get_file_info(path).type == FileType.File:
            files.delete_file(path)
            count += 1
    return count


def expire(table: Table, before: datetime) -> None:
    """Forget old snapshots: all but the current one when rows were removed, else those before a time.

    Raises:
        ConfigurationError: A tag or branch keeps one that has removed rows; the others are forgotten.
    """
    current = table.current_snapshot()
    if current is None:
        return
    erasing = {each.snapshot_id for each in table.snapshots() if removed(each)}
    least_ms = int(before.timestamp() * 1000)
    old = {
        each.snapshot_id
        for each in table.snapshots()
        if each.snapshot_id != current.snapshot_id and (erasing or each.timestamp_ms < least_ms)
    }
    holding = {name: ref.snapshot_id for name, ref in table.refs().items() if ref.snapshot_id in old}
    # What tells that rows were removed stays until nothing holds them, so that the next run says it again.
    old -= set(holding.values()) | (erasing if holding else set())
    if old:
        table.maintenance.expire_snapshots().by_ids(sorted(old)).commit()
    if erasing and holding:
        raise ConfigurationError(
            f"Iceberg table {'.'.join(table.name())}: {', '.join(sorted(holding))} keeps a snapshot with rows that "
            "were erased: drop it (tag or branch), then run `turntide archive publish` again"
        )


def _files_of(table: Table, location: str) -> tuple[FileSystem, str]:
    io = table.io
    assert isinstance(io, PyArrowFileIO)  # noqa: S101 - `catalog` asks for it
    scheme, netloc, path = io.parse_location(location, io.properties)
    return io.fs_by_scheme(scheme, netloc), path
