"""The Iceberg tables themselves: created, grown and found."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table, Transaction
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
