"""Publishing does the same over every kind of catalog: a database, and Apache's own REST server.

Over the database with each run of the suite; over the server with PySpark's group (`.ci/spark`), whose Java it needs.
What holds for the database alone, or is the same for every catalog, is in `unit/test_iceberg_publish.py` and
`unit/test_iceberg_faults.py`.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch
from uuid import uuid4

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException

from models.errors import ConfigurationError, StoreUnavailable
from models.events.topics import PROFILES
from streams.archive.erasing import erase
from streams.archive.iceberg import publish, tables
from streams.archive.iceberg.withdraw import withdraw
from streams.archive.schema import RAW, TABLES
from tests.support.bytes_left import holding
from tests.support.iceberg_rest import rest_catalog
from tests.support.iceberg_tables import Archive, at_first_call, land_everything
from tests.support.lake_records import NOW, buffer_of, profile, turn
from tests.support.subjects import of_session

CANARY = "canaryfeathers"
_CANARIES = of_session(f"s-{CANARY}")
_KINDS: dict[str, type[Catalog]] = {"sql": SqlCatalog, "rest": RestCatalog}


class Published(Archive):
    """An archive, and what its publisher works with.

    Args:
        folder: An empty one.
        kind: Of the catalog.
        files: Where catalog and tables are.
        iceberg: Settings of the tables.
    """

    def __init__(self, folder: Path, kind: type[Catalog], files: Path, **iceberg: Any) -> None:
        super().__init__(folder, **iceberg)
        self.kind = kind
        self.files = files

    def data_files(self, name: str) -> list[Path]:
        """Files of rows that a table's folder has."""
        return [*Path(self.table(name).location().removeprefix("file://")).rglob("*.parquet")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """One REST server for all tests; each has a namespace of its own."""
    folder = tmp_path_factory.mktemp("rest")
    with rest_catalog(folder) as address:
        yield address, folder


@pytest.fixture(params=["sql", pytest.param("rest", marks=pytest.mark.spark)])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Published]:
    """An archive of its own, and a catalog of each kind for it."""
    files, iceberg = tmp_path / "iceberg", {}
    if request.param == "rest":
        address, files = request.getfixturevalue("server")
        iceberg = {"uri": address, "namespace": f"n{uuid4().hex}"}
    archive = Published(tmp_path, _KINDS[request.param], files, **iceberg)
    yield archive
    archive.writer.close()


def test_every_table_has_the_rows_of_the_archive(archive: Published) -> None:
    """Structs, lists, times, bytes and nulls of every kind of event; a second run finds nothing to do."""
    land_everything(archive.writer)
    archive.writer.land(buffer_of([turn(7, content="a\0b")], first=99, expected=None, partition=1), now=NOW)

    first = archive.publish()
    again = archive.publish()

    assert {name: [] for name in TABLES} == {name: archive.differing(name) for name in TABLES}
    assert [] == [name for name, each in first.items() if not each.rows or each.rows != each.rows_added]
    assert {name: (each.snapshot_id, 0) for name, each in first.items()} == {
        name: (each.snapshot_id, each.rows_added) for name, each in again.items()
    }


def test_the_next_run_adds_what_is_new(archive: Published) -> None:
    """Of a new partition too; and columns that the archive has grown, down to fields of structs."""
    archive.writer.land(buffer_of([profile("p-1", turns=1)], topic=PROFILES), now=NOW)
    archive.publish("profiles")
    with archive.writer.transaction() as con:
        con.execute(f"ALTER TABLE {RAW}.profiles ADD COLUMN later VARCHAR[]")
        con.execute(f"ALTER TABLE {RAW}.profiles ADD COLUMN slope.later DOUBLE")
    archive.writer.land(buffer_of([profile("p-2", turns=1)], topic=PROFILES, first=1, expected=1), now=NOW)
    archive.writer.land(buffer_of([profile("p-3", turns=1)], topic=PROFILES, partition=1), now=NOW)

    done = archive.publish("profiles")["profiles"]

    assert (2, 3) == (done.rows_added, done.rows)
    assert [] == archive.differing("profiles")


def _publishes(archive: Published, added: list[int]) -> None:
    """Another publisher was quicker."""
    added.append(archive.publish("turns")["turns"].rows_added)


def test_the_slower_of_two_publishers_starts_again(archive: Published) -> None:
    """The catalog refuses its commit; no row is there twice, and its files go."""
    archive.writer.land(buffer_of([turn(0)]), now=NOW)
    archive.publish("turns")
    archive.writer.land(buffer_of([turn(1), turn(2)], first=1, expected=1), now=NOW)
    quicker: list[int] = []
    with at_first_call(archive.kind, "commit_table", before=partial(_publishes, archive, quicker)):
        slower = archive.publish("turns")["turns"]

    assert (2, 0) == (quicker[0], slower.rows_added)
    assert [("s-1", 0), ("s-1", 1), ("s-1", 2)] == archive.turns()
    assert 2 == len(archive.data_files("turns"))


def test_the_slower_of_two_makers_of_a_table_uses_the_other_ones(archive: Published) -> None:
    """Both saw none; the rows are there once."""
    archive.writer.land(buffer_of([turn(0)]), now=NOW)
    quicker: list[int] = []
    with at_first_call(tables, "found", after=partial(_publishes, archive, quicker)):
        slower = archive.publish("turns")["turns"]

    assert (1, 0) == (quicker[0], slower.rows_added)
    assert [("s-1", 0)] == archive.turns()


def test_an_unknown_outcome_is_seen_in_the_marks(archive: Published) -> None:
    """The commit landed, its answer was lost: nothing is published a second time."""
    archive.writer.land(buffer_of([turn(0)]), now=NOW)
    archive.publish("facts", "turns")
    archive.writer.land(buffer_of([turn(1)], first=1, expected=1), now=NOW)
    with at_first_call(archive.kind, "commit_table", after=Mock(side_effect=CommitStateUnknownException)):
        archive.publish("turns")

    assert [("s-1", 0), ("s-1", 1)] == archive.turns()


def test_no_byte_of_an_erased_session_is_left(archive: Published) -> None:
    """Not in data, manifests, metadata or the catalog; a second look finds nothing."""
    mixed = [turn(n // 2, session_id=f"s-{CANARY}", content=CANARY) if n % 2 else turn(n // 2) for n in range(6)]
    archive.writer.land(buffer_of(mixed), now=NOW)
    archive.publish("turns")
    before = holding(archive.files, CANARY)
    erase(archive.writer, _CANARIES, now=NOW)

    with patch.object(publish, "TABLES", {"turns": TABLES["turns"]}):  # each further table takes a second
        withdrawn = {store.store: store for store in withdraw(archive.settings, now=NOW)}["iceberg turns"]

    assert {".parquet", ".avro"} <= {Path(name).suffix for name in before}
    assert (3, 0) == (withdrawn.removed, withdrawn.remaining)
    assert [] == holding(archive.files, CANARY)
    assert 1 == len(archive.table("turns").snapshots())
    assert [] == archive.differing("turns")


def test_a_tag_that_keeps_erased_rows_is_named(archive: Published) -> None:
    """Whatever keeps references: the catalog's file or a server."""
    archive.writer.land(buffer_of([turn(0), turn(0, session_id=f"s-{CANARY}", content=CANARY)]), now=NOW)
    first = archive.publish("turns")["turns"].snapshot_id
    assert first is not None
    archive.table("turns").manage_snapshots().create_tag(first, "quarterly").commit()
    erase(archive.writer, _CANARIES, now=NOW)

    for _ in range(2):
        with pytest.raises(ConfigurationError, match="quarterly keeps a snapshot"):
            archive.publish("turns")
    archive.table("turns").manage_snapshots().remove_tag("quarterly").commit()
    archive.publish("turns")

    assert [] == holding(archive.files, CANARY)
    assert [("s-1", 0)] == archive.turns()


@pytest.mark.spark
def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With its address, and what to do."""
    with rest_catalog(tmp_path) as address:
        pass
    archive = Archive(tmp_path / "archive", uri=address)

    with pytest.raises(StoreUnavailable, match=rf"{address} or its files .* are unavailable"):
        archive.publish("turns")
    archive.writer.close()
