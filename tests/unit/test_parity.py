"""Parity: the archived inputs folded again; nothing differs, and whatever is false is found."""

# ruff: noqa: S608 - statements are made of constants of this module

import shutil
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from jobs.archive.parity import Parity, fold_again
from jobs.lab.chaos.traffic import traffic
from models.entities import TOPIC_OF
from models.events import ClockTicked, DeadLetter, OutputEvent, SessionEnded
from models.events.topics import TURNS
from models.wire.codec import encode
from models.wire.envelope import key_of
from streams.archive.buffer import LandingBuffer, Move
from streams.archive.catalog import LakePaths, open_writer, reading
from streams.archive.schema import TABLE_OF
from streams.archive.writer import LakeWriter
from streams.kafka.producer import Record as Sent
from streams.oracle.replay import SessionReplay
from streams.settings import Settings, load_settings
from streams.wiring import policy_of, scorer_of, stream_embedder_of
from tests.support.lake_records import PREFIX, Record, paths, take, turn

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
TOPIC = TURNS.full_name(PREFIX)
PARTITIONS = 2
PLAIN = "s-plain"
"""A session without disorder: turns 0-24 of rising risk, and its end."""


def log_of(seed: int) -> list[ConsumerRecord]:
    """Interleaved sessions, some turns twice, late, out of order or poison, with ends, ticks and who comes again."""
    sent = [each.record for each in traffic(seed, turns=500, ends_at=NOW, span=timedelta(hours=5))]
    names = sorted({record.key for record in sent if record.key})
    again = [record for record in sent if record.key in names[:3]][-6:]
    ends = [SessionEnded(session_id=name.decode(), timestamp=NOW) for name in names[:5]]
    tick = ClockTicked(session_id="clock", timestamp=NOW)
    sent += [_sent(turn(number, session_id=PLAIN, risk=0.04 * number)) for number in range(25)]
    sent += [_sent(SessionEnded(session_id=PLAIN, timestamp=NOW + timedelta(seconds=30)))]
    sent += [_sent(end) for end in ends] + again + [_sent(tick)]
    offsets: defaultdict[int, int] = defaultdict(int)
    return [_numbered(record.key, record.value, offsets) for record in sent]


def _sent(event: Any) -> Sent:
    return Sent(event.session_id.encode(), encode(event))


def _numbered(key: bytes | None, value: bytes | None, offsets: defaultdict[int, int]) -> ConsumerRecord:
    partition = sum(key or b"") % PARTITIONS
    offset = offsets[partition]
    offsets[partition] += 1
    size = len(value or b"")
    appended_ms = int((NOW + timedelta(hours=1)).timestamp() * 1000)
    return ConsumerRecord(TOPIC, partition, offset, appended_ms, 1, key, value, None, 3, size, ())


def land_all(place: LakePaths, log: Sequence[ConsumerRecord], outputs: Sequence[OutputEvent]) -> None:
    """Archive a log and what became of it."""
    buffer = LandingBuffer()
    for record in log:
        _add(buffer, TURNS, record)
    following: defaultdict[str, int] = defaultdict(int)
    for event in outputs:
        if isinstance(event, DeadLetter) or type(event) not in TABLE_OF:
            continue
        topic = TOPIC_OF[type(event)]
        offset = following[topic.name]
        following[topic.name] += 1
        _add(buffer, topic, Record(0, offset, int(NOW.timestamp() * 1000), key_of(event), encode(event)))
    with closing(LakeWriter(place)) as writer:
        writer.land(buffer, now=NOW)


def _add(buffer: LandingBuffer, topic: Any, record: Any) -> None:
    take(buffer, topic, record)
    buffer.moves[TopicPartition(topic.full_name(PREFIX), record.partition)] = Move(None, 0, record.offset + 1)


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, LakePaths]:
    """An archive as the configured rules make it, and the settings that name them."""
    folder = tmp_path_factory.mktemp("folded")
    settings = load_settings(data_dir=folder, topic_prefix=PREFIX)
    embedder = stream_embedder_of(settings)
    log = log_of(3)
    replay = SessionReplay(policy_of(settings), embedder, scorer_of(settings, embedder))
    for record in sorted(log, key=lambda record: (record.partition, record.offset)):
        replay.take(record)
    place = paths(folder / "archive")
    land_all(place, log, list(replay.result().outputs.values()))
    return settings, place


def folded_again(settings: Settings, place: LakePaths) -> Parity:
    """The archive's inputs through the stream's own fold once more."""
    with reading(place) as con:
        return fold_again(con, settings, TOPIC)


def test_the_fold_makes_every_event_again(folded: tuple[Settings, LakePaths]) -> None:
    """Field by field, of every table that sessions fill; a policy of now stands for the history that there is not.

    There are duplicates, late turns, several lives and windows: else equal says little.
    """
    found = folded_again(*folded)
    with reading(folded[1]) as con:
        hard = con.execute("""
            SELECT sum(duplicate_turns) > 0, sum(late_turns) > 0, bool_or(NOT "open"), count(*) > 50,
              (SELECT count(*) > count(DISTINCT (session_id, turn)) FROM raw.turns)
            FROM profile_history
        """).fetchone()

    assert (True,) * 5 == hard
    assert {} == found.counts
    assert {"profiles (fold)", "risk_points (fold)", "windows (fold)", "topics (fold)"} <= found.checked.keys()
    assert all(found.checked[f"{name} (fold)"] for name in ("profiles", "risk_points", "windows", "topics", "commands"))


def _one(table: str, which: str = "true") -> str:
    return f"WHERE id = (SELECT min(id) FROM raw.{table} WHERE session_id = '{PLAIN}' AND {which})"


_ALONE = "id IN (SELECT id FROM raw.risk_points GROUP BY id HAVING count(*) = 1)"
FALSE = (
    f"UPDATE raw.profiles SET mean_risk = mean_risk + 1e-15 {_one('profiles', 'mean_risk > 0')}",
    f"UPDATE raw.risk_points SET turn = 9999 {_one('risk_points', _ALONE)}",
    f"DELETE FROM raw.compactions {_one('compactions')}",
    f"UPDATE raw.windows SET id = 'nobody' {_one('windows')}",
    """UPDATE raw.windows SET turns = turns - 1
        WHERE id = (SELECT min(id) FROM raw.windows WHERE scope = 'app' AND turns > 1)""",
    f"UPDATE raw.episodes SET turn_count = turn_count - 1 {_one('episodes')}",
    f"UPDATE raw.topics SET message_count = message_count + 1 {_one('topics')}",
    f"DELETE FROM raw.commands {_one('commands', 'turn = 3')}",
)
"""What is done to the archive."""


def test_an_event_that_the_fold_does_not_make_is_found(folded: tuple[Settings, LakePaths], tmp_path: Path) -> None:
    """One that says something else by a last bit, one that is gone, and one that nobody could have made."""
    settings, place = folded
    shutil.copytree(place.catalog.parent, tmp_path / "copy")
    with closing(open_writer(paths(tmp_path / "copy"))) as con:
        for statement in FALSE:
            con.execute(statement)
    found = folded_again(settings, paths(tmp_path / "copy"))

    assert {
        "profiles (fold) changed": 1,
        "risk_points (fold) false": 1,
        "risk_points (fold) missing": 1,
        "compactions (fold) missing": 1,
        "windows (fold) changed": 1,
        "windows (fold) false": 1,
        "windows (fold) missing": 1,
        "episodes (fold) changed": 1,
        "topics (fold) changed": 1,
        "commands (fold) missing": 1,
    } == found.counts
    assert {f"{each.claim} {each.kind}" for each in found.examples} == found.counts.keys()


def test_a_partition_without_its_beginning_is_not_told_of(folded: tuple[Settings, LakePaths], tmp_path: Path) -> None:
    """Where retention has removed turns, the fold cannot be the stream's: said, not found different."""
    settings, place = folded
    shutil.copytree(place.catalog.parent, tmp_path / "copy")
    with closing(open_writer(paths(tmp_path / "copy"))) as con:
        con.execute("DELETE FROM raw.turns WHERE kafka_partition = 0 AND kafka_offset < 20")
    found = folded_again(settings, paths(tmp_path / "copy"))

    assert {} == found.counts
    assert 1 == sum(number for why, number in found.not_checked.items() if why.startswith("partitions"))
