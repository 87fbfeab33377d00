"""Deduplication: writing down which rows repeat others, so that readers need not look for them. See `views.once`.

Part of maintenance. It reads the keys of what landed since, and of older rows those with the same keys.
"""

# ruff: noqa: S608 - tables and columns are constants of this package

from collections.abc import Collection, Mapping

import duckdb
import structlog

from streams.archive.catalog import summary_of
from streams.archive.schema import RAW, REPEATS, TABLES
from streams.archive.views.definitions import ONCE
from streams.archive.views.once import Once
from streams.archive.views.published import marks_of, move_marks
from streams.archive.writer import LakeWriter

log = structlog.get_logger(__name__)

_FOUND = "found_repeats"


def deduplicate(writer: LakeWriter) -> int | None:
    """Settle everything that has landed; returns how many repeats were found, None where it fails.

    Call it with the writers' lock held. One transaction: a reader sees the rows either behind the marks or written
    down. Where it fails nothing is settled, and the views stay exact: a damaged file must not stop the rest of
    maintenance.
    """
    before = marks_of(writer.con)
    after = _stored_offsets(writer)
    if before == after:
        return 0
    moved = [rule for rule in ONCE.values() if any(before.get(table) != after.get(table) for table in rule.tables)]
    try:
        with writer.transaction() as con:
            found = 0
            for rule in moved:
                repeats = rule.repeats(rule.behind(before), before)
                con.execute(f"CREATE OR REPLACE TEMP TABLE {_FOUND} AS {repeats}")
                con.execute(
                    f"DELETE FROM temp.{_FOUND} WHERE (kafka_partition, kafka_offset, part) IN (SELECT "
                    f"(kafka_partition, kafka_offset, part) FROM {RAW}.{REPEATS} WHERE rule = '{rule.name}')"
                )
                found += _insert(con, rule)
            move_marks(con, before, after)
    except duckdb.Error as error:
        log.warning("archive_not_settled", error=summary_of(error))
        return None
    return found


def look_again(con: duckdb.DuckDBPyConnection, tables: Collection[str]) -> None:
    """Correct what is written down of tables after rows were deleted from them, in the same transaction.

    Where the row that stood for a key went, the next of its repeats stands.
    """
    marks = marks_of(con)
    for rule in (rule for rule in ONCE.values() if not set(tables).isdisjoint(rule.tables)):
        known = f"SELECT kafka_partition, kafka_offset, part FROM {RAW}.{REPEATS} WHERE rule = '{rule.name}'"
        if con.execute(f"SELECT 1 FROM ({known}) LIMIT 1").fetchone():
            part = f" AND t.{rule.part} = k.part" if rule.part else ""
            left = (
                f"(SELECT * FROM {rule.rows(marks)} AS t SEMI JOIN ({known}) AS k "
                f"ON t.kafka_partition = k.kafka_partition AND t.kafka_offset = k.kafka_offset{part})"
            )
            con.execute(f"CREATE OR REPLACE TEMP TABLE {_FOUND} AS {rule.repeats(rule.keys_of(left), marks)}")
            con.execute(f"DELETE FROM {RAW}.{REPEATS} WHERE rule = '{rule.name}'")
            _insert(con, rule)


def _stored_offsets(writer: LakeWriter) -> dict[str, Mapping[int, int]]:
    """Marks that settle all that is there; a partition of which nothing landed yet has 0."""
    offsets: dict[str, dict[int, int]] = {}
    for place, move in writer.offsets().items():
        for name, table in TABLES.items():
            if place.topic.endswith(f".{table.topic.name}"):
                offsets.setdefault(name, {})[place.partition] = move.next
    return {name: {n: of.get(n, 0) for n in range(max(of) + 1)} for name, of in offsets.items()}


def _insert(con: duckdb.DuckDBPyConnection, rule: Once) -> int:
    """Write down what was found; an insert of nothing would still be a file."""
    ((found,),) = con.execute(f"SELECT count(*) FROM temp.{_FOUND}").fetchall()
    if found:
        con.execute(
            f"INSERT INTO {RAW}.{REPEATS} SELECT '{rule.name}', kafka_partition, kafka_offset, part FROM temp.{_FOUND}"
        )
    return int(found)
