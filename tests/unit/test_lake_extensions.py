"""DuckDB's extensions: their signatures are checked, once in a process, and nothing unsigned is loaded."""

from __future__ import annotations

import shutil
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest

from models.errors import ConfigurationError
from streams.archive import extensions
from streams.archive.extensions import connected, literal

NAME = "sqlite_scanner"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel of its own with the real extension, of which this process knows nothing; gives the extension's file."""
    installed = find_spec(f"duckdb_extension_{NAME}")
    assert installed is not None
    real = Path(str(installed.origin)).parent / "extensions"
    monkeypatch.setattr(extensions, "files", lambda _package: tmp_path)
    monkeypatch.setattr(extensions, "_checked", set())
    shutil.copytree(real, tmp_path / "extensions")
    return _file_below(tmp_path / "extensions")


def _file_below(folder: Path) -> Path:
    (found,) = folder.rglob("*.duckdb_extension")
    return found


def _spoil(file: Path) -> None:
    """Change its last bytes, which are the signature."""
    with file.open("r+b") as open_file:
        open_file.seek(-8, 2)
        open_file.write(b"unsigned")


def test_an_extension_with_a_wrong_signature_is_refused(wheel: Path) -> None:
    """The first time, and also where a good one of this name was loaded before."""
    with closing(connected([NAME], {})):
        pass
    _spoil(wheel)

    with pytest.raises(duckdb.IOException, match="signature"):
        connected([NAME], {})


@pytest.mark.usefixtures("wheel")
def test_sql_loads_nothing_unsigned_on_any_connection(tmp_path: Path) -> None:
    """Neither on the one that checked nor on the next, which did not; and no SQL allows it."""
    stranger = tmp_path / "stranger.duckdb_extension"
    shutil.copy(_file_below(tmp_path / "extensions"), stranger)
    _spoil(stranger)

    for _ in range(2):
        with closing(connected([NAME], {})) as con:
            with pytest.raises(duckdb.IOException, match="signature"):
                con.execute(f"LOAD {literal(str(stranger))}")
            with pytest.raises(duckdb.InvalidInputException, match="while database is running"):
                con.execute("SET GLOBAL allow_unsigned_extensions = true")


def test_an_extension_of_another_version_is_told(wheel: Path) -> None:
    """Before DuckDB is asked."""
    wheel.unlink()

    with pytest.raises(ConfigurationError, match="do not fit together"):
        connected([NAME], {})
