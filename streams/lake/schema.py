"""The archive's tables, derived from the events: a field added to an event becomes a column, here and nowhere else.

One table per kind of event in the schema `raw`; what analysts read are the views over them (`views`).

* Times are `TIMESTAMPTZ`, lists and structs stay lists and structs, mappings are JSON text.
* Every table ends with where the record stood and how large it was, and with `date` and `app`, which are the folders
  `date=…/app=…`: the UTC day on which the broker received the record (bounded by arrival; event time is not, and
  one bad clock would make a folder per record) and the app's id made fit for a path (`folders`). Filter by
  `timestamp` and `app_id`: each file's statistics serve these as well.
* Text holds no U+0000, see `landed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple, get_args

import msgspec
import polars as pl
from msgspec import Struct

from models import events
from models.envelope import tag_of
from models.mentions import mentions
from models.topics import COMMANDS, ERASURES, PROFILES, TOPIC_OF, TURNS, Topic
from streams.lake.columns import (
    TEXT,
    TIME,
    UTC_TIME,
    Column,
    ColumnType,
    Landed,
    field_column,
    fields_of,
    record_column,
    type_of,
)

RAW = "raw"
OFFSETS = "offsets"
SKIPPED = "skipped"
ABSENT, EXPIRED, ERASED = "absent", "expired", "erased"
"""Why offsets hold no row, where it is not a bad record: see `Skipped`."""
LETTER_ERASED = "its dead letter was erased"
"""`Skipped.detail` of a bad record whose dead letter is not to be waited for."""

MAX_APP_FOLDERS = 32
"""Folders per landing. Each is one more file (2 ms); producers choose app ids, so their number needs a bound."""
OTHER_APPS = "_others"
_MAX_FOLDER_LENGTH = 64


class Table(NamedTuple):
    """One table of the schema `raw`."""

    name: str
    carries: tuple[type[Struct], ...]
    columns: tuple[Column, ...]
    partitioned_by: tuple[str, ...]
    sorted_by: tuple[str, ...]
    topic: Topic
    """Whose records it keeps."""

    def frame(self, rows: Sequence[Landed]) -> pl.DataFrame:
        """The rows as columns, in the order of the table."""
        return pl.DataFrame([column.series(rows) for column in self.columns])


def folders(app_ids: Sequence[str]) -> list[str]:
    """Folder of each app: its id with `_` for whatever a path may not like, cut; rare apps share one.

    Two apps may share a folder, and an app may be found in two: it is layout, never a filter.
    """
    common = {app for app, _ in Counter(app_ids).most_common(MAX_APP_FOLDERS)}
    names = {app: "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "_" for c in app) for app in common}
    return [names[app][:_MAX_FOLDER_LENGTH] if app in common else OTHER_APPS for app in app_ids]


def _day(row: Landed) -> date:
    return row.appended_at.date()


_APP = Column("app", TEXT, lambda rows: folders([getattr(row.event, "app_id", "") for row in rows]))
_TYPE = record_column("type", "VARCHAR", pl.String, lambda row: tag_of(type(row.event)))
_PLACE = (
    record_column("kafka_partition", "INTEGER", pl.Int32, lambda row: row.partition),
    record_column("kafka_offset", "BIGINT", pl.Int64, lambda row: row.offset),
    Column("appended_at", UTC_TIME, lambda rows: [row.appended_at for row in rows]),
    record_column("record_bytes", "BIGINT", pl.Int64, lambda row: row.size_bytes),
    record_column("date", "DATE", pl.Date, _day),
)
_EXTRA = record_column("extra", "VARCHAR", pl.String, lambda row: row.extra)


def _content_bytes(row: Landed) -> int:
    return len(row.content_exact) if row.content_exact is not None else len(row.event.content.encode())  # type: ignore[attr-defined]


_OF_TURNS = (
    record_column("content_exact", "BLOB", pl.Binary, lambda row: row.content_exact),
    record_column("content_bytes", "BIGINT", pl.Int64, _content_bytes),
    _EXTRA,
)


def _table(
    name: str,
    *carries: type[Struct],
    without: tuple[str, ...] = (),
    rename: dict[str, str] | None = None,
    also: tuple[Column, ...] = (),
) -> Table:
    fields = {field.name: field for event in carries for field in fields_of(event)}
    columns = [
        field_column((rename or {}).get(n, n), field) for n, field in fields.items() if n not in {"type", *without}
    ]
    if len(carries) > 1:
        columns.insert(0, _TYPE)
    columns += also
    in_folders = "app_id" in fields
    return Table(
        name=name,
        carries=carries,
        columns=(*columns, *_PLACE, *((_APP,) if in_folders else ())),
        partitioned_by=("date", "app") if in_folders else ("date",),
        sorted_by=("session_id", "timestamp") if "session_id" in fields else ("kafka_partition", "kafka_offset"),
        topic=TOPIC_OF.get(carries[0], PROFILES),
    )


class RiskPointOfSession(events.RiskPoint, frozen=True, kw_only=True, gc=False):
    """One element of `ProfileUpdated.risk_points` with its session and the profile that brought it."""

    id: str
    session_id: str
    user_id: str
    app_id: str


def risk_points(row: Landed) -> list[Landed]:
    """The risk points of a profile as rows of their own; none of any other event."""
    profile = row.event
    if not isinstance(profile, events.ProfileUpdated):
        return []
    of = {name: getattr(profile, name) for name in ("id", "session_id", "user_id", "app_id")}
    return [
        Landed(RiskPointOfSession(**msgspec.structs.asdict(point), **of), row.partition, row.offset, row.appended_at, 0)
        for point in profile.risk_points
    ]


FORGETTING: tuple[type[Struct], ...] = (
    events.SessionErased,
    *get_args(events.UserErasure),
    *get_args(events.SpaceErasure),
    *get_args(events.ProjectErasure),
    *(event for event in ERASURES.carries if event is not events.ErasureProved),
)
"""Records that carry out an erasure name whom it is about: they are not kept, their proof is."""


def _kept(topic: Topic, *besides: type[Struct]) -> tuple[type[Struct], ...]:
    return tuple(event for event in topic.carries if event not in (*FORGETTING, *besides))


_ELSEWHERE = (
    *("content", "embedding", "turns", "notables", "new_content", "reason", "tags"),
    *("summary", "key_topics"),
)
"""Of commands: turns are in `turns`, episodes and memories in tables of their own, what was embedded can be again. An
answer that nobody waits for any longer names no session: no text of it stands where an erasure would not find it."""
_OF_PROJECTS = get_args(events.ProjectEvent)
_PROJECTS_ELSEWHERE = (
    *("content", "category", "tags", "subject", "summary"),
    *("memories", "episodes", "chunks", "conversations", "pending", "messages"),
)
"""Likewise of commands of projects, whose items are in `project_items`."""
_NAMES = ColumnType("VARCHAR[]", pl.List(pl.String))
_MENTIONED = (
    Column("mentioned_sessions", _NAMES, lambda rows: [mentions(row.event).sessions for row in rows]),
    Column("mentioned_users", _NAMES, lambda rows: [mentions(row.event).users for row in rows]),
    Column("mentioned_items", _NAMES, lambda rows: [mentions(row.event).items for row in rows]),
)
"""See `models.mentions`; an erasure finds its rows by these."""

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _table("turns", events.Turn, also=_OF_TURNS),
        _table("controls", *_kept(TURNS, events.Turn), also=(_EXTRA,)),
        _table("profiles", events.ProfileUpdated, without=("risk_points",)),
        _table("risk_points", RiskPointOfSession),
        _table("windows", events.WindowClosed),
        _table("alerts", events.AlertChanged),
        _table("compactions", events.SegmentCompacted),
        _table("topics", events.TopicChanged),
        _table("episodes", events.EpisodeClosed),
        _table("commands", *_kept(COMMANDS, *_OF_PROJECTS), without=_ELSEWHERE),
        _table("facts", events.FactChanged),
        _table("user_memories", events.UserMemoryChanged),
        _table("user_episodes", events.EpisodeCompressed),
        _table("memories", events.AppMemoryChanged),
        _table("memory_spaces", events.AppMemoriesChanged),
        _table("memory_compactions", events.AppMemoriesCompacted),
        _table("memory_skips", events.AppMemorySkipped),
        _table("memory_audits", events.AppMemoryAudited),
        _table("project_commands", *_OF_PROJECTS, without=_PROJECTS_ELSEWHERE, also=_MENTIONED),
        _table("project_items", events.ProjectItemChanged, also=_MENTIONED),
        _table("projects", events.ProjectChanged, also=_MENTIONED),
        _table("project_consolidations", events.ProjectConsolidated, also=_MENTIONED),
        _table("project_audits", events.ProjectAudited, also=_MENTIONED),
        _table("erasures", *_kept(ERASURES)),
        _table("dead_letters", events.DeadLetter, rename={"appended_at": "source_appended_at"}),
    )
}

TABLE_OF: dict[type[Struct], Table] = {event: table for table in TABLES.values() for event in table.carries}
"""Where an event is kept."""


class Skipped(Struct, frozen=True, kw_only=True):
    """Offsets that hold no row, and why: with them, every offset below `next` is accounted for.

    Attributes:
        topic: Full name.
        reason: `absent` (not in the log: compacted away, or a marker of a transaction), `expired` (removed by
            retention before it was archived: lost), `erased` (from the archive, on request, or the request itself),
            `tombstone`, or why the record is invalid.
        key: The record's key, kept where no dead letter has it (Turntide's own topics).
        value: Likewise.
    """

    topic: str
    kafka_partition: int
    first_offset: int
    last_offset: int
    reason: str
    detail: str = ""
    key: bytes | None = None
    value: bytes | None = None
    appended_at: datetime | None = None


def skipped_frame(rows: Sequence[Skipped], now: datetime) -> pl.DataFrame:
    """Skipped offsets as columns, `landed_at` last."""
    columns = [
        pl.Series(field.name, [getattr(row, field.name) for row in rows], dtype=type_of(field.type).polars)
        for field in fields_of(Skipped)
    ]
    return pl.DataFrame([*columns, pl.Series("landed_at", [now] * len(rows), dtype=TIME)])


def ddl() -> dict[str, dict[str, str]]:
    """SQL type of every column of every table of the schema `raw`."""
    tables = {table.name: {column.name: column.type.sql for column in table.columns} for table in TABLES.values()}
    skipped = {field.name: type_of(field.type).sql for field in fields_of(Skipped)}
    tables[SKIPPED] = {**skipped, "landed_at": "TIMESTAMPTZ"}
    tables[OFFSETS] = {
        "topic": "VARCHAR",
        "kafka_partition": "BIGINT",
        "first_offset": "BIGINT",
        "next_offset": "BIGINT",
        "landed_at": "TIMESTAMPTZ",
    }
    return tables
