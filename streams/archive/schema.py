"""The archive's tables, derived from the events: a field added to an event becomes a column, here and nowhere else.

One table per kind of event in the schema `raw`; what analysts read are the views over them (`views`).

* Times are `TIMESTAMPTZ`, lists and structs stay lists and structs, mappings are JSON text.
* Every table ends with where the record stood and how large it was, and with `date` and `app`, which are the folders
  `date=…/app=…`: the UTC day on which the broker received the record (bounded by arrival; event time is not, and
  one bad clock would make a folder per record) and the app's id made fit for a path (`folders`). Filter by
  `timestamp` and `app_id`: each file's statistics serve these as well.
* Text holds no U+0000, see `landed`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import cache, partial
from importlib.resources import files
from itertools import chain, repeat
from string import Template
from typing import Annotated, NamedTuple, get_args

import msgspec
import polars as pl
from msgspec import Struct

from models import events
from models.entities import ERASURES as FORGET
from models.entities import OTHERS, PROJECT, REGISTRY, SESSION, TOPIC_OF, carried_by
from models.events.fields import BEHAVIOUR, CONTENT, IDENTIFIER, OPERATIONAL, TYPE, Meaning, Privacy, about, meaning_of
from models.events.registry import Emits, EntityKind
from models.events.topics import COMMANDS, ERASURES, PROFILES, TURNS, Topic
from models.project.mentions import Mentions, mentions
from models.wire.envelope import tag_of
from streams.archive.columns import DAY, TEXT, TIME, UTC_TIME, Column, field_column, fields_of, list_of, plain, type_of
from streams.archive.place import METADATA
from streams.archive.rows import OF_PROFILE, RiskPointOfSession, Rows
from streams.encryption.tokens import MARK, plain_size_bytes

RAW = "raw"
OFFSETS = "offsets"
SKIPPED = "skipped"
REPEATS = "repeats"
"""Rows that a view leaves out, see `views.once`."""
RETAINED = "retained"
ABSENT, EXPIRED, ERASED, AGED, UNNUMBERED = "absent", "expired", "erased", "aged", "unnumbered"
"""Why offsets hold no row, where it is not a bad record: see `Skipped`."""
LETTER_ERASED = "its dead letter was erased"
"""`Skipped.detail` of a bad record whose dead letter is not to be waited for."""

_QUERIES_TOML = files("streams.archive").joinpath("queries.toml").read_bytes()
QUERIES: dict[str, str] = {
    name: Template(sql).substitute(raw=RAW, metadata=METADATA)
    for name, sql in msgspec.toml.decode(_QUERIES_TOML, type=dict[str, str]).items()
}
"""Long statements by their names."""

MAX_APP_FOLDERS = 32
"""Folders per landing. Each is one more file (2 ms); producers choose app ids, so their number needs a bound."""
ROWS_OF_A_FOLDER = 256
"""Of an app in one landing: a file of its own costs as much CPU as some thousand rows. Fewer are with the others."""
OTHER_APPS = "_others"
_MAX_FOLDER_LENGTH = 64


class RawTable(NamedTuple):
    """One table of the schema `raw`."""

    name: str
    carries: tuple[type[Struct], ...]
    columns: tuple[Column, ...]
    partitioned_by: tuple[str, ...]
    sorted_by: tuple[str, ...]
    topic: Topic
    """Whose records it keeps."""

    def frame(self, rows: Rows) -> pl.DataFrame:
        """The rows as columns, in the order of the table."""
        return pl.DataFrame([column.series(rows) for column in self.columns])


def folders(app_ids: Sequence[str]) -> list[str]:
    """Folder of each app: its id with `_` for whatever a path may not like, cut; rare apps share one.

    Two apps may share a folder, and an app may be found in two: it is layout, never a filter.
    """
    counted = Counter(app_ids).most_common()
    common = {app for app, rows in counted[:MAX_APP_FOLDERS] if rows >= ROWS_OF_A_FOLDER}
    if len(counted) == len(common) + 1:  # alone it is a file either way
        common = set(app_ids)
    names = {
        app: "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "_" for c in app)[:_MAX_FOLDER_LENGTH]
        for app in common
    }
    return list(map(names.get, app_ids, repeat(OTHER_APPS)))


def _appended_at(rows: Rows) -> pl.Series:
    return pl.Series(rows.appended_us, dtype=pl.Int64).cast(TIME)


def _content_bytes(rows: Rows) -> list[int]:
    contents = [event.content for event in rows.events]  # type: ignore[attr-defined]
    sizes = [plain_size_bytes(content) for content in contents]
    for row, exact in rows.exacts.items():
        if not exact.startswith(MARK.encode()):
            sizes[row] = len(exact)
    return sizes


def _day_told(rows: Rows, end: int) -> list[date | None]:
    return [told and date.fromordinal(told[end]) for told in rows.days_told()]


def _of_owners(name: str, rows: Rows) -> list[str]:
    """A text field of those whose part each row is."""
    return [getattr(owner, name) for owner in rows.owners]


def _types(rows: Rows) -> list[str]:
    tags = {kind: tag_of(kind) for kind in set(map(type, rows.events))}
    return [tags[type(event)] for event in rows.events]


_COUNT, _BYTES = plain("BIGINT", pl.Int64), plain("BLOB", pl.Binary)
_APP = Column(
    "app",
    TEXT,
    lambda rows: folders([getattr(owner, "app_id", "") for owner in rows.owners]),
    Meaning("The folder of the app: its id made fit for a path, rare ones share one. Filter by `app_id`.", OPERATIONAL),
)
_TYPE = Column("type", TEXT, _types, TYPE)
_PLACE = (
    Column(
        "kafka_partition",
        plain("INTEGER", pl.Int32),
        lambda rows: rows.partitions,
        Meaning("Partition of the record, on its topic.", OPERATIONAL, "number"),
    ),
    Column(
        "kafka_offset",
        _COUNT,
        lambda rows: rows.offsets,
        Meaning("Offset of the record in its partition.", OPERATIONAL, "offset"),
    ),
    Column(
        "appended_at",
        UTC_TIME,
        _appended_at,
        Meaning("When the broker received the record; of Turntide's own topics when it was sent.", OPERATIONAL),
    ),
    Column(
        "record_bytes",
        _COUNT,
        lambda rows: rows.sizes,
        Meaning("Size of the record's JSON; 0 for a part of a record.", OPERATIONAL, "bytes"),
    ),
    Column(
        "date",
        DAY,
        lambda rows: _appended_at(rows).dt.date(),
        Meaning(
            "Day of receipt by the broker (UTC), which is the folder: filter by it to read fewer files.", OPERATIONAL
        ),
    ),
)
_EXTRA = Column(
    "extra",
    TEXT,
    lambda rows: [rows.extras.get(row) for row in range(len(rows))],
    Meaning("JSON of the fields that the schema does not name.", CONTENT),
)
_TOLD = '{} day that the text tells of ("yesterday", "in May"); null: none, put right since, or of an earlier release.'
_OF_TURNS = (
    Column(
        "content_exact",
        _BYTES,
        lambda rows: [rows.exacts.get(row) for row in range(len(rows))],
        Meaning("UTF-8 of the text where `content` had to differ from it (U+0000); else null.", CONTENT),
    ),
    *(
        Column(name, DAY, partial(_day_told, end=end), Meaning(_TOLD.format(which), CONTENT))
        for end, (name, which) in enumerate((("told_from", "First"), ("told_to", "Last")))
    ),
    Column("content_bytes", _COUNT, _content_bytes, Meaning("UTF-8 bytes of the text.", BEHAVIOUR, "bytes")),
    _EXTRA,
)


def _meaning(field: str, carries: Sequence[type[Struct]]) -> Meaning:
    """Of a column: what its field means in each kind of event, and the most private of its classes."""
    said = [meaning_of(event)[field] for event in carries if field in event.__struct_fields__]
    by_privacy = min(said, key=lambda meaning: [*Privacy].index(meaning.privacy))
    return said[0]._replace(
        description=" / ".join(dict.fromkeys(meaning.description for meaning in said)), privacy=by_privacy.privacy
    )


def _table(
    name: str,
    *carries: type[Struct],
    without: tuple[str, ...] = (),
    rename: dict[str, str] | None = None,
    also: tuple[Column, ...] = (),
    of_owner: frozenset[str] = frozenset(),
) -> RawTable:
    fields = {field.name: field for event in carries for field in fields_of(event)}
    columns = [
        Column(n, TEXT, partial(_of_owners, n), _meaning(n, carries))
        if n in of_owner
        else field_column((rename or {}).get(n, n), field, _meaning(n, carries))
        for n, field in fields.items()
        if n not in {"type", *without}
    ]
    if len(carries) > 1:
        columns.insert(0, _TYPE)
    columns += also
    in_folders = "app_id" in fields
    return RawTable(
        name=name,
        carries=carries,
        columns=(*columns, *_PLACE, *((_APP,) if in_folders else ())),
        partitioned_by=("date", "app") if in_folders else ("date",),
        sorted_by=("session_id", "timestamp") if "session_id" in fields else ("kafka_partition", "kafka_offset"),
        topic=TOPIC_OF.get(carries[0], PROFILES),
    )


FORGETTING: tuple[type[Struct], ...] = (
    *FORGET,
    *(event for event in carried_by(ERASURES) if event is not events.ErasureProved),
)
"""Records that carry out an erasure name whom it is about: they are not kept, their proof is."""


def _kept(topic: Topic, *besides: type[Struct]) -> tuple[type[Struct], ...]:
    return tuple(event for event in carried_by(topic) if event not in (*FORGETTING, *besides))


_ELSEWHERE = (
    *("content", "embedding", "turns", "notables", "new_content", "reason", "tags", "value"),
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
_NAMES = list_of(TEXT)


def _mentioned(named: str) -> Column:
    meaning = Meaning(f"{named.capitalize()} that the record names.", IDENTIFIER)
    return Column(
        f"mentioned_{named}", _NAMES, lambda rows: [getattr(mentions(event), named) for event in rows.events], meaning
    )


_MENTIONED = tuple(map(_mentioned, Mentions._fields))
"""See `models.project.mentions`; an erasure finds its rows by these."""


def _emitted(*emitted: Emits, also: tuple[Column, ...] = ()) -> Iterator[RawTable]:
    """Tables of their own, as the registry says."""
    return (_table(each.table, each.event, also=also) for each in emitted if each.table)


def _of_kind(kind: EntityKind) -> Iterator[RawTable]:
    """Tables of what a kind emits; those of projects say beside what they mention, commands too."""
    if kind is not PROJECT:
        return _emitted(*kind.emits)
    commands = _table("project_commands", *_OF_PROJECTS, without=_PROJECTS_ELSEWHERE, also=_MENTIONED)
    return chain([commands], _emitted(*kind.emits, also=_MENTIONED))


_PROFILES, *_OF_SESSIONS = (
    each for each in SESSION.emits if each.event not in {events.DeadLetter, events.TurnNumbered}
)
TABLES: dict[str, RawTable] = {
    table.name: table
    for table in (
        _table("turns", events.Turn, also=_OF_TURNS),
        _table("numbered_turns", events.TurnNumbered, also=_OF_TURNS),
        _table("controls", *_kept(TURNS, events.Turn, events.UnnumberedTurn), also=(_EXTRA,)),
        _table(_PROFILES.table, _PROFILES.event, without=("risk_points",)),
        _table("risk_points", RiskPointOfSession, of_owner=OF_PROFILE),
        *_emitted(*_OF_SESSIONS),
        _table("commands", *_kept(COMMANDS, *_OF_PROJECTS), without=_ELSEWHERE),
        *chain.from_iterable(_of_kind(kind) for kind in REGISTRY.kinds if kind is not SESSION),
        _table("erasures", *_kept(ERASURES)),
        *_emitted(*OTHERS),
        _table("dead_letters", events.DeadLetter, rename={"appended_at": "source_appended_at"}),
    )
}

TABLE_OF: dict[type[Struct], RawTable] = {event: table for table in TABLES.values() for event in table.carries}
"""Where an event is kept."""


class Skipped(Struct, frozen=True, kw_only=True):
    """Offsets that hold no row, and why: with them, every offset below `next` is accounted for.

    The reason is `absent` (not in the log: compacted away, or a marker of a transaction), `expired` (removed by
    retention before it was archived: lost), `erased` (on request, or the request itself), `aged` (by the archive's own
    retention), `unnumbered` (the turn stands in `numbered_turns`), `tombstone`, or why the record is invalid.
    """

    topic: Annotated[str, about("Full name.", OPERATIONAL)]
    kafka_partition: Annotated[int, about("Partition of the topic.", OPERATIONAL, unit="number")]
    first_offset: Annotated[int, about("First of the offsets.", OPERATIONAL, unit="offset")]
    last_offset: Annotated[int, about("Last of the offsets, inside.", OPERATIONAL, unit="offset")]
    reason: Annotated[str, about("Why they hold no row.", BEHAVIOUR)]
    detail: Annotated[str, about("What exactly is wrong, without any of the record's text.", BEHAVIOUR)] = ""
    key: Annotated[bytes | None, about("Of the record, where no dead letter has it.", CONTENT)] = None
    value: Annotated[bytes | None, about("Likewise.", CONTENT)] = None
    appended_at: Annotated[datetime | None, about("When the broker received the record.", OPERATIONAL)] = None


class Retained(Struct, frozen=True, kw_only=True):
    """What one run of retention let go of one table."""

    done_at: Annotated[datetime, about("When it was done.", OPERATIONAL)]
    table_name: Annotated[str, about("Table of the schema `raw`.", OPERATIONAL)]
    privacy: Annotated[str, about("Privacy class by which it was due.", OPERATIONAL)]
    what: Annotated[str, about("`words`: columns were emptied; `rows`: they were removed.", OPERATIONAL)]
    before: Annotated[date, about("Rows received on earlier days (UTC).", BEHAVIOUR)]
    rows: Annotated[int, about("How many.", OPERATIONAL)]
    policy_version: Annotated[str, about("Version of the policy that said so.", OPERATIONAL)]


_NOTES: dict[str, type[Struct]] = {SKIPPED: Skipped, RETAINED: Retained}


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
    tables |= {
        name: {field.name: type_of(field.type).sql for field in fields_of(kind)} for name, kind in _NOTES.items()
    }
    tables[SKIPPED]["landed_at"] = "TIMESTAMPTZ"
    tables[REPEATS] = {"rule": "VARCHAR", "kafka_partition": "INTEGER", "kafka_offset": "BIGINT", "part": "BIGINT"}
    tables[OFFSETS] = {
        "topic": "VARCHAR",
        "kafka_partition": "BIGINT",
        "first_offset": "BIGINT",
        "next_offset": "BIGINT",
        "landed_at": "TIMESTAMPTZ",
    }
    return tables


@cache
def meanings() -> dict[str, dict[str, Meaning]]:
    """What every column means of every table that keeps what is in the log, or says what it keeps no longer."""
    tables = {table.name: {column.name: column.meaning for column in table.columns} for table in TABLES.values()}
    tables |= {name: dict(meaning_of(kind)) for name, kind in _NOTES.items()}
    tables[SKIPPED]["landed_at"] = Meaning("When it was written down.", OPERATIONAL)
    return tables
