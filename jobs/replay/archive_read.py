"""Reads what the archive holds, and what it lacks and why."""

# ruff: noqa: S608 - tables and columns are constants of this project, values travel as parameters

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobs.shared.log_read import Ends
from models.entities import REGISTRY, TOPIC_OF
from models.events import DeadLetter
from models.events.topics import TURNS, Topic
from models.session.turn_numbers import INDEX_STAGE
from models.wire.envelope import tag_of
from streams.oracle.followers import Archived
from streams.settings import Settings

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ENDLESS = 1 << 62


def read_archive(settings: Settings, before: Mapping[Topic, Ends]) -> Archived:
    """Identities of what is in the archive, from one snapshot.

    Args:
        settings: Which archive.
        before: Input topic → partition → offset: only what came of input below it.

    Raises:
        ConfigurationError: There is none.
        StoreUnavailable: It cannot be read.
    """
    from streams.archive.catalog import paths_of, reading
    from streams.archive.schema import ABSENT, AGED, ERASED, EXPIRED, UNNUMBERED

    with reading(paths_of(settings)) as lake:
        lake.execute("BEGIN")
        lake.execute("CREATE OR REPLACE TEMP TABLE compared (of_topic VARCHAR, of_partition INTEGER, before BIGINT)")
        for topic, ends in before.items():
            for number, end in ends.items():
                lake.execute(
                    "INSERT INTO compared VALUES (?, ?, ?)", [topic.full_name(settings.topic_prefix), number, end]
                )
        name = TURNS.full_name(settings.topic_prefix)
        of_input = _came_of(f"'{name}'", "kafka_partition", "kafka_offset")
        turns = lake.execute(f"SELECT app_id, session_id, turn FROM turns WHERE {of_input}").fetchall()
        doubled = lake.execute("SELECT count(*) - count(DISTINCT (kafka_partition, kafka_offset)) FROM raw.turns")
        ((doubled_rows,),) = doubled.fetchall()
        ids = _ids_in(lake)
        lacking: Counter[str] = Counter()
        for number, end in before[TURNS].items():
            lacking.update(skipped(lake, name, number, end))
        absent = lake.execute("SELECT DISTINCT topic FROM raw.skipped WHERE reason = ?", [ABSENT]).fetchall()
        lake.execute("ROLLBACK")
    good = {ABSENT, AGED, ERASED, EXPIRED, UNNUMBERED}
    refused = sum(count for reason, count in lacking.items() if reason not in good)
    compacted = {str(topic).removeprefix(f"{settings.topic_prefix}.") for (topic,) in absent}
    return Archived(turns=turns, doubled_rows=doubled_rows, ids=ids, refused=refused, compacted=compacted)


def _came_of(topic: str, partition: str, offset: str) -> str:
    """Condition on a row: its input, by these columns, is compared; input of other topics always is."""
    return f"NOT EXISTS (FROM compared WHERE of_topic = {topic} AND of_partition = {partition} AND {offset} >= before)"


def _ids_in(lake: DuckDBPyConnection) -> dict[str, set[str]]:
    """Output topic → its ids in the archive."""
    from streams.archive.schema import TABLE_OF

    ids: dict[str, set[str]] = {}
    # What a fold sends to the turns' topic is an input: nobody compares it.
    folded = {each.event for kind in REGISTRY.kinds for each in kind.emits if each.topic != TURNS}
    for event, table in TABLE_OF.items():
        if event in folded:
            place = ('"topic"', '"partition"', '"offset"')
            compared = _came_of(*(place if event is DeadLetter else [f"source.{name}" for name in place]))
            of_event = f" AND type = '{tag_of(event)}'" if len(table.carries) > 1 else ""
            of_event += f" AND stage <> '{INDEX_STAGE}'" if event is DeadLetter else ""
            found = lake.execute(f"SELECT id FROM raw.{table.name} WHERE {compared}{of_event}").fetchall()
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
