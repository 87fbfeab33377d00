"""`turntide archive attach`: the lines with which other engines open this archive."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from jobs.cli import with_examples
from models.errors import ConfigurationError
from streams.archive.extensions import literal
from streams.archive.place import IcebergPlace, is_published, paths_of, place_of
from streams.http.pages import source
from streams.settings import Settings, load_settings

Engine = Literal["duckdb", "polars", "pandas", "pyiceberg", "spark", "trino"]
"""Readers of the archive: the first three open its catalog, the others the Iceberg tables."""


_FRAMES = {"polars": "pl", "pandas": "df"}
_JDBC = {"sqlite": ",org.xerial:sqlite-jdbc:3.50.3.0", "postgresql": ",org.postgresql:postgresql:42.7.8"}
"""Drivers by the database that a SQL catalog is in."""
_OF_CATALOG = {"duckdb", *_FRAMES}


@with_examples(
    "turntide archive attach --for duckdb | duckdb",
    "turntide archive attach --for polars > read.py",
    "turntide archive attach --for spark",
)
def attach(*, engine: Annotated[Engine, typer.Option("--for", help="Engine that reads.")] = "duckdb") -> None:
    """Print code that opens this archive in another engine, with its paths. Prints no password.

    DuckDB, Polars and pandas read the archive itself and its views; PyIceberg, Spark and Trino read the tables of
    `turntide archive publish`.
    """
    typer.echo(lines_for(engine, load_settings()))


def lines_for(engine: Engine, settings: Settings) -> str:
    """What is printed.

    Raises:
        ConfigurationError: Nothing is published as Iceberg yet, or the engine cannot read such a catalog.
    """
    if engine not in _OF_CATALOG and not is_published(settings):
        raise ConfigurationError(
            f"{engine} reads the archive as Iceberg tables, which do not exist: run `turntide archive publish` first"
        )
    place = place_of(settings)
    if (engine == "trino" and not place.is_rest) or (engine == "spark" and _driver(place) is None):
        raise ConfigurationError(
            f"{engine.capitalize()} cannot read the catalog {place.shown}: publish to a REST catalog "
            "(TURNTIDE_ICEBERG__URI=https://…), or read the archive with --for duckdb"
        )
    templates = msgspec.toml.decode(source("jobs/archive/attach.toml"), type=dict[str, str])
    template = templates["python" if engine in _FRAMES else engine]
    return template.strip("\n").format(
        store="sqlite" if paths_of(settings).postgres is None else "postgres",
        attach=_attach(settings),
        frame=_FRAMES.get(engine, ""),
        uri=place.shown,
        properties=_properties(place),
        conf=_conf(place),
        driver=_driver(place),
        namespace=settings.iceberg.namespace,
    )


def _attach(settings: Settings) -> str:
    paths = paths_of(settings)
    store = f"sqlite:{paths.catalog.absolute()}" if paths.postgres is None else f"postgres:{paths.postgres.connection}"
    data = f"{Path(paths.data).absolute()}/" if paths.is_folder else paths.data
    return (
        f"ATTACH {literal(f'ducklake:{store}')} AS lake (DATA_PATH {literal(data)}, OVERRIDE_DATA_PATH true, READ_ONLY)"
    )


def _properties(place: IcebergPlace) -> dict[str, str]:
    told = {"type": "rest" if place.is_rest else "sql", "uri": place.shown}
    return told | ({"warehouse": place.warehouse} if place.warehouse else {})


def _driver(place: IcebergPlace) -> str | None:
    """What Spark needs beside Iceberg's runtime to open the catalog: a driver with a comma before it; None: unknown."""
    return "" if place.is_rest else _JDBC.get(_database(place))


def _database(place: IcebergPlace) -> str:
    """Kind of a SQL catalog's database: SQLAlchemy's addresses may name a Python driver behind it."""
    return place.uri.partition(":")[0].partition("+")[0]


def _conf(place: IcebergPlace) -> str:
    if place.is_rest:
        told = {"type": "rest", "uri": place.shown, "token": "…"}
    else:
        at = place.shown.partition("://")[2].partition("?")[0]
        is_file = place.file is not None
        told = {"type": "jdbc", "uri": f"jdbc:{_database(place)}:{at.removeprefix('/') if is_file else f'//{at}'}"}
        told |= {"jdbc.schema-version": "V1"} | ({} if is_file else {"jdbc.user": "…", "jdbc.password": "…"})
    told |= {"warehouse": place.warehouse} if place.warehouse else {}
    return "\n".join(f"  --conf spark.sql.catalog.turntide.{name}={value} \\" for name, value in told.items())
