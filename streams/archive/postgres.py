"""A catalog in PostgreSQL: its address, the writers' lock, and a catalog without dead rows.

Everything goes through DuckDB's own client, the one that DuckLake uses: no second one is needed.
"""

# ruff: noqa: S608 - schemas and tables are PostgreSQL's names, quoted

import time
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import duckdb
from filelock import Timeout
from pydantic import SecretStr

from streams.archive.extensions import connected, literal

SECRET = "turntide_catalog"  # noqa: S105 - its name, not its value
_SERVER = "server"
_LOCK = 0x7475726E74696465
"""`turntide` in ASCII. Advisory locks belong to a database, and a database has one archive."""
_POLL_S = 0.05
_PATIENCE_MS = 60_000
"""For readers to finish: as long as one looks at an old version, its rows stay."""
_CONNECT_TIMEOUT_S = 10
_TABLES = (
    "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind = 'r' AND n.nspname = current_schema() AND starts_with(c.relname::text, 'ducklake_') "
    "ORDER BY c.relname"
)
_OLDER = (
    "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND greatest(age(backend_xmin), age(backend_xid)) > age('{now}'::xid8::xid)"
)
"""Whoever began before, at whatever it looks: a dump, PostgreSQL's own analysis of a table."""
_NOT_MINE = (
    "SELECT count(*) FROM pg_catalog.pg_database "
    "WHERE datname = current_database() AND NOT pg_has_role(datdba, 'USAGE')"
)


class Postgres(NamedTuple):
    """Where the catalog is."""

    keywords: tuple[tuple[str, str], ...]
    """Of libpq, without the password."""
    password: SecretStr | None = None

    @property
    def connection(self) -> str:
        """The keywords as libpq reads them."""
        return " ".join(f"{name}={quoted(value)}" for name, value in self.keywords)

    @property
    def shown(self) -> str:
        """For messages."""
        words = dict(self.keywords)
        return f"postgresql://{words.get('host', '')}/{words.get('dbname', '')}"

    @property
    def secret(self) -> str:
        """Statement that makes the password known to a connection: it never stands in an address, which errors show."""
        password = "" if self.password is None else f", PASSWORD {literal(self.password.get_secret_value())}"
        return f"CREATE OR REPLACE SECRET {SECRET} (TYPE postgres{password})"


def postgres_of(address: str, password: SecretStr | None) -> Postgres:
    """Read an address; what stands behind `?` goes to libpq as it is.

    >>> postgres_of("postgresql://ann@db:5433/lake?sslmode=require", None).connection
    "host='db' port='5433' user='ann' dbname='lake' sslmode='require' connect_timeout='10'"
    """
    parts = urlsplit(address)
    words = {
        "host": unquote(parts.hostname or ""),
        "port": str(parts.port or ""),
        "user": unquote(parts.username or ""),
        "dbname": unquote(parts.path.removeprefix("/")),
        **dict(parse_qsl(parts.query)),
    }
    words.setdefault("connect_timeout", str(_CONNECT_TIMEOUT_S))
    return Postgres(tuple((name, value) for name, value in words.items() if value), password)


def quoted(value: str) -> str:
    r"""Value of a libpq keyword.

    >>> print(quoted("o'ne"))
    'o\'ne'
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


class AdvisoryLock:
    """The writers' lock, held by an open transaction on a connection of its own; may be entered again while held.

    PostgreSQL lets go of it when the process dies. The transaction reads only what is committed, statement by
    statement, so that while it is idle no row has to be kept for it; for the same reason a waiting writer asks again
    and again: a statement that waits would look at an old version, and what an erasure deletes would stay.
    """

    def __init__(self, place: Postgres, *, timeout_s: float) -> None:
        self._place = place
        self._timeout_s = timeout_s
        self._depth = 0
        self._con: duckdb.DuckDBPyConnection | None = None

    def __enter__(self) -> None:
        """Take it.

        Raises:
            Timeout: Another process holds it.
            duckdb.Error: PostgreSQL does not answer.
        """
        if self._depth == 0:
            con = _connected(self._place, "ISOLATION_LEVEL 'READ COMMITTED'")
            try:
                self._wait(con)
            except BaseException:
                con.close()
                raise
            self._con = con
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        """Let go; a connection that broke meanwhile had done so already."""
        self._depth -= 1
        if self._depth == 0 and self._con is not None:
            self._con.close()
            self._con = None

    def _wait(self, con: duckdb.DuckDBPyConnection) -> None:
        con.execute("BEGIN")
        con.execute(f"CALL postgres_execute('{_SERVER}', 'SET LOCAL idle_in_transaction_session_timeout = 0')")
        until_s = time.monotonic() + self._timeout_s
        while not _asked(con, f"SELECT pg_try_advisory_xact_lock({_LOCK})")[0][0]:
            if time.monotonic() > until_s:
                raise Timeout(self._place.shown)
            time.sleep(_POLL_S)


def vacuum(place: Postgres, *, patience_ms: int = _PATIENCE_MS) -> str:
    """Write the catalog's tables anew without dead rows, and what PostgreSQL knows of their values.

    Returns what was in the way, empty if nothing. PostgreSQL keeps a deleted row for every transaction of the database
    that began before the deletion, also in a table that is written anew: those are waited for.
    """
    try:
        con = _connected(place, options=f"-c lock_timeout={patience_ms}")
        try:
            if _asked(con, _NOT_MINE)[0][0]:
                return "permission denied: the role does not own the database, so it cannot vacuum pg_statistic"
            if not _are_over(con, patience_ms):
                return "a transaction that began before keeps deleted rows"
            for schema, table in _asked(con, _TABLES):
                _run(con, f'VACUUM (FULL, ANALYZE) "{schema}"."{table}"')
            _run(con, "VACUUM FULL pg_catalog.pg_statistic")
        finally:
            con.close()
    except duckdb.Error as error:
        return str(error)
    return ""


def _are_over(con: duckdb.DuckDBPyConnection, patience_ms: int) -> bool:
    """Whether all transactions that are under way end in time; those that begin meanwhile see no deleted row."""
    ((now,),) = _asked(con, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
    until_s = time.monotonic() + patience_ms / 1_000
    while _asked(con, _OLDER.format(now=now))[0][0]:
        if time.monotonic() > until_s:
            return False
        time.sleep(_POLL_S)
    return True


def _connected(place: Postgres, *terms: str, options: str = "") -> duckdb.DuckDBPyConnection:
    con = connected(["postgres_scanner"], {"threads": "1", "allow_persistent_secrets": "false"})
    try:
        con.execute(place.secret)
        words = place.connection + (f" options={quoted(options)}" if options else "")
        attached = ", ".join(("TYPE postgres", f"SECRET {SECRET}", *terms))
        con.execute(f"ATTACH {literal(words)} AS {_SERVER} ({attached})")
    except BaseException:
        con.close()
        raise
    return con


def _asked(con: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    return con.execute(f"SELECT * FROM postgres_query('{_SERVER}', {literal(sql)})").fetchall()


def _run(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    con.execute(f"CALL postgres_execute('{_SERVER}', {literal(sql)}, use_transaction => false)")
