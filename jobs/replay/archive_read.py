"""Reads what the archive holds, and what it lacks and why."""

# ruff: noqa: S608 - tables and columns are constants of this project, values travel as parameters

from __future__ import annotations

from typing import TYPE_CHECKING

from models.entities import REGISTRY, TOPIC_OF
from models.events.topics import TURNS
from models.wire.envelope import tag_of
from streams.oracle.followers import Archived
from streams.settings import Settings

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ENDLESS = 1 << 62


def read_archive(settings: Settings) -> Archived:
    """Identities of everything in the archive, from one snapshot.

    Raises:
        ConfigurationError: There is none.
        StoreUnavailable: It cannot be read.
    """
    from streams.archive.catalog import paths_of, reading
    from streams.archive.schema import ABSENT, AGED, ERASED, EXPIRED

    with reading(paths_of(settings)) as lake:
        lake.execute("BEGIN")
        turns = lake.execute("SELECT app_id, session_id, turn FROM turns").fetchall()
        doubled = lake.execute("SELECT count(*) - count(DISTINCT (kafka_partition, kafka_offset)) FROM raw.turns")
        ((doubled_rows,),) = doubled.fetchall()
        ids = _ids_in(lake)
        lacking = skipped(lake, TURNS.full_name(settings.topic_prefix))
        absent = lake.execute("SELECT DISTINCT topic FROM raw.skipped WHERE reason = ?", [ABSENT]).fetchall()
        lake.execute("ROLLBACK")
    refused = sum(count for reason, count in lacking.items() if reason not in {ABSENT, AGED, ERASED, EXPIRED})
    compacted = {str(topic).removeprefix(f"{settings.topic_prefix}.") for (topic,) in absent}
    return Archived(turns=turns, doubled_rows=doubled_rows, ids=ids, refused=refused, compacted=compacted)


def _ids_in(lake: DuckDBPyConnection) -> dict[str, set[str]]:
    """Output topic → its ids in the archive."""
    from streams.archive.schema import TABLE_OF

    ids: dict[str, set[str]] = {}
    folded = {each.event for kind in REGISTRY.kinds for each in kind.emits}
    for event, table in TABLE_OF.items():
        if event in folded:
            of_event = f" WHERE type = '{tag_of(event)}'" if len(table.carries) > 1 else ""
            found = lake.execute(f"SELECT id FROM raw.{table.name}{of_event}").fetchall()
            ids.setdefault(TOPIC_OF[event].name, set()).update(str(each) for (each,) in found)
    return ids


def landed(lake: DuckDBPyConnection, topic: str, partition: int) -> tuple[int, int]:
    """First and next offset of what the archive has taken of a partition."""
    found = lake.execute(
        "SELECT first_offset, next_offset FROM raw.offsets WHERE topic = ? AND kafka_partition = ?", [topic, partition]
    ).fetchone()
    return found or (0, 0)


def skipped(
    lake: DuckDBPyConnection, topic: str, partition: int | None = None, before: int = _ENDLESS
) -> dict[str, int]:
    """Reason → how many records of a topic, or of one partition below an offset, are not in the archive for it."""
    return dict(
        lake.execute(
            "SELECT reason, sum(least(last_offset + 1, $before) - first_offset)::BIGINT FROM raw.skipped "
            "WHERE topic = $topic AND kafka_partition = coalesce($partition, kafka_partition) "
            "AND first_offset < $before GROUP BY reason",
            {"topic": topic, "partition": partition, "before": before},
        ).fetchall()
    )
