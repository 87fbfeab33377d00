"""DuckDB's extensions, loaded from their wheels in place.

Nothing is downloaded, no home directory is needed, two processes that start together copy nothing over each other, and
DuckDB checks their signatures.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.resources import files

import duckdb

from models.errors import ConfigurationError


def literal(text: str) -> str:
    """SQL literal of a path or option; values of rows go as parameters or frames, never through here."""
    return "'" + text.replace("'", "''") + "'"


def load_extensions(con: duckdb.DuckDBPyConnection, names: Iterable[str]) -> None:
    """Load them by name.

    Raises:
        ConfigurationError: A wheel is missing, or of another version than DuckDB.
    """
    version = str(duckdb.__version__)
    for name in names:
        package = f"duckdb-extension-{name.replace('_', '-')}"
        try:
            wheel = files(import_module(f"duckdb_extension_{name}"))
        except ModuleNotFoundError as error:
            raise ConfigurationError(f"the archive needs the package {package}: install `turntide[lake]`") from error
        file = wheel / "extensions" / f"v{version}" / f"{name}.duckdb_extension"
        if not file.is_file():
            raise ConfigurationError(
                f"duckdb {version} and {package} do not fit together: install the same version of both"
            )
        con.execute(f"LOAD {literal(str(file))}")
