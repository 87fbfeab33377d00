"""From rows of a day to Parquet files of an Iceberg table, a bounded number of bytes at a time.

PyIceberg's own `write_file` makes an empty list of a list of structs that is null (apache/iceberg-python#3833), in the
file, where no reader can tell. So the columns are cast by Arrow here, and PyIceberg only writes and describes the file.
"""

import itertools
import uuid
from collections.abc import Iterable, Iterator
from datetime import date

import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.io.fileformat import FileFormatFactory
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata


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
