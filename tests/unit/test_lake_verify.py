"""Verification finds what is missing, doubled or unaccounted for; and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from models.events import DeadLetter
from models.events.topics import DEAD_LETTERS, PROFILES, TURNS
from streams.archive.buffer import ArchivedPartition, LandingBuffer, Move, hole
from streams.archive.schema import ABSENT, EXPIRED
from streams.archive.verify import DEAD_LETTER_GRACE, Verification, verify
from streams.archive.writer import LakeWriter
from tests.support.data_files import data_file
from tests.support.lake_records import NOW, PREFIX, buffer_of, example, paths, profile, turn

_TURNS = ArchivedPartition(TURNS.full_name(PREFIX), 0)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LakeWriter]:
    """An archive with three turns."""
    writer = LakeWriter(paths(tmp_path))
    writer.land(buffer_of([turn(n) for n in range(3)]), now=NOW)
    yield writer
    writer.close()


def check(writer: LakeWriter, *, after: timedelta = timedelta(0), transactional: bool = False) -> Verification:
    """Verify at a time after the landings."""
    return verify(writer.con, prefix=PREFIX, now=NOW + after, transactional=transactional)


def landed_hole(writer: LakeWriter, reason: str, place: ArchivedPartition = _TURNS, expected: int | None = 3) -> None:
    """Offsets 3 and 4 are skipped for the reason."""
    buffer = LandingBuffer()
    buffer.skip(hole(place, expected or 0, (expected or 0) + 1, reason))
    buffer.moves[place] = Move(expected, 0, (expected or 0) + 2)
    writer.land(buffer, now=NOW)


@pytest.mark.parametrize(
    ("harm", "finding"),
    data_file("lake_verify")["damages"],
    ids=["lost", "doubled"],
)
def test_rows_lost_or_doubled_are_found(writer: LakeWriter, harm: str, finding: str) -> None:
    """Each gap is named."""
    writer.land(buffer_of([turn(n) for n in range(3, 10)], first=3, expected=3), now=NOW)
    writer.con.execute(harm)

    assert [f"{_TURNS.topic}-0: {finding}"] == check(writer).findings


def test_repeated_event_is_no_finding(writer: LakeWriter) -> None:
    """The same turn at two offsets is what a producer's retry or a crash leaves: counted, not found; all adds up."""
    writer.land(buffer_of([turn(0)], first=3, expected=3), now=NOW)

    found = check(writer)

    assert found.findings == []
    assert [(p.rows, p.distinct_offsets, p.skipped, p.missing) for p in found.partitions] == [(4, 4, 0, 0)]
    assert {table.table: table.repeats for table in found.tables if table.repeats} == {"turns": 1}


def test_refused_turn_waits_for_its_dead_letter_then_is_a_finding(writer: LakeWriter) -> None:
    """And is none once the letter is archived."""
    writer.land(buffer_of([b"{broken"], first=3, expected=3), now=NOW)
    letter = replace(example(DeadLetter), topic=_TURNS.topic, partition=0, offset=3, value=b"{broken")
    young, overdue = check(writer), check(writer, after=2 * DEAD_LETTER_GRACE)
    writer.land(buffer_of([letter], topic=DEAD_LETTERS), now=NOW)
    answered = check(writer, after=2 * DEAD_LETTER_GRACE)

    assert (young.waiting_dead_letters, young.findings) == (1, [])
    assert len(overdue.findings) == 1
    assert (answered.waiting_dead_letters, answered.findings) == (0, [])


def test_absent_offsets_are_normal_only_where_the_log_may_lack_them(writer: LakeWriter) -> None:
    """Compaction removes records; from turns.v1 only a transaction's markers may be missing."""
    landed_hole(writer, ABSENT)
    profiles = ArchivedPartition(PROFILES.full_name(PREFIX), 0)
    writer.land(buffer_of([profile("p", turns=1)], topic=PROFILES), now=NOW)
    landed_hole(writer, ABSENT, profiles, expected=1)

    found = check(writer)

    assert len(found.findings) == 1
    assert found.findings[0].startswith(f"{_TURNS.topic}-0: 2 offsets were not in the log")
    assert check(writer, transactional=True).findings == []
    landed_hole(writer, EXPIRED, expected=5)  # retention was shorter than the archive's absence
    assert len(check(writer, transactional=True).findings) == 1
