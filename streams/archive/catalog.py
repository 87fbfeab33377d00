"""Opening the archive: a DuckLake catalog in SQLite or Postgres, and Parquet files in a folder or on S3.

Any number of processes read; writers take turns by a lock (`writer`). SQLite refuses a transaction that began before
another one was committed, so without the lock two archive processes would do their work twice; the compare-and-set of
offsets is what keeps it right either way.

Whoever attaches a catalog in SQLite with a client of their own should set what `_open` sets, above all
`SET GLOBAL sqlite_disable_multithreaded_scans = true`.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from stat import S_ISDIR
from uuid import uuid4

import duckdb
import msgspec

from models.errors import ConfigurationError, StoreUnavailable, TurntideError
from streams.archive.damage import explained
from streams.archive.extensions import connected, literal
from streams.archive.place import LAKE, METADATA, LakePaths, paths_of, s3_secret
from streams.archive.postgres import SECRET
from streams.archive.views.published import lacking
from streams.observe.telemetry import memory_limit_bytes

__all__ = ["LAKE", "METADATA", "LakePaths", "literal", "paths_of"]  # that stand elsewhere

MOST_ENGINE_BYTES = 4 * 1024**3
"""Memory of a connection's engine, at the most half of what the process may take. What does not fit is spilt; left to
itself DuckDB takes 80 % of the machine: measured at 20 million turns, 15 GB to merge and 18 GB to mine topics."""
_BUSY_TIMEOUT_MS = 10_000
_NAMED = 3
"""Of what an archive lacks, so many are named."""
_BEING_CREATED = "creating a new DuckLake is explicitly disabled"
"""What DuckLake tells a reader of a catalog whose first writer has only just begun."""

_CAUSES_TOML = files("streams.archive").joinpath("causes.toml").read_bytes()
_CAUSES = msgspec.toml.decode(_CAUSES_TOML, type=dict[str, list[tuple[str, str]]])["causes"]


def summary_of(error: Exception) -> str:
    """What went wrong, without the message: DuckDB quotes statements, and with them statistics of turns' text."""
    for pattern, meaning in _CAUSES:
        if re.search(pattern, str(error), re.IGNORECASE):
            return meaning
    return f"{type(error).__name__} in the archive's engine"


def unavailable(
    error: Exception, paths: LakePaths, doing: str, con: duckdb.DuckDBPyConnection | None = None
) -> StoreUnavailable:
    """The error that says what could not be done, where and why. Raise it `from None`, see `summary_of`."""
    why = (explained(con) if con is not None else "") or summary_of(error)
    return StoreUnavailable(f"{doing} failed at {paths.shown} with data in {paths.data}: {why}")


def is_locked(error: Exception) -> bool:
    """Whether another process was in the way, so that the same may work a moment later."""
    return re.search(_CAUSES[0][0], str(error), re.IGNORECASE) is not None


def open_writer(paths: LakePaths) -> duckdb.DuckDBPyConnection:
    """Open for writing; creates folders and catalog where there are none.

    Raises:
        StoreUnavailable: The place cannot be written to, or holds something else.
    """
    try:
        if paths.postgres is None:
            paths.catalog.parent.mkdir(parents=True, exist_ok=True)
        if paths.is_folder:
            Path(paths.data).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unavailable(error, paths, "creating the archive") from None
    # Readers go on reading while a writer commits.
    con = _open(paths, *(("META_JOURNAL_MODE 'WAL'",) if paths.postgres is None else ()))
    # A merge reads a file once and replaces it. DuckDB's cache of file pages would keep them all, up to 80 % of the
    # machine: measured, 120 landings with ten merges, 1 123 MB with it, 114 MB without.
    con.execute("SET GLOBAL enable_external_file_cache = false")
    return con


def open_reader(paths: LakePaths) -> duckdb.DuckDBPyConnection:
    """Open read-only, also while the archive role writes and merges; the views are found without a prefix.

    Each statement sees one snapshot; `BEGIN` holds one over several.

    Raises:
        ConfigurationError: There is no archive yet, or it is older than this release.
        StoreUnavailable: It cannot be read.
    """
    con = open_any_reader(paths)
    if lack := lacking(con):
        con.close()
        raise ConfigurationError(
            f"the archive at {paths.shown} was written by an earlier release and lacks {', '.join(lack[:_NAMED])}"
            f"{' …' if len(lack) > _NAMED else ''}: `turntide archive upgrade` adds what is missing, old rows have null"
        )
    return con


def confine(con: duckdb.DuckDBPyConnection, paths: LakePaths, *writable: Path) -> None:
    """Keep the statements of a reader to the archive's own files, for good; `writable` are files that it may write.

    The engine itself must reach the archive's folder, so a `COPY … TO` could still write there: whoever runs a
    statement of somebody else refuses those (`jobs.archive.query`).
    """
    folders, files = [paths.data, str(paths.catalog.parent)], [str(path) for path in writable]
    con.execute(f"SET allowed_directories = [{', '.join(map(literal, folders))}]")
    con.execute(f"SET allowed_paths = [{', '.join(map(literal, files))}]::VARCHAR[]")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")


def open_any_reader(paths: LakePaths) -> duckdb.DuckDBPyConnection:
    """Open read-only, whatever release wrote it.

    Raises:
        ConfigurationError: There is no archive yet.
        StoreUnavailable: It cannot be read.
    """
    if paths.postgres is None and not paths.catalog.is_file():
        raise _nothing_yet(paths)
    con = _open(paths, "READ_ONLY")
    if not con.execute("SELECT 1 FROM duckdb_views() WHERE database_name = ?", [LAKE]).fetchone():
        con.close()
        raise _nothing_yet(paths)
    return con


def _nothing_yet(paths: LakePaths) -> ConfigurationError:
    return ConfigurationError(
        f"no archive at {paths.shown}: start `turntide worker archive` to write one from Kafka, "
        "or correct TURNTIDE_DATA_DIR or TURNTIDE_ARCHIVE__CATALOG"
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
        raise unavailable(error, paths, "reading the archive", con) from None
    finally:
        con.interrupt()  # a statement that Ctrl-C ended would go on, and closing would wait for it
        con.close()


def _open(paths: LakePaths, *options: str) -> duckdb.DuckDBPyConnection:
    config = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_persistent_secrets": "false",
        "temp_directory": str(spill_folder()),
        "memory_limit": f"{min(MOST_ENGINE_BYTES, memory_limit_bytes() // 2)}B",
    }
    try:
        con = connected(_extensions(paths), config)
    except duckdb.Error as error:
        raise unavailable(error, paths, "opening the archive") from None
    try:
        if not paths.is_folder:
            con.execute(s3_secret(paths.s3, paths.data))
        # The catalog remembers the folder it was created with; the settings win, so that an archive can be moved.
        attached, terms = _catalog(con, paths)
        terms = ", ".join((f"DATA_PATH {literal(paths.data)}", "OVERRIDE_DATA_PATH true", terms, *options))
        con.execute(f"ATTACH {literal(f'ducklake:{attached}')} AS {LAKE} ({terms})")
        con.execute(f"USE {LAKE}")
        con.execute("SET GLOBAL TimeZone = 'UTC'")
    except TurntideError:
        con.close()
        raise
    except duckdb.Error as error:
        con.close()
        if _BEING_CREATED in str(error):
            raise _nothing_yet(paths) from None
        raise unavailable(error, paths, "opening the archive") from None
    return con


def _extensions(paths: LakePaths) -> Iterator[str]:
    """What such a place needs, and nothing else: each takes some milliseconds to load."""
    yield "sqlite_scanner" if paths.postgres is None else "postgres_scanner"
    yield "ducklake"
    if not paths.is_folder:
        yield "httpfs"


def _catalog(con: duckdb.DuckDBPyConnection, paths: LakePaths) -> tuple[str, str]:
    """What DuckLake attaches, and the terms that go with it."""
    if paths.postgres is not None:
        con.execute(paths.postgres.secret)
        return f"postgres:{paths.postgres.connection}", f"META_SECRET {SECRET}"
    # Else each scan of a catalog table has a connection and a snapshot of its own, and a reader beside a merge sees
    # files, offsets and statistics of different moments: measured, 9 of 263 reads were wrong, without an error. (Only
    # GLOBAL reaches DuckLake's inner connection.) Of PostgreSQL all scans have the snapshot of one transaction.
    con.execute("SET GLOBAL sqlite_disable_multithreaded_scans = true")
    return f"sqlite:{paths.catalog}", f"META_BUSY_TIMEOUT {_BUSY_TIMEOUT_MS}"


def spill_folder(root: Path | None = None) -> Path:
    """A folder for the rows of one connection that do not fit into memory; not there before something is spilt.

    Each connection has its own, as names of files are the same in all. Rows have text in them: only the own user may
    look. DuckDB removes it at the end; what a killed process left goes with the next connection, so with every erasure.
    """
    root = root or Path(tempfile.gettempdir()) / f"turntide-spill-{os.getuid()}"
    with suppress(FileExistsError):
        root.mkdir(mode=0o700)
    found = root.lstat()
    if not S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigurationError(
            f"{root} is not private to this user: others could read temporary data in it. Remove it, or set TMPDIR to "
            "a folder of your own"
        )
    for left in root.iterdir():
        if not _is_alive(left.name.partition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    return root / f"{os.getpid()}-{uuid4().hex}"


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
