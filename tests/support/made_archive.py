"""A new archive as a copy of one that the product made in this process, since making one takes a second.

Every statement of it runs in the test processes all the same: once for the copies, anew in each test that asks for
`archives_made_anew` (those of the writer itself), in child processes, and wherever the catalog is in PostgreSQL.
"""

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from streams.archive import writer
from streams.archive.catalog import open_writer
from streams.archive.place import LakePaths
from streams.archive.schema import ddl
from streams.archive.views.published import digest

_OPENS = "open_writer"
connected: Callable[..., duckdb.DuckDBPyConnection] = duckdb.connect
"""DuckDB's own, for tests of what several threads of its engine do."""


class Copies:
    """Stands where the writer opens its catalog.

    Args:
        folder: Where the made ones are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, Path] = {}

    def open(self, paths: LakePaths) -> duckdb.DuckDBPyConnection:
        """Open as the writer does; where there is no catalog yet, one that was made as this release makes it."""
        if paths.postgres is None and paths.is_folder and not paths.catalog.exists():
            made = self._template()
            paths.catalog.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(made, paths.catalog)
            with closing(sqlite3.connect(paths.catalog)) as catalog, catalog:
                catalog.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", [paths.data])
        return open_writer(paths)

    def _template(self) -> Path:
        """The catalog of an empty archive, with the tables, columns and views of this moment."""
        wanted = repr((writer._OPTIONS, ddl(), digest()))
        if wanted not in self._made:
            home = self._folder / str(len(self._made))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(writer, _OPENS, open_writer)
                writer.LakeWriter(LakePaths(home / "catalog.sqlite", f"{home}/data/")).close()
            self._made[wanted] = home / "catalog.sqlite"
        return self._made[wanted]


def stand_in(copies: Callable[[LakePaths], duckdb.DuckDBPyConnection], patch: pytest.MonkeyPatch) -> None:
    """Let the writer open its catalogs so."""
    patch.setattr(writer, _OPENS, copies)


_FOR_SMALL_TABLES = {"threads": 1, "disabled_optimizers": "join_order"}


def for_small_tables(patch: pytest.MonkeyPatch) -> None:
    """Let databases that this process opens work on one thread, and join tables in the order they are named.

    Threads spin in between: `test_iceberg_publish`, `test_lake_retention` and `test_lake_damage` took 39 s of processor
    time instead of 54 on two busy cores. The search for the best order asks DuckLake for statistics of each table: half
    of what a view takes here. Child processes plan, and have as many threads, as users do.
    """

    def on_one(*at: Any, config: Mapping[str, Any] | None = None, **options: Any) -> duckdb.DuckDBPyConnection:
        return connected(*at, config={**_FOR_SMALL_TABLES, **(config or {})}, **options)

    patch.setattr(duckdb, "connect", on_one)
