"""Opening the archive: a DuckLake catalog in SQLite beside a folder of Parquet files.

Any number of processes read; writers take turns by a lock file, which the kernel releases when one of them dies.
SQLite refuses a transaction that began before another one was committed, so without the lock two archive processes
would do their work twice; the compare-and-set of offsets is what keeps it right either way.

Whoever attaches the catalog with a client of their own should set what `_open` sets, above all
`SET GLOBAL sqlite_disable_multithreaded_scans = true`.

DuckDB's extensions are loaded from their wheels in place: nothing is downloaded, no home directory is needed, two
processes that start together copy nothing over each other, and DuckDB checks their signatures.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import duckdb

from models.errors import ConfigurationError, StoreUnavailable, TurntideError
from streams.settings import Settings

LAKE = "lake"
"""Name under which every connection of ours attaches the catalog."""
METADATA = f"__ducklake_metadata_{LAKE}"
"""DuckDB's name for the SQLite database behind it."""

_EXTENSIONS = ("sqlite_scanner", "ducklake")
_BUSY_TIMEOUT_MS = 10_000
_BEING_CREATED = "creating a new DuckLake is explicitly disabled"
"""What DuckLake tells a reader of a catalog whose first writer has only just begun."""

_CAUSES = (
    # What DuckDB and SQLite say, and what the operator should do. Their full text may quote a turn.
    (r"database is locked|database table is locked", "the catalog is locked by another process: try again"),
    (r"No space left|disk is full", "the disk is full: make room"),
    (r"disk I/O error", "the disk refuses to be written: is it full or failing?"),
    (
        r"Permission denied|readonly database|read-only",
        "not writable: check owner and mode of the folder; SQLite needs to write there for reading, too",
    ),
    (r"No such file", "a file is missing: was the data folder moved or emptied? Check archive.data_path"),
    (r"not a database|malformed|corrupt", "damaged or of another kind: restore it, or set archive.catalog"),
    (r"File too large", "the file system refuses files of this size"),
    (r"unable to open", "it cannot be opened: check path, owner and mode"),
)


class LakePaths(NamedTuple):
    """Where an archive lives."""

    catalog: Path
    data: str
    """Folder of the Parquet files, ends with a slash."""

    @property
    def lock(self) -> Path:
        """Whoever writes holds it."""
        return self.catalog.with_name(self.catalog.name + ".lock")


def paths_of(settings: Settings) -> LakePaths:
    """Where the settings put the archive: by default `archive/` under the data directory."""
    folder = settings.data_dir / "archive"
    catalog = settings.archive.catalog
    data = settings.archive.data_path or str(folder / "data")
    return LakePaths(Path(catalog) if catalog else folder / "catalog.sqlite", data.rstrip("/") + "/")


def literal(text: str) -> str:
    """SQL literal of a path or option; values of rows go as parameters or frames, never through here."""
    return "'" + text.replace("'", "''") + "'"


def summary_of(error: Exception) -> str:
    """What went wrong, without the message: DuckDB quotes statements, and with them statistics of turns' text."""
    for pattern, meaning in _CAUSES:
        if re.search(pattern, str(error), re.IGNORECASE):
            return meaning
    return f"{type(error).__name__} in the archive's engine"


def unavailable(error: Exception, paths: LakePaths, doing: str) -> StoreUnavailable:
    """The error that says what could not be done, where and why. Raise it `from None`, see `summary_of`."""
    return StoreUnavailable(f"{doing} failed at {paths.catalog} with data in {paths.data}: {summary_of(error)}")


def is_locked(error: Exception) -> bool:
    """Whether another process was in the way, so that the same may work a moment later."""
    return re.search(_CAUSES[0][0], str(error), re.IGNORECASE) is not None


def open_writer(paths: LakePaths) -> duckdb.DuckDBPyConnection:
    """Open for writing; creates folders and catalog where there are none.

    Raises:
        StoreUnavailable: The place cannot be written to, or holds something else.
    """
    try:
        paths.catalog.parent.mkdir(parents=True, exist_ok=True)
        if "://" not in paths.data:
            Path(paths.data).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unavailable(error, paths, "creating the archive") from None
    # Readers go on reading while a writer commits.
    con = _open(paths, "META_JOURNAL_MODE 'WAL'")
    # A merge reads a file once and replaces it. DuckDB's cache of file pages would keep them all, up to 80 % of the
    # machine: measured, 120 landings with ten merges, 1 123 MB with it, 114 MB without.
    con.execute("SET GLOBAL enable_external_file_cache = false")
    return con


def open_reader(paths: LakePaths) -> duckdb.DuckDBPyConnection:
    """Open read-only, also while the archive role writes and merges; the views are found without a prefix.

    Each statement sees one snapshot; `BEGIN` holds one over several.

    Raises:
        ConfigurationError: There is no archive yet.
        StoreUnavailable: It cannot be read.
    """
    if not paths.catalog.is_file():
        raise _nothing_yet(paths)
    con = _open(paths, "READ_ONLY")
    if not con.execute("SELECT 1 FROM duckdb_views() WHERE database_name = ?", [LAKE]).fetchone():
        con.close()
        raise _nothing_yet(paths)
    return con


def _nothing_yet(paths: LakePaths) -> ConfigurationError:
    return ConfigurationError(
        f"no archive at {paths.catalog}: `turntide worker archive` writes one from Kafka, "
        "TURNTIDE_DATA_DIR or TURNTIDE_ARCHIVE__CATALOG says where"
    )


@contextmanager
def reading(paths: LakePaths) -> Iterator[duckdb.DuckDBPyConnection]:
    """A reader for the length of a block, in which the engine's errors become ours.

    Raises:
        ConfigurationError: There is no archive yet.
        StoreUnavailable: It cannot be read.
    """
    con = open_reader(paths)
    try:
        yield con
    except duckdb.Error as error:
        raise unavailable(error, paths, "reading the archive") from None
    finally:
        con.close()


def _open(paths: LakePaths, *options: str) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": str(Path(tempfile.gettempdir()) / "turntide-spill"),
        }
    )
    try:
        _load_extensions(con)
        # The catalog remembers the folder it was created with; the settings win, so that an archive can be moved.
        terms = ", ".join(
            (
                f"DATA_PATH {literal(paths.data)}",
                "OVERRIDE_DATA_PATH true",
                f"META_BUSY_TIMEOUT {_BUSY_TIMEOUT_MS}",
                *options,
            )
        )
        con.execute(f"ATTACH {literal(f'ducklake:sqlite:{paths.catalog}')} AS {LAKE} ({terms})")
        con.execute(f"USE {LAKE}")
        con.execute("SET GLOBAL TimeZone = 'UTC'")
        # Else each scan of a catalog table has a connection and a snapshot of its own, and a reader beside a merge sees
        # files, offsets and statistics of different moments: measured, 9 of 263 reads were wrong, without an error.
        # (Only GLOBAL reaches DuckLake's inner connection.)
        con.execute("SET GLOBAL sqlite_disable_multithreaded_scans = true")
    except TurntideError:
        con.close()
        raise
    except duckdb.Error as error:
        con.close()
        if _BEING_CREATED in str(error):
            raise _nothing_yet(paths) from None
        raise unavailable(error, paths, "opening the archive") from None
    return con


def _load_extensions(con: duckdb.DuckDBPyConnection) -> None:
    version = str(duckdb.__version__)
    for name in _EXTENSIONS:
        try:
            wheel = files(import_module(f"duckdb_extension_{name}"))
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                f"the archive needs the package duckdb-extension-{name.replace('_', '-')}: install `turntide[lake]`"
            ) from error
        file = wheel / "extensions" / f"v{version}" / f"{name}.duckdb_extension"
        if not file.is_file():
            raise ConfigurationError(
                f"duckdb {version} and duckdb-extension-{name.replace('_', '-')} do not fit together: "
                "install the same version of both"
            )
        con.execute(f"LOAD {literal(str(file))}")
