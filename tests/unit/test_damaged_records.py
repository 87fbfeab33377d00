"""Damaged records of every topic that a role reads: each is refused, or can be folded, archived, indexed and shown."""

# ruff: noqa: S608 - tables are constants of the archive

import random
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from faust.types import TP
from msgspec.structs import replace

from models.entities import REGISTRY
from models.errors import InvalidRecord, RecoveryFailed
from models.events import AlertChanged, AlertStatus
from models.events.topics import ALERTS, COMMANDS, COMPACTIONS, ERASURES, PROFILES, SESSION_STATE, TURNS, Topic
from models.partition.commands import MemoryPartitionFold
from models.partition.sessions import PartitionFold
from models.policy import IntakePolicy, NotifyPolicy, Policy
from models.wire.codec import decode_output, encode
from streams.api.live.board import LiveBoard
from streams.api.live.feed import take
from streams.archive.buffer import LandingBuffer, Move
from streams.archive.landed import land_all
from streams.archive.schema import SKIPPED, TABLES
from streams.archive.writer import LakeWriter
from streams.inference.intake import decode, decode_commands
from streams.notify.forms import postable, teller
from streams.observe.telemetry import metrics
from streams.state.changelog import ChangelogReplay, records_of
from streams.state.memory import MemoryTable
from tests.support.damaged_records import damaged
from tests.support.lake_records import NOW, PREFIX, RECEIVED, alert, buffer_of, turn
from tests.unit.test_index_role import Noting, Quiet

EACH = 40
_RECEIVED_MS = int(RECEIVED.timestamp() * 1_000)


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[Quiet]:
    """The role over an empty store."""
    made = Quiet(Noting(), tmp_path)
    yield made
    await made.close()


@pytest.mark.usefixtures("archives_made_anew")
def test_every_record_is_landed_or_skipped(writer: LakeWriter) -> None:
    """All topics in one landing; every offset has a row or a reason, and everything can be read again."""
    buffer, taken = LandingBuffer(), {}
    for topic in REGISTRY.archived_topics:
        records = list(damaged(topic, EACH))
        landing = land_all(topic, topic.full_name(PREFIX), records, IntakePolicy())
        buffer.take(landing.rows)
        buffer.skip_all(landing.skipped)
        buffer.moves[TopicPartition(topic.full_name(PREFIX), 0)] = Move(None, 0, len(records))
        taken[topic] = len(records)

    writer.land(buffer, now=NOW)

    for topic, records_taken in taken.items():
        tables = [name for name, table in TABLES.items() if table.topic is topic and name != "risk_points"]
        found = [
            row[0]
            for row in writer.con.execute(
                f"SELECT first_offset FROM raw.{SKIPPED} WHERE topic = ?", [topic.full_name(PREFIX)]
            ).fetchall()
        ]
        for name in tables:
            rows = writer.con.execute(f"SELECT kafka_offset, * FROM raw.{name}").fetchall()
            found += [row[0] for row in rows]
        assert sorted(found) == list(range(records_taken)), topic.name
    assert writer.con.execute(f"SELECT * FROM raw.{SKIPPED} WHERE reason = 'unlandable'").fetchall() == []


@pytest.mark.usefixtures("archives_made_anew")
def test_what_no_column_can_hold_is_skipped(writer: LakeWriter) -> None:
    """Whatever gets past the codec: the rows beside it land, and its offset has a reason."""
    good = alert("e-1", AlertStatus.FIRING)
    buffer = buffer_of([good, good, good], topic=ALERTS)
    (rows,) = buffer.rows.values()
    rows.events[1] = replace(good, turn=2**63)
    rows.owners[1] = rows.events[1]

    landed = writer.land(buffer, now=NOW)

    assert landed["alerts"].rows == 2
    assert writer.con.execute(f"SELECT first_offset, last_offset, reason FROM raw.{SKIPPED}").fetchall() == [
        (1, 1, "unlandable")
    ]
    assert writer.con.execute("SELECT kafka_offset FROM raw.alerts ORDER BY 1").fetchall() == [(0,), (2,)]


async def test_what_breaks_the_index_is_passed(index: Quiet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever gets past the codec: the others of its poll are indexed, and it is counted."""
    add, name = index._memory.add_turns, TURNS.full_name(index.settings.topic_prefix)

    async def brittle(turns: Any, *rest: Any) -> None:
        if any(turn.turn == 1 for turn in turns):
            raise ValueError
        await add(turns, *rest)

    monkeypatch.setattr(index._memory, "add_turns", brittle)
    before = skipped_turns()
    values = [encode(turn(n)) for n in range(3)]
    log = [
        ConsumerRecord(name, 0, n, _RECEIVED_MS, 1, b"s-1", value, None, 3, len(value), ())
        for n, value in enumerate(values)
    ]

    await index.on_records({TP(name, 0): log})

    assert await index._store.count("turns") == 2
    assert skipped_turns() - before == 1


def skipped_turns() -> float:
    """Turns that the index has passed."""
    labels = {"topic": TURNS.name, "reason": "unindexable"}
    return metrics.registry.get_sample_value("turntide_records_skipped_total", labels) or 0


@pytest.mark.parametrize("topic", REGISTRY.indexed_topics, ids=lambda topic: topic.name)
async def test_every_record_is_indexed_or_passed(index: Quiet, topic: Topic) -> None:
    """One by one: nothing breaks the role."""
    place = TP(topic.full_name(index.settings.topic_prefix), 0)
    for record in damaged(topic, EACH):
        await index._index({place: [record]})


def test_every_record_is_folded_or_refused() -> None:
    """Of turns and commands: a fold takes whatever its codec lets in."""
    policy = Policy()
    turns = decode(damaged(TURNS, EACH), policy)
    commands = decode_commands(damaged(COMMANDS, EACH), policy)
    for arrival in turns.arrivals:
        assert list(PartitionFold({}, policy).fold([arrival])) is not None
    for command in commands.arrivals:
        assert list(MemoryPartitionFold({}, policy).fold([command])) is not None

    assert turns.arrivals
    assert turns.dead
    assert commands.arrivals
    assert commands.dead


@pytest.mark.parametrize("topic", [PROFILES, ALERTS, COMPACTIONS, ERASURES, TURNS], ids=lambda topic: topic.name)
def test_every_record_is_shown_or_refused(topic: Topic) -> None:
    """On the live page, and to receivers of alerts."""
    board = LiveBoard()
    for record in damaged(topic, EACH):
        try:
            take(board, topic, record)
            event = None if topic is TURNS else decode_output(topic, record.value)
        except InvalidRecord:
            continue
        if isinstance(event, AlertChanged):
            assert postable(event, teller(NotifyPolicy(), "https://live.example.org")(event))


@pytest.mark.parametrize("seed", range(200))
def test_a_changelog_with_foreign_records_is_refused_with_a_message(seed: int) -> None:
    """State cannot be right behind such a record: recovery ends and says where, with no other error."""
    rng = random.Random(seed)
    (good,) = records_of({b"s-1\x1fhead": b"state"}, 7)
    key: bytes | None = rng.choice((None, b"", b"s-1", b"\xff\x1f\xff", good.key))
    value = rng.choice((None, b"", b"{}", rng.randbytes(rng.randrange(12)), good.value))
    headers = rng.choice(((), (("offset", b""),), (("offset", None),), (("offset", b"\0" * 8),)))
    found = ConsumerRecord(SESSION_STATE.name, 0, 3, 0, 1, key, value, None, 0, 0, headers)

    with suppress(RecoveryFailed):
        ChangelogReplay(MemoryTable()).apply([found], now_ms=0)
        assert (key or b"").count(b"\x1f") == 1
