"""What `turntide archive attach` prints is run as it stands, by the engine that it is for."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from jobs.archive.attach import Engine, lines_for
from models.errors import ConfigurationError
from streams.archive.extensions import _wheel
from streams.settings import Settings
from tests.support.iceberg_tables import Archive
from tests.support.lake_records import NOW, buffer_of, turn


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Two turns of one session, in a folder whose name needs quoting."""
    folder = tmp_path / "ann's archive"
    folder.mkdir()
    made = Archive(folder)
    made.writer.land(buffer_of([turn(0), turn(1)], first=0, expected=None), now=NOW)
    yield made
    made.writer.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with DuckDB's extensions, which a reader elsewhere would download."""
    with closing(duckdb.connect(config={"home_directory": str(tmp_path)})) as con:
        for name in ("ducklake", "sqlite_scanner"):
            con.execute(f"INSTALL '{_wheel(name).file}'")
    return tmp_path


def test_duckdb_reads_the_views(archive: Archive, home: Path) -> None:
    """The printed statements, one after the other, end with the sessions of each app."""
    with closing(duckdb.connect(config={"home_directory": str(home)})) as con:
        rows = con.execute(lines_for("duckdb", archive.settings)).fetchall()

    assert [("support", 1)] == [row[:2] for row in rows]


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("polars", "shape: (1, 4)"),
        pytest.param("pandas", "app_id", marks=pytest.mark.spark),
        ("pyiceberg", 'session_id: [["s-1","s-1"]]'),
    ],
)
def test_python_reads_it(archive: Archive, home: Path, engine: Engine, said: str) -> None:
    """The printed program prints rows of the archive."""
    archive.publish("turns")
    program = lines_for(engine, archive.settings)

    run = subprocess.run(  # noqa: S603 - our own lines
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(home)},
    )

    assert (0, "") == (run.returncode, run.stderr)
    assert said in run.stdout


@pytest.mark.parametrize("engine", ["pyiceberg", "spark", "trino"])
def test_what_is_not_published_cannot_be_attached(archive: Archive, engine: Engine) -> None:
    """The message says by which command it will be."""
    with pytest.raises(ConfigurationError, match="turntide archive publish"):
        lines_for(engine, archive.settings)


def test_trino_needs_a_rest_catalog_and_gets_no_token(archive: Archive) -> None:
    """A catalog in SQLite is refused with what to do; of one behind a server no secret is printed."""
    archive.publish("turns")
    with pytest.raises(ConfigurationError, match="REST catalog"):
        lines_for("trino", archive.settings)
    server = Settings(data_dir=archive.folder, iceberg={"uri": "https://me:s3cret@lake.example.org", "token": "t0ken"})

    for engine in ("trino", "spark", "pyiceberg"):
        lines = lines_for(engine, server)

        assert "https://lake.example.org" in lines
        assert "t0ken" not in lines
        assert "s3cret" not in lines


def test_spark_reads_a_catalog_in_postgres_by_its_own_driver_and_no_unknown_one(archive: Archive) -> None:
    """The address is JDBC's, without the Python driver, the user and what follows; another database is refused."""
    archive.publish("turns")
    address = "postgresql+psycopg2://me:s3cret@db.example.org:5432/lake?sslmode=require"
    lines = lines_for("spark", Settings(data_dir=archive.folder, iceberg={"uri": address}))
    mysql = Settings(data_dir=archive.folder, iceberg={"uri": "mysql+pymysql://db.example.org/lake"})

    assert "catalog.turntide.uri=jdbc:postgresql://db.example.org:5432/lake \\\n" in lines
    assert "org.postgresql:postgresql:" in lines
    assert "catalog.turntide.jdbc.user=…" in lines
    assert "sqlite" not in lines
    assert "s3cret" not in lines
    with pytest.raises(ConfigurationError, match="Spark cannot read the catalog mysql"):
        lines_for("spark", mysql)
    assert f"uri=jdbc:sqlite:{archive.folder}" in lines_for("spark", archive.settings)
