"""Files that are not what was written, and rows missing, doubled or unaccounted for, are found and named."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from msgspec.structs import replace

from models.errors import StoreUnavailable
from models.events import DeadLetter
from models.events.topics import DEAD_LETTERS, PROFILES, TURNS
from streams.archive.buffer import LandingBuffer, Move, hole
from streams.archive.catalog import open_reader, reading
from streams.archive.damage import damaged, foreign_files, render_damage
from streams.archive.erasing import erase
from streams.archive.maintenance import FILES_TO_MERGE, maintain
from streams.archive.schema import ABSENT, EXPIRED
from streams.archive.verify import DEAD_LETTER_GRACE, Verification, verify
from streams.archive.views.published import leave_damage_out
from streams.archive.writer import LakeWriter
from tests.support.data_files import data_file
from tests.support.lake_records import NOW, PREFIX, buffer_of, example, paths, profile, turn
from tests.support.subjects import of_session

TODAY, TOMORROW = NOW.date(), NOW.date() + timedelta(days=1)
_HOUR = timedelta(hours=1)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LakeWriter]:
    """An archive with three turns on each of two days, and a profile."""
    writer = LakeWriter(paths(tmp_path))
    writer.land(buffer_of([turn(n) for n in range(3)]), now=NOW)
    writer.land(buffer_of([profile("p", turns=1)], topic=PROFILES), now=NOW)
    writer.con.execute(
        f"INSERT INTO raw.turns SELECT * REPLACE (DATE '{TOMORROW}' AS date, turn + 3 AS turn, "  # noqa: S608
        "kafka_offset + 3 AS kafka_offset) FROM raw.turns"
    )
    writer.con.execute("UPDATE raw.offsets SET next_offset = 6 WHERE next_offset = 3")
    yield writer
    writer.close()


def file_of(writer: LakeWriter, day: date = TODAY, table: str = "turns") -> Path:
    """A file of a day."""
    return next(Path(writer.paths.data).glob(f"raw/{table}/date={day}/**/*.parquet"))


def overwritten(path: Path) -> None:
    """Somebody's export went to the wrong place, and is as long by chance."""
    path.write_bytes(b"PAR1" + b"x" * (path.stat().st_size - 8) + b"PAR1")


def a_folder_instead(path: Path) -> None:
    """Of the same name."""
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-100]), " bytes instead of "),
    "emptied": (lambda path: path.write_bytes(b""), "is empty"),
    "deleted": (lambda path: path.unlink(), "is missing"),
    "overwritten": (overwritten, "was overwritten"),
    "replaced": (a_folder_instead, "cannot be opened"),
    "day gone": (lambda path: shutil.rmtree(path.parents[1]), "is missing"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_and_the_other_days_are_served(writer: LakeWriter, damage: str) -> None:
    """File, table and day; the message says what to do."""
    hurt, what = DAMAGES[damage]
    path = file_of(writer)
    hurt(path)

    with closing(open_reader(writer.paths)) as con:
        (found,) = damaged(con)
        days = leave_damage_out(con)
        turns = con.execute("SELECT turn FROM turns ORDER BY turn").fetchall()
        sessions = con.execute("SELECT turns FROM sessions").fetchall()
    with pytest.raises(StoreUnavailable) as said, reading(writer.paths) as con:
        con.execute("SELECT count(content) FROM turns WHERE content <> ''").fetchall()

    assert (found.table, found.date, found.path) == ("turns", TODAY, str(path))
    assert what in found.what
    assert (days, turns, sessions) == ({TODAY}, [(3,), (4,), (5,)], [(3,)])
    assert all(word in str(said.value) for word in (f"raw.turns of {TODAY}", str(path), what, "backup"))


def test_a_whole_archive_has_no_damage(writer: LakeWriter, tmp_path: Path) -> None:
    """Neither landed nor merged; nothing is left out, and the reader stays as it is; nor has an empty one."""
    maintain(writer, now=NOW, keep_replaced=_HOUR, everything=True)
    with closing(open_reader(writer.paths)) as con:
        days = leave_damage_out(con)
        current = con.execute("SELECT current_database(), count(*) FROM turns").fetchall()

    with closing(LakeWriter(paths(tmp_path / "empty"))) as empty:
        merged = maintain(empty, now=NOW, keep_replaced=timedelta(0), everything=True).merged_files
        counted = empty.con.execute("SELECT (SELECT count(*) FROM turns), (SELECT count(*) FROM sessions)").fetchall()
        found = (damaged(empty.con), foreign_files(empty.con), verify(empty.con, prefix=PREFIX, now=NOW).findings)

    assert (days, current, damaged(writer.con), render_damage([])) == (set(), [("lake", 6)], [], "")
    assert (merged, counted, found) == (0, [(0, 0)], ([], [], []))


def test_what_was_replaced_meanwhile_is_no_damage(writer: LakeWriter) -> None:
    """Replaced files wait for their deletion, and are gone one day."""
    for n in range(6, 6 + FILES_TO_MERGE):
        writer.land(buffer_of([turn(n)], first=n, expected=n), now=NOW)
    old = file_of(writer)
    maintain(writer, now=NOW, keep_replaced=timedelta(days=9_000), everything=True)
    old.unlink()

    assert damaged(writer.con) == []


def test_landing_and_merging_go_on_beside_damage(writer: LakeWriter) -> None:
    """The damaged table is left as it is, others are merged; once the file is back, nothing is missing."""
    for n in range(1, FILES_TO_MERGE):
        writer.land(buffer_of([profile(f"p{n}", turns=1)], topic=PROFILES, first=n, expected=n), now=NOW)
    path = file_of(writer)
    kept = path.rename(path.with_suffix(".kept"))

    done = maintain(writer, now=NOW, keep_replaced=timedelta(0), everything=True)
    writer.land(buffer_of([turn(6)], first=6, expected=6), now=NOW)
    kept.rename(path)

    assert done.merged_files >= FILES_TO_MERGE
    assert writer.con.execute("SELECT count(*) FROM turns").fetchall() == [(7,)]
    assert verify(writer.con, prefix=PREFIX, now=NOW).findings == []


def test_an_erasure_does_not_claim_what_it_cannot_read(writer: LakeWriter) -> None:
    """It names the file and changes nothing; afterwards it can be done."""
    path = file_of(writer)
    kept = path.rename(path.with_suffix(".kept"))
    subject = of_session("s-1")

    with pytest.raises(StoreUnavailable, match=f"raw.turns of {TODAY}.*is missing"):
        erase(writer, subject, now=NOW)
    kept.rename(path)
    proof = erase(writer, subject, now=NOW)

    assert {store.store: store.removed for store in proof}["archive turns"] == 6


_TURNS = TopicPartition(TURNS.full_name(PREFIX), 0)


@pytest.fixture
def landed(tmp_path: Path) -> Iterator[LakeWriter]:
    """An archive with three turns."""
    landed = LakeWriter(paths(tmp_path))
    landed.land(buffer_of([turn(n) for n in range(3)]), now=NOW)
    yield landed
    landed.close()


def check(landed: LakeWriter, *, after: timedelta = timedelta(0), transactional: bool = False) -> Verification:
    """Verify at a time after the landings."""
    return verify(landed.con, prefix=PREFIX, now=NOW + after, transactional=transactional)


def landed_hole(landed: LakeWriter, reason: str, place: TopicPartition = _TURNS, expected: int | None = 3) -> None:
    """Offsets 3 and 4 are skipped for the reason."""
    buffer = LandingBuffer()
    buffer.skip(hole(place, expected or 0, (expected or 0) + 1, reason))
    buffer.moves[place] = Move(expected, 0, (expected or 0) + 2)
    landed.land(buffer, now=NOW)


@pytest.mark.parametrize(("harm", "finding"), data_file("lake_verify")["damages"], ids=["lost", "doubled"])
def test_rows_lost_or_doubled_are_found(landed: LakeWriter, harm: str, finding: str) -> None:
    """Each gap is named."""
    landed.land(buffer_of([turn(n) for n in range(3, 10)], first=3, expected=3), now=NOW)
    landed.con.execute(harm)

    assert [f"{_TURNS.topic}-0: {finding}"] == check(landed).findings


def test_repeated_event_is_no_finding(landed: LakeWriter) -> None:
    """The same turn at two offsets is what a producer's retry or a crash leaves: counted, not found; all adds up."""
    landed.land(buffer_of([turn(0)], first=3, expected=3), now=NOW)

    found = check(landed)

    assert found.findings == []
    assert [(p.rows, p.distinct_offsets, p.skipped, p.missing) for p in found.partitions] == [(4, 4, 0, 0)]
    assert {table.table: table.repeats for table in found.tables if table.repeats} == {"turns": 1}


def test_refused_turn_waits_for_its_dead_letter_then_is_a_finding(landed: LakeWriter) -> None:
    """And is none once the letter is archived."""
    landed.land(buffer_of([b"{broken"], first=3, expected=3), now=NOW)
    letter = replace(example(DeadLetter), topic=_TURNS.topic, partition=0, offset=3, value=b"{broken")
    young, overdue = check(landed), check(landed, after=2 * DEAD_LETTER_GRACE)
    landed.land(buffer_of([letter], topic=DEAD_LETTERS), now=NOW)
    answered = check(landed, after=2 * DEAD_LETTER_GRACE)

    assert (young.waiting_dead_letters, young.findings) == (1, [])
    assert len(overdue.findings) == 1
    assert (answered.waiting_dead_letters, answered.findings) == (0, [])


def test_absent_offsets_are_normal_only_where_the_log_may_lack_them(landed: LakeWriter) -> None:
    """Compaction removes records; from turns.v1 only a transaction's markers may be missing."""
    landed_hole(landed, ABSENT)
    profiles = TopicPartition(PROFILES.full_name(PREFIX), 0)
    landed.land(buffer_of([profile("p", turns=1)], topic=PROFILES), now=NOW)
    landed_hole(landed, ABSENT, profiles, expected=1)

    found = check(landed)

    assert len(found.findings) == 1
    assert found.findings[0].startswith(f"{_TURNS.topic}-0: 2 offsets were not in the log")
    assert check(landed, transactional=True).findings == []
    landed_hole(landed, EXPIRED, expected=5)  # retention was shorter than the archive's absence
    assert len(check(landed, transactional=True).findings) == 1
