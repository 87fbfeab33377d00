"""The stream's own pure fold over the archived inputs, against the archived outputs: by id, and field by field.

A partition at a time, by the rules that its history names. What is folded goes through the archive's own landing, so
that nothing but its rows is compared. What users and apps are made of is not archived twice: their folds are not made
again. A partition without all of its records is left out, and why.
"""

# ruff: noqa: S608 - tables and columns are constants of this project

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import duckdb
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from msgspec import Struct, field

from jobs.replay.alert_rules import configured_rules, rules_of_partition
from jobs.replay.archive_read import landed, skipped
from jobs.shared.output import Progress
from models.entities import TOPIC_OF, carried_by
from models.events import OutputEvent, TurnNumbered
from models.events.base import Output
from models.wire.codec import encode
from models.wire.envelope import key_of, tag_of
from streams.archive.buffer import LandingBuffer
from streams.archive.catalog import LAKE, literal
from streams.archive.inputs import archived_count, archived_inputs
from streams.archive.landed import land
from streams.archive.schema import AGED, ERASED, EXPIRED, OFFSETS, RAW, TABLE_OF, TABLES, Skipped
from streams.oracle.replay import SESSIONS, FoldRules, SessionReplay
from streams.ports import Embedder
from streams.settings import Settings
from streams.wiring import stream_embedder_of

EXAMPLES = 5
"""Differences listed for each claim and kind; counts are exact."""


class ParityDifference(Struct, frozen=True):
    """One of them: ids, numbers of turns and names of fields, never a text."""

    claim: str
    kind: str
    what: str


class Parity(Struct, kw_only=True):
    """The findings.

    Attributes:
        checked: Claim → how many were recomputed.
        counts: `<claim> <kind>` → how many differ.
        examples: The first `EXAMPLES` of each.
        not_checked: `<claim>: <why not>` → how many.
        erased_records: Of `turns.v1`, gone from the archive: what they did to their partition's clock is not known.
    """

    checked: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[ParityDifference] = field(default_factory=list)
    not_checked: Counter[str] = field(default_factory=Counter)
    erased_records: int = 0

    @property
    def differences(self) -> int:
        """Number of differences."""
        return sum(self.counts.values())

    def add(self, claim: str, checked: int, differing: list[tuple[str, int, list[str]]]) -> None:
        """Note what was found of a claim on one partition."""
        self.checked[claim] += checked
        for kind, number, some in differing:
            listed = sum(example.claim == claim and example.kind == kind for example in self.examples)
            self.counts[f"{claim} {kind}"] += number
            self.examples += [ParityDifference(claim, kind, what) for what in some[: EXAMPLES - listed]]

    def leave_out(self, claim: str, number: int, why: str) -> None:
        """Note that some of a claim cannot be told."""
        self.not_checked[f"{claim}: {why}"] += number


_ROWS = 20_000
"""Outputs that are kept before they are landed."""
_PLACE = frozenset(("kafka_partition", "kafka_offset", "appended_at", "record_bytes", "date", "app"))
"""Where a row stands: a fold cannot know it."""
_OF_RELEASE = frozenset(("fingerprint",))
"""Made of app and session, which are compared: releases up to 0.2 made it of the session alone."""
_POINTS, _WINDOWS = "risk_points", "windows"
_KINDS = [
    kind
    for topic in SESSIONS.outputs
    for kind in carried_by(topic)
    if kind in TABLE_OF and issubclass(kind, Output) and kind is not TurnNumbered
]
"""What the sessions role emits and the archive keeps; turns that it numbered are read as they were said."""
_OF_SESSIONS = {
    **{TABLE_OF[kind].name: [each for each in _KINDS if TABLE_OF[each] is TABLE_OF[kind]] for kind in _KINDS},
    _POINTS: [],
}
"""Tables of these, and which of their events."""


class _FoldedAgain(SessionReplay):
    """The fold of a partition, whose outputs are landed into temporary tables beside the archive's, and not kept."""

    def __init__(
        self, con: duckdb.DuckDBPyConnection, settings: Settings, rules: Sequence[FoldRules], embedder: Embedder
    ) -> None:
        super().__init__(rules[0].policy, embedder, rules[0].scorer, lambda _: rules)
        self._con, self._prefix, self._buffer = con, settings.topic_prefix, LandingBuffer()
        for name in _OF_SESSIONS:
            con.execute(f"CREATE OR REPLACE TEMP TABLE parity_made_{name} AS SELECT * FROM {RAW}.{name} LIMIT 0")

    def _keep(self, events: Sequence[OutputEvent]) -> None:
        for event in events:
            if type(event) in _KINDS:
                topic, value = TOPIC_OF[type(event)], encode(event)  # as it goes over the wire
                name, key = topic.full_name(self._prefix), key_of(event)
                record = ConsumerRecord(name, 0, 0, 0, 0, key, value, None, len(key or b""), len(value), ())
                row = land(topic, name, record, self._policy.intake)
                assert not isinstance(row, Skipped), "what the stream emits the archive can read"  # noqa: S101
                self._buffer.add(row)
        if self._buffer.records >= _ROWS:
            self.settle()

    def settle(self) -> None:
        """Put what is kept into the tables."""
        for name, rows in self._buffer.rows.items():
            self._con.register("parity_landed", TABLES[name].frame(rows).__arrow_c_stream__())
            self._con.execute(f"INSERT INTO parity_made_{name} BY NAME SELECT * FROM parity_landed")
            self._con.unregister("parity_landed")
        self._buffer = LandingBuffer()


def fold_again(
    con: duckdb.DuckDBPyConnection, settings: Settings, topic: str, *, progress: Progress = lambda *_: None
) -> Parity:
    """Fold every partition from its beginning, and note what its events are not.

    Raises:
        ConfigurationError: A version that the history names is not kept here, or the embedder is another one.
    """
    found, embedder, folded, total = Parity(), stream_embedder_of(settings), 0, archived_count(con)
    partitions = con.execute(
        f"SELECT kafka_partition FROM {RAW}.{OFFSETS} WHERE topic = ? ORDER BY kafka_partition", [topic]
    ).fetchall()

    def report(_done: int) -> None:
        progress(folded, total)

    rules_of, own = dict[TopicPartition, Sequence[FoldRules]](), configured_rules(settings, embedder)
    for (partition,) in partitions:
        place = TopicPartition(topic, int(partition))
        if why := _why_incomplete(con, place):
            found.leave_out("partitions", 1, why)
        else:
            rules_of[place] = rules_of_partition(settings, place.partition, embedder, own)
    for place, rules in rules_of.items():
        erased = skipped(con, *place).get(ERASED, 0)
        found.erased_records += erased
        replay = _FoldedAgain(con, settings, rules, embedder)
        replay.progress = report
        # The archive is read in a second cursor: a connection streams one result at a time, and the tables are filled
        # here.
        cursor = con.cursor()
        cursor.execute(f"USE {LAKE}")
        try:
            for record in archived_inputs(cursor, topic, only=place.partition):
                replay.take(record)
                folded += 1
            replay.result()
            replay.settle()
            _compare(con, place, found, erased)
        finally:
            cursor.close()
    return found


def _why_incomplete(con: duckdb.DuckDBPyConnection, place: TopicPartition) -> str:
    """Why a partition cannot be counted again; empty where it can."""
    first, following = landed(con, *place)
    missing = skipped(con, *place)
    counted = con.execute(f"SELECT count(*) FROM numbered_turns WHERE kafka_partition = {place.partition:d}").fetchone()
    rows = archived_count(con, only=place.partition) - (counted or (0,))[0]  # their offsets are among the missing
    if first or missing.get(EXPIRED):
        return "its beginning is not archived: retention removed it from the topic first"
    if missing.get(AGED):
        return "records were removed from the archive by its own retention"
    return "" if following <= rows + sum(missing.values()) else "records are missing: see `turntide archive verify`"


def _compare(con: duckdb.DuckDBPyConnection, place: TopicPartition, found: Parity, erased: int) -> None:
    """Every archived row of an event that the partition caused, against the one that was made."""
    for name in sorted(_OF_SESSIONS):
        table = TABLES[name]
        fields = [column.name for column in table.columns if column.name not in _PLACE | _OF_RELEASE]
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
        (number,) = con.execute(f"SELECT count(*) FROM ({archived})").fetchone() or (0,)
        differing = con.execute(
            f"""
            WITH archived AS ({archived}), made AS (SELECT DISTINCT {row} FROM parity_made_{name}), differing AS (
              SELECT 'false' AS kind, {what} AS what FROM archived ANTI JOIN made USING ({key})
              UNION ALL
              SELECT 'missing', {what} FROM made ANTI JOIN archived USING ({key})
              WHERE {_landed_by(name)}
              UNION ALL
              SELECT 'changed', {what} FROM (
                SELECT DISTINCT {key} FROM (SELECT {row} FROM archived EXCEPT SELECT {row} FROM made)
              ) SEMI JOIN made USING ({key})
            )
            SELECT kind, count(*), min(what, {EXAMPLES}) FROM differing GROUP BY kind ORDER BY kind
            """
        ).fetchall()
        found.add(f"{name} (fold)", int(number), differing)


def _archived(name: str, place: TopicPartition) -> str:
    if name == _POINTS:
        of = f"SELECT id FROM {RAW}.profiles WHERE {_caused_at(place)}"
        return f"SELECT * FROM {RAW}.{name} WHERE id IN ({of})"
    kinds = ", ".join(literal(tag_of(kind)) for kind in _OF_SESSIONS[name])
    of_kind = f" AND type IN ({kinds})" if len(TABLES[name].carries) > 1 else ""
    return f"SELECT * FROM {RAW}.{name} WHERE {_caused_at(place)}{of_kind}"


def _caused_at(place: TopicPartition) -> str:
    """Condition on an event: a record of the partition caused it."""
    return f'source.topic = {literal(place.topic)} AND source."partition" = {place.partition:d}'


def _landed_by(name: str) -> str:
    """Condition on what was made: the archive is as far as that. What comes later may still be on its way."""
    if name == _POINTS:
        return "id IN (SELECT id FROM raw.profiles)"
    return 'source."offset" <= (SELECT max(source."offset") FROM archived)'
