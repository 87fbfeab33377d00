"""Checks of what is in the archive, and of the Iceberg tables that it is published as."""

from __future__ import annotations

import duckdb

from jobs.operate.doctor.verdict import Status, Verdict
from models.errors import ConfigurationError
from streams.settings import Settings

_UNSETTLED_ROWS = 1_000_000
"""Not settled, each query looks for repeats among so many rows itself: from here on that is felt."""


def check_archive(settings: Settings) -> Verdict:
    """Whether it opens, has every file, and is kept up."""
    from streams.archive.catalog import open_reader, paths_of, reading
    from streams.archive.damage import damaged, foreign_files, render_damage

    paths = paths_of(settings)
    try:
        open_reader(paths).close()
    except ConfigurationError as error:
        return Verdict(Status.WARN, str(error), "none is needed before the first turns; then start the archive role")
    with reading(paths) as con:
        hurt, foreign, unsettled = damaged(con), foreign_files(con), unsettled_rows(con)
    if hurt:
        return Verdict(Status.FAIL, render_damage(hurt), "`turntide archive verify` names every file")
    place = f"{paths.shown} with data in {paths.data}"
    if unsettled > _UNSETTLED_ROWS:
        return Verdict(
            Status.WARN,
            f"{place} opens; {unsettled:,} rows are not settled, so that every query looks for repeats among them",
            "run `turntide archive merge`; where its log says archive_not_settled, `turntide archive verify` finds the "
            "damaged file that keeps it from settling",
        )
    if foreign:
        return Verdict(
            Status.WARN, f"{place} opens; {len(foreign)} files there are not the archive's", "move them elsewhere"
        )
    return Verdict(Status.OK, f"{place} opens, every file is there")


def unsettled_rows(con: duckdb.DuckDBPyConnection) -> int:
    """Records that landed behind the marks below which repeats are written down (`streams.archive.deduplication`)."""
    from streams.archive.catalog import LAKE
    from streams.archive.schema import OFFSETS, RAW, TABLES
    from streams.archive.views.definitions import ONCE
    from streams.archive.views.published import marks_of

    marks = marks_of(con, LAKE)
    least: dict[tuple[str, int], int] = {}
    for rule in ONCE.values():
        topic = TABLES[rule.table].topic.name
        for partition, mark in marks.get(rule.table, {}).items():
            place = (topic, partition)
            least[place] = min(mark, least.get(place, mark))
    topics = {TABLES[rule.table].topic.name for rule in ONCE.values()}
    landed = con.execute(
        f"SELECT topic, kafka_partition, min(first_offset), max(next_offset) FROM {RAW}.{OFFSETS} GROUP BY ALL"  # noqa: S608 - constants
    ).fetchall()
    return sum(
        following - max(first, least.get((name, partition), 0))
        for full, partition, first, following in landed
        for name in topics
        if full.endswith(f".{name}")
    )


def check_iceberg(settings: Settings) -> Verdict:
    """Whether the catalog answers, where one is configured or its file is there."""
    from streams.archive.iceberg.place import place_of

    place = place_of(settings)
    if place.file is not None and not place.file.exists():
        return Verdict(Status.OK, "not published: `turntide archive publish` makes Iceberg tables")
    from streams.archive.iceberg.catalog import opened

    with opened(settings) as catalog:
        named = {name for (name, *_) in catalog.list_namespaces()}
    if settings.iceberg.namespace not in named:
        return Verdict(
            Status.WARN,
            f"{place.shown} answers, without the namespace {settings.iceberg.namespace}",
            "`turntide archive publish` makes it, or check TURNTIDE_ICEBERG__NAMESPACE",
        )
    return Verdict(Status.OK, f"{place.shown} answers")
