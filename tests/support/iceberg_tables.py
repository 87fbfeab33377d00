"""An archive beside its Iceberg tables, for tests: published, read back, and compared in DuckDB."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
from pyiceberg.table import Table

from models.entities import REGISTRY, carried_by
from streams.archive.catalog import open_reader
from streams.archive.iceberg.catalog import opened
from streams.archive.iceberg.publish import PublishedTable, publish
from streams.archive.place import paths_of
from streams.archive.schema import RAW
from streams.archive.writer import LakeWriter
from streams.settings import Settings
from tests.support.bytes_left import holding
from tests.support.lake_records import NOW, example, land_all


def land_everything(writer: LakeWriter) -> None:
    """Land the contracts' example of each kind of event."""
    land_all(writer, {topic: [*map(example, carried_by(topic))] for topic in REGISTRY.archived_topics})


class Archive:
    """An archive in a folder, with what is published of it.

    Args:
        folder: An empty one.
        iceberg: Settings of the tables.
    """

    def __init__(self, folder: Path, **iceberg: Any) -> None:
        self.folder = folder
        self.settings = Settings(data_dir=folder, iceberg=iceberg)
        self.writer = LakeWriter(paths_of(self.settings))

    @property
    def tables(self) -> Path:
        """Where catalog and files of the tables are."""
        return self.folder / "iceberg"

    def publish(self, *only: str, now: datetime = NOW, dry_run: bool = False) -> dict[str, PublishedTable]:
        """Publish all tables or these, and say what was done to each."""
        with closing(open_reader(self.writer.paths)) as con, opened(self.settings) as catalog:
            done = publish(con, catalog, self.settings.iceberg, now=now, only=only, dry_run=dry_run)
        return {each.table: each for each in done}

    def table(self, name: str) -> Table:
        """The Iceberg table."""
        with opened(self.settings) as catalog:
            return catalog.load_table((self.settings.iceberg.namespace, name))

    def read(self, name: str) -> pa.Table:
        """Every row of the Iceberg table."""
        return self.table(name).scan().to_arrow()

    def parquet(self, name: str) -> pa.Table:
        """Every row of the Iceberg table as other engines read its files: PyIceberg reads some nulls as empty lists."""
        paths = [task.file.file_path.removeprefix("file://") for task in self.table(name).scan().plan_files()]
        if not paths:
            return self.read(name)
        with duckdb.connect() as con:
            con.execute("SET TimeZone = 'UTC'")
            return con.read_parquet(paths, union_by_name=True).to_arrow_table()

    def turns(self) -> list[tuple[str, int]]:
        """Session and turn of every row of the Iceberg table of turns."""
        rows = self.read("turns").select(["session_id", "turn"]).to_pylist()
        return sorted((row["session_id"], row["turn"]) for row in rows)

    def differing(self, name: str, query: str | None = None) -> list[Any]:
        """Rows, whole, that are in a query of the archive (by default its raw table) or the Iceberg table alone."""
        con = self.writer.con
        con.register("published", self.parquet(name))
        columns = ", ".join(f'"{column[0]}"' for column in con.execute(f"DESCRIBE {RAW}.{name}").fetchall())
        mine = f"SELECT {columns} FROM {query or f'{RAW}.{name}'}"  # noqa: S608
        theirs = f"SELECT {columns} FROM temp.main.published"  # noqa: S608
        rows = con.execute(f"({mine} EXCEPT ALL {theirs}) UNION ALL ({theirs} EXCEPT ALL {mine})").fetchall()
        con.unregister("published")
        return rows

    def holding(self, needle: str) -> list[str]:
        """Files of the tables with the needle in any byte."""
        return holding(self.tables, needle)


@contextmanager
def at_first_call(
    owner: Any, name: str, *, before: Callable[[], object] = int, after: Callable[[], object] = int
) -> Iterator[None]:
    """What happens before, or after, a function is called for the first time in the block."""
    working, called = getattr(owner, name), list[bool]()

    def once(*arguments: Any) -> Any:
        called.append(True)
        if len(called) > 1:
            return working(*arguments)
        before()
        answer = working(*arguments)
        after()
        return answer

    with patch.object(owner, name, once):
        yield
