"""Files of an Iceberg table, those that its snapshots name, and removal of the rest.

A file that nothing names is what a killed publisher left, or what another one is about to commit. It is removed only
when it was listed before a commit of ours: whoever wrote it began from an older snapshot, and will be refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pyarrow.fs import FileSelector, FileSystem, FileType
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table

from models.errors import ConfigurationError
from streams.archive.iceberg.marks import removed


def listed(table: Table) -> set[str]:
    """Every file under the table's location."""
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
    return places | {_checksum_of(place) for place in places}


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


def _checksum_of(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def _files_of(table: Table, location: str) -> tuple[FileSystem, str]:
    io = table.io
    assert isinstance(io, PyArrowFileIO)  # noqa: S101 - `catalog` asks for it
    scheme, netloc, path = io.parse_location(location, io.properties)
    return io.fs_by_scheme(scheme, netloc), path
