"""A catalog without free pages: what SQLite deletes stays in its file until another row needs the place.

To be run as a process of its own, `python -I vacuum.py CATALOG`: DuckDB brings its own SQLite, and two of them in one
process drop each other's locks (SQLite, How To Corrupt, 2.2.1).
"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

_PATIENCE_S = 60.0
"""For readers to finish: as long as one holds an old version, the log cannot be emptied."""


def vacuum(catalog: Path, *, patience_s: float = _PATIENCE_S) -> str:
    """Write the catalog anew and empty its write-ahead log; returns what was in the way, empty if nothing."""
    try:
        with closing(sqlite3.connect(catalog, timeout=patience_s, isolation_level=None)) as connection:
            connection.execute("VACUUM")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return f"database is locked: a reader has not finished within {patience_s:g} s" if busy else ""


if __name__ == "__main__":
    sys.exit(vacuum(Path(sys.argv[1])) or 0)
