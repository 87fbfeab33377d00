"""The archive's views as Parquet, and two engines over the same files: DuckDB and Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import ibis
import pytest
from ibis.backends import BaseBackend

from streams.archive.catalog import reading
from tests.support.mined_archive import archive

_INSTALL = (
    "the tests of Spark need {}: `uv sync --group spark`, and a Java from 17 on (`apt install openjdk-17-jre-headless`)"
)
_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
}


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each view, and of `raw.turns` as it is published."""
    folder = tmp_path_factory.mktemp("views")
    with reading(archive(tmp_path_factory.mktemp("archive"))) as con:
        views = [name for (name,) in con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()]
        for view in dict.fromkeys(views):
            con.execute(f"COPY (FROM {view}) TO '{folder / view}.parquet'")
    return folder


@pytest.fixture(scope="session")
def duck(exported: Path) -> BaseBackend:
    """DuckDB over the files."""
    backend = ibis.duckdb.connect()
    backend.raw_sql("SET TimeZone = 'UTC'")
    return _with_views(backend, exported)


@pytest.fixture(scope="session")
def spark(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BaseBackend]:
    """Spark over the same files, one process on this machine. What is missing fails: it must not pass for tested."""
    if find_spec("pyspark") is None:
        pytest.fail(_INSTALL.format("PySpark"))
    if shutil.which("java") is None and not (Path(os.environ.get("JAVA_HOME", "/nowhere")) / "bin" / "java").exists():
        pytest.fail(_INSTALL.format("Java"))
    from pyspark.sql import SparkSession  # noqa: PLC0415 - of a group of its own

    builder = SparkSession.builder.master("local[1]").appName("turntide")
    for name, value in (_CONF | {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield _with_views(ibis.pyspark.connect(session), exported)
    session.stop()


def _with_views(backend: BaseBackend, folder: Path) -> BaseBackend:
    for file in sorted(folder.glob("*.parquet")):
        backend.read_parquet(str(file), table_name=file.stem)
    return backend
