"""DuckDB's extensions, loaded from their wheels in place.

Nothing is downloaded, no home directory is needed, two processes that start together copy nothing over each other, and
DuckDB checks their signatures: once in a process. It would hash both files of every connection anew, 70 MB, though the
code that runs is that which the process mapped first: measured, 0.26 s of processor time a connection, 0.003 s without.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import duckdb

from models.errors import ConfigurationError

_UNSIGNED = "allow_unsigned_extensions"


class _Wheel(NamedTuple):
    """An extension's file as it stands on disk."""

    file: Path
    inode: int
    size_bytes: int
    changed_ns: int


_checked: set[_Wheel] = set()
"""Files whose signature this process has seen DuckDB accept."""


def literal(text: str) -> str:
    """SQL literal of a path or option; values of rows go as parameters or frames, never through here."""
    return "'" + text.replace("'", "''") + "'"


def connected(names: Iterable[str], config: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A new database in memory with these extensions; it loads no others that are not signed.

    Raises:
        ConfigurationError: A wheel is missing, or of another version than DuckDB.
        duckdb.Error: An extension cannot be loaded, or its signature is wrong.
    """
    wheels = [_wheel(name) for name in names]
    known = _checked.issuperset(wheels)
    con = duckdb.connect(config={**config, _UNSIGNED: str(known).lower()})
    try:
        for wheel in wheels:
            con.execute(f"LOAD {literal(str(wheel.file))}")
        con.execute(f"SET GLOBAL {_UNSIGNED} = false")  # what the operator's SQL loads is checked; nothing turns it on
    except duckdb.Error:
        con.close()
        raise
    _checked.update(wheels)
    return con


def _wheel(name: str) -> _Wheel:
    version = str(duckdb.__version__)
    package = f"duckdb-extension-{name.replace('_', '-')}"
    try:
        wheel = files(import_module(f"duckdb_extension_{name}"))
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"the archive needs the package {package}: install `turntide[lake]`") from error
    file = Path(str(wheel / "extensions" / f"v{version}" / f"{name}.duckdb_extension"))
    if not file.is_file():
        raise ConfigurationError(f"duckdb {version} and {package} are incompatible: install the same version of both")
    stat = file.stat()
    return _Wheel(file, stat.st_ino, stat.st_size, stat.st_mtime_ns)
