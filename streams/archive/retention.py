"""Letting go by age: first the words, then what names somebody, then the rest. Dry run first, and a proof of it.

Age is counted in days of receipt, the folders `date=…`, so whole folders go. A proof stands in the table `retained` for
ever, as proofs of erasures do; these, and the notes of which offsets hold no row, are not subject to retention.

The words of a turn become empty text (its `content_bytes` still says how long it was), other words null or empty lists.
Rows whose key is words (facts) go with them.
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb
from msgspec import Struct

from models.events.fields import Privacy
from models.policy.archive import RetentionPolicy
from streams.archive.deduplication import look_again
from streams.archive.removal import PLACES, note_removed, remove_for_good
from streams.archive.schema import AGED, RAW, RETAINED, SKIPPED, TABLES, ddl, meanings
from streams.archive.writer import LakeWriter

_FOR_EVER = frozenset({"erasures"})
"""The proofs, which name nobody."""
_WITHIN_OTHERS = frozenset({"risk_points"})
"""Tables whose offsets are those of the profiles that brought their rows."""
_KEYED_BY_WORDS = frozenset({"facts"})
_NO_NAME = frozenset({"id"})
"""An event's id is made of its place in the log."""


class DueRemoval(Struct, frozen=True, kw_only=True):
    """What retention removes, or removed, of one table.

    Attributes:
        table: Of the schema `raw`.
        privacy: By which class it is due.
        what: `words`: columns are emptied; `rows`: they are removed.
        before: Rows received on earlier days (UTC).
        rows: How many.
        oldest: Day of the first; None for `skipped`.
    """

    table: str
    privacy: str
    what: str
    before: date
    rows: int
    oldest: date | None


def due(con: duckdb.DuckDBPyConnection, policy: RetentionPolicy, *, today: date) -> list[DueRemoval]:
    """What a run of `retain` would do on a day (UTC), from one moment of the archive; empty if nothing is due."""
    found, gone_before = [], dict.fromkeys((*TABLES, SKIPPED), date.min)
    for table, privacy, what, before in _rules(policy, today):
        rows: Any = con.execute(
            f"SELECT count(*), min({_day(table)}) FROM {RAW}.{table} "
            f"WHERE {_condition(table, what)} AND {_day(table)} >= ?",
            [before, gone_before[table]],
        ).fetchone()
        if what == "rows":
            gone_before[table] = max(before, gone_before[table])
        if rows[0]:
            found.append(
                DueRemoval(table=table, privacy=privacy.value, what=what, before=before, rows=rows[0], oldest=rows[1])
            )
    return found


def retain(writer: LakeWriter, policy: RetentionPolicy, *, now: datetime, policy_version: str) -> list[DueRemoval]:
    """Remove what is due, with its bytes, snapshots and statistics; write the proof; returns what was removed.

    Idempotent; killed at any point, the next call completes it. Nothing lands meanwhile.

    Raises:
        StoreUnavailable: The archive cannot be written, or a reader keeps the catalog: call again.
    """
    with writer.exclusively("letting go of old rows"):
        wanted = due(writer.con, policy, today=now.astimezone(UTC).date())
        for each in wanted:
            _remove(writer, each, now, policy_version)
        remove_for_good(writer, now=now)
    return wanted


def _rules(policy: RetentionPolicy, today: date) -> Iterator[tuple[str, Privacy, str, date]]:
    """Table, class, what to do, and before which day: rows before words, so that none is emptied to be removed."""
    if policy.operational_days is not None:
        for table in TABLES:
            if table not in _FOR_EVER:
                yield table, Privacy.OPERATIONAL, "rows", today - timedelta(days=policy.operational_days)
    if policy.identified_days is not None:
        for table in TABLES:
            named = (column for column, meaning in meanings()[table].items() if meaning.privacy is Privacy.IDENTIFIER)
            if table not in _FOR_EVER and any(column not in _NO_NAME for column in named):
                yield table, Privacy.IDENTIFIER, "rows", today - timedelta(days=policy.identified_days)
    if policy.content_days is not None:
        for table in (*TABLES, SKIPPED):
            if table not in _FOR_EVER and words_of(table):
                what = "rows" if table in _KEYED_BY_WORDS else "words"
                yield table, Privacy.CONTENT, what, today - timedelta(days=policy.content_days)


def words_of(table: str) -> dict[str, str]:
    """Columns of a table with words, and what they hold when the words are gone, as SQL.

    >>> words_of("compactions")
    {'summary': "''", 'key_topics': '[]'}
    """
    return {
        column: "''" if kind == "VARCHAR" else "[]" if kind.endswith("[]") else "NULL"
        for column, kind in ddl()[table].items()
        if meanings()[table][column].privacy is Privacy.CONTENT
    }


def _day(table: str) -> str:
    return "appended_at::DATE" if table == SKIPPED else "date"


def _condition(table: str, what: str) -> str:
    old = f"{_day(table)} < ?"
    if what == "rows":
        return old
    full = " OR ".join(
        f'"{column}" IS DISTINCT FROM {_gone(column, empty)}' for column, empty in words_of(table).items()
    )
    return f"{old} AND ({full})"


def _gone(column: str, empty: str) -> str:
    """What the column of a row holds afterwards: null stays null."""
    return f'(CASE WHEN "{column}" IS NOT NULL THEN {empty} END)'


def _remove(writer: LakeWriter, each: DueRemoval, now: datetime, policy_version: str) -> None:
    """One table, one transaction: the rows or words, the note of their offsets, the proof."""
    condition = _condition(each.table, each.what)
    if each.what == "rows":
        writer.con.execute(
            f"CREATE OR REPLACE TEMP TABLE {PLACES} AS SELECT '{TABLES[each.table].topic.name}' AS topic, "
            f"kafka_partition, kafka_offset FROM {RAW}.{each.table} WHERE {condition}",
            [each.before],
        )
    with writer.transaction() as con:
        if each.what == "words":
            emptied = ", ".join(f'"{column}" = {_gone(column, gone)}' for column, gone in words_of(each.table).items())
            con.execute(f"UPDATE {RAW}.{each.table} SET {emptied} WHERE {condition}", [each.before])
        else:
            con.execute(f"DELETE FROM {RAW}.{each.table} WHERE {condition}", [each.before])
            look_again(con, (each.table,))
            if each.table not in _WITHIN_OTHERS:
                note_removed(con, AGED, now)
        con.execute(
            f"INSERT INTO {RAW}.{RETAINED} BY NAME SELECT ? AS done_at, ? AS table_name, ? AS privacy, ? AS what, "
            "? AS before, ?::BIGINT AS rows, ? AS policy_version",
            [now, each.table, each.privacy, each.what, each.before, each.rows, policy_version],
        )
