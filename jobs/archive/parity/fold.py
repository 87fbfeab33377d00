"""The stream's own pure fold over the archived inputs, against the archived outputs: by id, and field by field.

A partition at a time, by the rules that its history names. What is folded goes through the archive's own landing, so
that nothing but its rows is compared. What users and apps are made of is not archived twice: their folds are not made
again. A partition without all of its records is left out, and why.
"""

# ruff: noqa: S608 - tables and columns are constants of this project

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import duckdb

from jobs.archive.parity.found import Parity, checked
from jobs.replay.alert_rules import FoldRules, scorer_named
from jobs.shared.progress import Progress
from models.entities import TOPIC_OF, carried_by
from models.errors import ConfigurationError
from models.events import DeadLetter, OutputEvent
from models.events.base import Output
from models.policy import IntakePolicy
from models.wire.codec import encode
from models.wire.envelope import key_of, tag_of
from streams.archive.buffer import LandingBuffer
from streams.archive.catalog import LAKE, literal
from streams.archive.inputs import archived_count, archived_inputs
from streams.archive.landed import land
from streams.archive.schema import AGED, ERASED, EXPIRED, OFFSETS, RAW, SKIPPED, TABLE_OF, TABLES, Skipped
from streams.oracle.folded import SESSIONS
from streams.oracle.replay import ReplayFeed, SessionReplay
from streams.ports import Embedder
from streams.settings import Settings
from streams.state import policy_versions as versions
from streams.wiring import policy_of, scorer_of, stream_embedder_of

_ROWS = 20_000
"""Outputs that are kept before they are landed."""
_PLACE = frozenset(("kafka_partition", "kafka_offset", "appended_at", "record_bytes", "date", "app"))
"""Where a row stands: a fold cannot know it."""
_POINTS, _WINDOWS = "risk_points", "windows"
_KINDS = [
    kind for topic in SESSIONS.outputs for kind in carried_by(topic) if kind in TABLE_OF and issubclass(kind, Output)
]
"""What the sessions role emits and the archive keeps."""
_OF_SESSIONS = {
    **{TABLE_OF[kind].name: [each for each in _KINDS if TABLE_OF[each] is TABLE_OF[kind]] for kind in _KINDS},
    _POINTS: [],
}
"""Tables of these, and which of their events."""


class TurnsPartition(NamedTuple):
    """A partition of `turns.v1`, by the topic's full name."""

    topic: str
    partition: int


class _Outputs(SessionReplay):
    """A fold that hands its outputs on and keeps none."""

    def __init__(self, first: FoldRules, embedder: Embedder, made: _Made) -> None:
        super().__init__(first.policy, embedder, first.scorer)
        self._embedder = embedder
        self._made = made

    def go_on(self, rules: FoldRules) -> None:
        """Fold what comes next by other rules."""
        self.go_on_with(rules.policy, self._embedder, rules.scorer)

    def _keep(self, events: Sequence[OutputEvent]) -> None:
        for event in events:
            if not isinstance(event, DeadLetter) and type(event) in TABLE_OF:
                self._made.take(event)


class _Made:
    """Outputs of the fold, landed into temporary tables beside the archive's."""

    def __init__(self, con: duckdb.DuckDBPyConnection, settings: Settings, intake: IntakePolicy) -> None:
        self._con = con
        self._settings = settings
        self._intake = intake
        self._buffer = LandingBuffer()
        self.tables: set[str] = set()

    def take(self, event: OutputEvent) -> None:
        """Take one: as JSON, as it goes over the wire."""
        topic, value = TOPIC_OF[type(event)], encode(event)
        record = _Record(0, 0, 0, key_of(event), value)
        row = land(topic, topic.full_name(self._settings.topic_prefix), record, self._intake)
        assert not isinstance(row, Skipped), "what the stream emits the archive can read"  # noqa: S101
        self._buffer.add(row)
        if self._buffer.records >= _ROWS:
            self.settle()

    def settle(self) -> None:
        """Put what is kept into the tables."""
        for name, rows in self._buffer.rows.items():
            frame = TABLES[name].frame(rows)
            self._con.register("parity_landed", frame)
            if name not in self.tables:
                self._con.execute(
                    f"CREATE OR REPLACE TEMP TABLE parity_made_{name} AS SELECT * FROM {RAW}.{name} LIMIT 0"
                )
                self.tables.add(name)
            self._con.execute(f"INSERT INTO parity_made_{name} BY NAME SELECT * FROM parity_landed")
            self._con.unregister("parity_landed")
        self._buffer = LandingBuffer()

    def drop(self) -> None:
        """Remove the tables."""
        for name in self.tables:
            self._con.execute(f"DROP TABLE temp.main.parity_made_{name}")
        self.tables.clear()


class _Record(NamedTuple):
    """A made event, as a record that was never sent."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def fold_again(
    con: duckdb.DuckDBPyConnection, settings: Settings, topic: str, *, progress: Progress = lambda *_: None
) -> Parity:
    """Fold every partition from its beginning, and note what its events are not.

    Args:
        con: A reader of the archive.
        settings: Where the versions of rules are.
        topic: Full name of `turns.v1`.
        progress: Told how many records are folded, and of how many.

    Raises:
        ConfigurationError: A version that the history names is not kept here, or the embedder is another one.
    """
    found, embedder, before, total = Parity(), stream_embedder_of(settings), 0, archived_count(con)
    partitions = con.execute(
        f"SELECT kafka_partition FROM {RAW}.{OFFSETS} WHERE topic = ? ORDER BY kafka_partition", [topic]
    ).fetchall()
    rules_of: dict[TurnsPartition, list[FoldRules]] = {}
    for (partition,) in partitions:
        place = TurnsPartition(topic, int(partition))
        if why := _why_incomplete(con, place):
            found.leave_out("partitions", 1, why)
        else:
            rules_of[place] = _rules_of_partition(settings, place.partition, embedder)
    for place, rules in rules_of.items():
        found.erased_records += _erased_records(con, place)
        made = _Made(con, settings, rules[0].policy.intake)
        replay = _Outputs(rules[0], embedder, made)
        try:
            before += _fold(con, place, rules, replay, partial(_report, progress, before, total))
            made.settle()
            _compare(con, place, made, found)
        finally:
            made.drop()
    return found


def _erased_records(con: duckdb.DuckDBPyConnection, place: TurnsPartition) -> int:
    """How many records of the partition an erasure has removed from the archive."""
    found = con.execute(
        f"SELECT coalesce(sum(last_offset - first_offset + 1), 0)::BIGINT FROM {RAW}.{SKIPPED} "
        "WHERE topic = ? AND kafka_partition = ? AND reason = ?",
        [*place, ERASED],
    ).fetchone()
    return int(found[0]) if found else 0


def _why_incomplete(con: duckdb.DuckDBPyConnection, place: TurnsPartition) -> str:
    """Why a partition cannot be counted again; empty where it can."""
    held = con.execute(
        f"SELECT first_offset, next_offset FROM {RAW}.{OFFSETS} WHERE topic = ? AND kafka_partition = ?", list(place)
    ).fetchone()
    first, following = held or (0, 0)
    (rows,) = con.execute(
        f"SELECT (SELECT count(*) FROM {RAW}.turns WHERE kafka_partition = ?) "
        f"+ (SELECT count(*) FROM {RAW}.controls WHERE kafka_partition = ?)",
        [place.partition, place.partition],
    ).fetchone() or (0,)
    skipped = dict(
        con.execute(
            f"SELECT reason, sum(last_offset - first_offset + 1)::BIGINT FROM {RAW}.{SKIPPED} "
            "WHERE topic = ? AND kafka_partition = ? GROUP BY reason",
            list(place),
        ).fetchall()
    )
    if first or skipped.get(EXPIRED):
        return "its beginning is not archived: retention removed it from the topic before"
    if skipped.get(AGED):
        return "records are not in the archive any more: its own retention removed them"
    return "" if following <= rows + sum(skipped.values()) else "records are missing: see `turntide archive verify`"


def _rules_of_partition(settings: Settings, partition: int, embedder: Embedder) -> list[FoldRules]:
    """By what a partition was folded: as its history says, by the configured rules where there is none.

    Raises:
        ConfigurationError: A version is not kept here, or the embedder is another one.
    """
    stretches = versions.history(settings, partition)
    for stretch in stretches:
        if stretch.version.embedder not in ("", embedder.name):
            raise ConfigurationError(
                f"partition {partition} was folded with the embedder {stretch.version.embedder}, configured is "
                f"{embedder.name}: set TURNTIDE_VECTORS__EMBEDDER"
            )
    if not stretches:
        return [FoldRules(0, policy_of(settings), scorer_of(settings, embedder))]
    found = [
        FoldRules(
            stretch.first_offset,
            versions.kept_policy(settings, stretch.version.policy),
            scorer_named(settings, stretch.version.scorer, embedder),
        )
        for stretch in stretches
    ]
    return [found[0]._replace(first_offset=0), *found[1:]]


def _fold(
    con: duckdb.DuckDBPyConnection,
    place: TurnsPartition,
    rules: Sequence[FoldRules],
    replay: _Outputs,
    progress: Callable[[int], None],
) -> int:
    """Fold a partition; gives its number of records."""
    feed, waiting, records = ReplayFeed(replay, progress=progress), list(rules[1:]), 0
    # The archive is read in a second cursor: a connection streams one result at a time, and the tables are filled here.
    cursor = con.cursor()
    cursor.execute(f"USE {LAKE}")
    for record in archived_inputs(cursor, place.topic, only=place.partition):
        while waiting and record.offset >= waiting[0].first_offset:
            feed.finish()
            replay.go_on(waiting.pop(0))
        feed.take(record)
        records += 1
    feed.finish()
    cursor.close()
    return records


def _report(progress: Progress, before: int, total: int, done: int) -> None:
    progress(before + done, total)


def _compare(con: duckdb.DuckDBPyConnection, place: TurnsPartition, made: _Made, found: Parity) -> None:
    """Every archived row of an event that the partition caused, against the one that was made."""
    erased = _erased_records(con, place)
    for name in sorted(_OF_SESSIONS):
        if name not in made.tables:
            con.execute(f"CREATE OR REPLACE TEMP TABLE parity_made_{name} AS SELECT * FROM {RAW}.{name} LIMIT 0")
            made.tables.add(name)
        table = TABLES[name]
        fields = [column.name for column in table.columns if column.name not in _PLACE]
        key = "id, turn" if name == _POINTS else "id"
        what = key.replace(", ", " || ' ' || ")
        archived = _archived(name, place)
        if erased and name == _WINDOWS:
            # Windows of apps count what was erased since, and may have been closed by it.
            (left_out,) = con.execute(f"SELECT count(*) FROM ({archived}) WHERE scope = 'app'").fetchone() or (0,)
            found.leave_out(f"{name} (fold)", left_out, "records of their partition were erased since")
            archived += " AND scope = 'session'"
            con.execute(f"DELETE FROM parity_made_{name} WHERE scope = 'app'")
        row = ", ".join(f'"{field}"' for field in fields)
        checked(
            con,
            found,
            f"{name} (fold)",
            of=f"SELECT count(*) FROM ({archived})",
            differing=f"""
              WITH archived AS ({archived}), made AS (SELECT DISTINCT {row} FROM parity_made_{name})
              SELECT 'false' AS kind, {what} AS what FROM archived ANTI JOIN made USING ({key})
              UNION ALL
              SELECT 'missing', {what} FROM made ANTI JOIN archived USING ({key})
              WHERE {_landed_by(name)}
              UNION ALL
              SELECT 'changed', {what} FROM (
                SELECT DISTINCT {key} FROM (SELECT {row} FROM archived EXCEPT SELECT {row} FROM made)
              ) SEMI JOIN made USING ({key})
            """,
        )


def _archived(name: str, place: TurnsPartition) -> str:
    if name == _POINTS:
        of = f"SELECT id FROM {RAW}.profiles WHERE {_caused_at(place)}"
        return f"SELECT * FROM {RAW}.{name} WHERE id IN ({of})"
    kinds = ", ".join(literal(tag_of(kind)) for kind in _OF_SESSIONS[name])
    of_kind = f" AND type IN ({kinds})" if len(TABLES[name].carries) > 1 else ""
    return f"SELECT * FROM {RAW}.{name} WHERE {_caused_at(place)}{of_kind}"


def _caused_at(place: TurnsPartition) -> str:
    """Condition on an event: a record of the partition caused it."""
    return f'source.topic = {literal(place.topic)} AND source."partition" = {place.partition:d}'


def _landed_by(name: str) -> str:
    """Condition on what was made: the archive is as far as that. What comes later may still be on its way."""
    if name == _POINTS:
        return "id IN (SELECT id FROM raw.profiles)"
    return 'source."offset" <= (SELECT max(source."offset") FROM archived)'
