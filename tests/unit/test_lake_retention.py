"""Letting go by age: what is due, what is left of it, and that it does not come back."""

from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from models.events.topics import COMPACTIONS, PROFILES, TURNS, Topic
from models.policy.archive import RetentionPolicy
from streams.archive.catalog import LakePaths, reading
from streams.archive.inputs import archived_inputs
from streams.archive.maintenance import maintain
from streams.archive.retention import DueRemoval, due, retain
from streams.archive.verify import verify
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, PREFIX, buffer_of, paths, profile, segment, turn

NEEDLE = "hippopotamus"
WITH_NEEDLE = "SELECT count(*) FROM turns WHERE content LIKE '%hippopotamus%'"
OLD, YOUNG = NOW, NOW + timedelta(days=20)
LATER = NOW + timedelta(days=30)


def put(writer: LakeWriter, topic: Topic, events: list[Any], at: datetime, *, first: int) -> None:
    """Land events that were received at a time."""
    buffer = buffer_of(events, topic=topic, first=first, expected=first or None, received=at)
    writer.land(buffer, now=at)


@pytest.fixture
def place(tmp_path: Path) -> LakePaths:
    """Three turns, a profile and a segment of thirty days ago, two turns of ten days ago."""
    at = paths(tmp_path)
    with closing(LakeWriter(at)) as writer:
        put(writer, TURNS, [turn(n, content=f"my {NEEDLE} {n}") for n in range(3)], OLD, first=0)
        put(writer, TURNS, [turn(n, content=f"your zebra {n}") for n in range(3, 5)], YOUNG, first=3)
        put(writer, PROFILES, [profile("p-1", turns=2)], OLD, first=0)
        put(writer, COMPACTIONS, [segment("c-1", f"of the {NEEDLE}")], OLD, first=0)
    return at


def applied(place: LakePaths, policy: RetentionPolicy, *, now: datetime = LATER) -> list[DueRemoval]:
    """Let go."""
    with closing(LakeWriter(place)) as writer:
        return retain(writer, policy, now=now, policy_version="p-7")


def asked(place: LakePaths, sql: str) -> list[tuple[Any, ...]]:
    """Rows of a query."""
    with reading(place) as con:
        return con.execute(sql).fetchall()


def bytes_of(place: LakePaths) -> Iterator[bytes]:
    """Every file of the archive."""
    for path in place.catalog.parent.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


def shown(found: list[DueRemoval]) -> list[tuple[str, str, int]]:
    """Table, what and rows."""
    return sorted((each.table, each.what, each.rows) for each in found)


def test_a_dry_run_says_what_would_go_and_changes_nothing(place: LakePaths) -> None:
    """By table and class, with the first day; nothing by default.

    A day is over when it is over in UTC: what came at noon of the fourth is a day old on the sixth, not on the fifth.
    """
    with reading(place) as con:
        kept = due(con, RetentionPolicy(), today=LATER.date())
        found = due(con, RetentionPolicy(content_days=15), today=LATER.date())
        days = [due(con, RetentionPolicy(content_days=1), today=date(2026, 3, day)) for day in (5, 6)]

    assert [0, 3] == [len(each) for each in days]
    assert [("compactions", "words", 1), ("profiles", "words", 1), ("turns", "words", 3)] == shown(found)
    assert ({date(2026, 3, 4)}, []) == ({each.oldest for each in found}, kept)
    assert [(3,)] == asked(place, WITH_NEEDLE)


def test_words_go_and_figures_stay(place: LakePaths) -> None:
    """A turn without its text counts, says how long it was, and can be folded; no byte is left; the proof says so."""
    assert [("compactions", "words", 1), ("profiles", "words", 1), ("turns", "words", 3)] == shown(
        applied(place, RetentionPolicy(content_days=15))
    )

    assert [("", 17)] * 3 + [("your zebra 3", 12), ("your zebra 4", 12)] == asked(
        place, "SELECT content, content_bytes FROM turns ORDER BY turn"
    )
    assert [("", [], 400)] == asked(place, "SELECT summary, key_topics, bytes_before FROM compactions")
    assert [(2,)] == asked(place, "SELECT count(*) FROM risk_points")
    assert [("turns", "content", "words", date(2026, 3, 19), 3, "p-7")] == asked(
        place,
        "SELECT table_name, privacy, what, before, rows, policy_version FROM raw.retained WHERE table_name = 'turns'",
    )
    with reading(place) as con:
        values = [row.value for row in archived_inputs(con, f"{PREFIX}.turns.v1")]
    assert 5 == len(values)
    assert b'"content":""' in values[0]
    with closing(LakeWriter(place)) as writer:
        maintain(writer, now=LATER, keep_replaced=timedelta(0), everything=True)
    assert [] == [found for found in bytes_of(place) if NEEDLE.encode() in found]


def test_rows_that_name_somebody_go_and_are_accounted_for(place: LakePaths) -> None:
    """Every offset is a row or a noted one, as after an erasure."""
    assert [("compactions", "rows", 1), ("profiles", "rows", 1), ("risk_points", "rows", 2), ("turns", "rows", 3)] == (
        shown(applied(place, RetentionPolicy(identified_days=15)))
    )

    with reading(place) as con:
        checked = verify(con, prefix=PREFIX, now=LATER)
    assert [] == checked.findings
    assert [(3, 4)] == asked(place, "SELECT min(turn), max(turn) FROM turns")
    assert [(0, 2)] == asked(
        place, "SELECT first_offset, last_offset FROM raw.skipped WHERE reason = 'aged' AND topic LIKE '%turns%'"
    )


def test_rows_that_go_are_not_emptied_first(place: LakePaths) -> None:
    """Two rules, one proof for each row; a second run finds nothing, and writes none."""
    policy = RetentionPolicy(content_days=15, identified_days=15)

    assert {"rows"} == {each.what for each in applied(place, policy)}
    assert ([], [(4,)]) == (applied(place, policy), asked(place, "SELECT count(*) FROM raw.retained"))
