"""Damage check of the archive: files missing, cut short, overwritten; and files that are not its own.

The catalog knows each file's size and, of Parquet, the size of its footer. Comparing these with what is there reads
eight bytes of a file in a folder, and on S3 nothing but the listing (an object there is never half written). So it is
quick enough to come before every long read: measured, size and end of 5,000 files in 0.05 s. A file that was changed in
the middle is not found; DuckDB finds it when it reads.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
from msgspec import Struct

from streams.archive.place import LAKE, S3
from streams.archive.schema import QUERIES, RAW

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
"""Of a Parquet file: the size of its footer, little-endian, and the magic."""
_NAMED_FILES = 3
_OURS = re.compile(r"/ducklake-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-delete)?\.(parquet|puffin)$")
"""How DuckLake names its files."""
_DAY = re.compile(r"/date=(\d{4}-\d{2}-\d{2})/")
ADVICE = (
    "Put the files back from a backup under the same names (they are never changed, so any backup that has them will "
    "do), or leave these days out (deploy/archive.md)"
)


_PATHS, _SCHEDULED = QUERIES["lake_files"], QUERIES["scheduled_files"]


class DamagedFile(Struct, frozen=True, kw_only=True):
    """A file that cannot be read as it was written."""

    table: str
    date: date | None
    """Day on which the broker received its rows; None in a table without days."""
    path: str
    what: str
    """What is wrong with it."""


class _LakeFile(NamedTuple):
    table: str
    path: str
    size_bytes: int
    footer_bytes: int


def damaged(con: duckdb.DuckDBPyConnection) -> list[DamagedFile]:
    """Every file that the present state needs and that is not as it was written, by table and day.

    What a merge or an erasure replaces meanwhile is not among them.
    """
    found = _look(con)
    if found:
        still = {file.path for file in _files(con)}
        found = [file for file in found if file.path in still]
    return sorted(found, key=lambda file: (file.table, file.date or date.min, file.path))


def foreign_files(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Files in the archive's place that are not its own: nobody reads them, and nobody removes them."""
    data = _data_path(con)
    known = {row[1] for row in con.execute(_PATHS, [data]).fetchall()}
    known |= {row[0] for row in con.execute(_SCHEDULED, [data]).fetchall()}
    on_disk = (str(path) for path in Path(data).rglob("*") if path.is_file())
    present: Iterable[str] = _sizes(con, data) if data.startswith(S3) else on_disk
    return sorted(path for path in present if path not in known and not is_ours(path))


def is_ours(path: str) -> bool:
    """Whether a file is named as those that we write: one that the catalog does not know is what a killed writer left.

    >>> is_ours("data/raw/turns/ducklake-01a2056f-1e78-7650-971a-19a9903ea37f.parquet"), is_ours("data/mine.parquet")
    (True, False)
    """
    return _OURS.search(path) is not None


def render_damage(files: Collection[DamagedFile]) -> str:
    """The damage in a sentence or a few: tables, days, the first files, what to do; empty if there is none."""
    if not files:
        return ""
    places = Counter(f"{RAW}.{file.table}" + (f" of {file.date}" if file.date else "") for file in files)
    shown = [f"{file.path} {file.what}" for file in list(files)[:_NAMED_FILES]]
    more = len(files) - len(shown)
    return (
        f"{len(files)} files are damaged, in {', '.join(places)}: {'; '.join(shown)}"
        f"{f'; and {more} more (`turntide archive verify` names them)' if more else ''}. {ADVICE}"
    )


def explained(con: duckdb.DuckDBPyConnection) -> str:
    """The damage that may be why a statement failed; empty if none is found. Rolls back what is open."""
    with suppress(duckdb.Error, OSError):
        with suppress(duckdb.Error):
            con.execute("ROLLBACK")
        return render_damage(damaged(con))
    return ""


def _look(con: duckdb.DuckDBPyConnection) -> list[DamagedFile]:
    data = _data_path(con)
    sizes = _sizes(con, data) if data.startswith(S3) else None
    found = []
    for file in _files(con):
        what = _wrong(file) if sizes is None else _wrong_size(file, sizes.get(file.path))
        if what:
            day = _DAY.search(file.path)
            on = date.fromisoformat(day.group(1)) if day else None
            found.append(DamagedFile(table=file.table, date=on, path=file.path, what=what))
    return found


def _data_path(con: duckdb.DuckDBPyConnection) -> str:
    """Where this connection reads; the catalog may remember another place."""
    row: Any = con.execute(
        "SELECT options['data_path'] FROM duckdb_databases() WHERE database_name = ?", [LAKE]
    ).fetchone()
    return str(row[0])


def _files(con: duckdb.DuckDBPyConnection) -> list[_LakeFile]:
    rows = con.execute(f"FROM ({_PATHS}) WHERE present", [_data_path(con)]).fetchall()
    return [_LakeFile(*row[:4]) for row in rows]


def _sizes(con: duckdb.DuckDBPyConnection, data: str) -> dict[str, int]:
    """Bytes of every object below a prefix, from the listing alone."""
    return dict(con.execute("SELECT filename, size FROM read_blob(?)", [f"{data}**"]).fetchall())


def _wrong(file: _LakeFile) -> str:
    try:
        with Path(file.path).open("rb") as opened:
            size_bytes = opened.seek(0, 2)
            opened.seek(max(0, size_bytes - _TAIL_BYTES))
            tail = opened.read()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be opened ({error.strerror})"
    if wrong := _wrong_size(file, size_bytes):
        return wrong
    footer = int.from_bytes(tail[:4], "little")
    return "" if tail[4:] == _MAGIC and footer == file.footer_bytes else "was overwritten with something else"


def _wrong_size(file: _LakeFile, size_bytes: int | None) -> str:
    if size_bytes is None:
        return "is missing"
    if size_bytes == 0:
        return "is empty"
    return "" if size_bytes == file.size_bytes else f"has {size_bytes} bytes instead of {file.size_bytes}"
