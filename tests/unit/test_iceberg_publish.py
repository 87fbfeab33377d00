"""The archive as Iceberg tables: the same rows, each once, only what is new, and what was erased is gone."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from models.errors import ConfigurationError
from models.events.topics import PROFILES
from models.policy.archive import RetentionPolicy
from streams.archive.erasing import erase
from streams.archive.retention import retain
from streams.archive.schema import RAW, TABLES
from tests.support.iceberg_tables import Archive
from tests.support.lake_records import NOW, buffer_of, profile, turn
from tests.support.subjects import of_session

CANARY = "canaryfeathers"
_CANARIES = of_session(f"s-{CANARY}")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An archive of its own, small files at once too many."""
    archive = Archive(tmp_path)
    yield archive
    archive.writer.close()


def test_an_empty_archive_makes_empty_tables(archive: Archive) -> None:
    """A query of Spark finds the table before the first row came; nothing is committed to it."""
    done = archive.publish()

    assert {(0, None)} == {(each.rows, each.snapshot_id) for each in done.values()}
    assert set(TABLES) == set(done)
    assert archive.turns() == []


def test_repeats_are_shown_once_as_the_views_do(archive: Archive) -> None:
    """Within a run and across runs; of turns by session and turn, of outputs by id, of risk points by turn."""
    archive.writer.land(buffer_of([turn(0), turn(1), turn(0, content="again")]), now=NOW)
    archive.writer.land(buffer_of([profile("p-1", turns=2), profile("p-1", turns=2)], topic=PROFILES), now=NOW)
    archive.publish("turns", "profiles", "risk_points")
    archive.writer.land(buffer_of([turn(1, content="again"), turn(2)], first=3, expected=3), now=NOW)
    archive.writer.land(
        buffer_of([profile("p-1", turns=2), profile("p-2", turns=3)], topic=PROFILES, first=2, expected=2), now=NOW
    )
    archive.publish("turns", "profiles", "risk_points")

    views = {"turns": "turns", "profiles": "profile_history", "risk_points": "risk_points"}
    assert {name: [] for name in views} == {name: archive.differing(name, view) for name, view in views.items()}
    assert archive.read("turns").num_rows == 3


def test_an_erased_first_shows_its_repeat(archive: Archive) -> None:
    """The turn that another user repeated is that user's once the first is forgotten, as the view has it."""
    mine = turn(0, content="mine")
    archive.writer.land(buffer_of([mine, turn(1), replace(mine, user_id="u-2", content="theirs")]), now=NOW)
    archive.publish("turns")
    with archive.writer.transaction() as con:
        con.execute(f"DELETE FROM {RAW}.turns WHERE kafka_offset = 0")  # noqa: S608
    archive.writer.land(buffer_of([turn(0, content="late")], first=3, expected=3), now=NOW)

    done = archive.publish("turns")["turns"]

    assert (done.rows_added, done.rows_deleted) == (1, 1)
    assert archive.differing("turns", "turns") == []
    assert {"theirs", "what about 1?"} == set(archive.read("turns")["content"].to_pylist())


def test_what_was_erased_before_it_was_published_never_comes(archive: Archive) -> None:
    """Its offsets are passed over, and the rows after it are published."""
    archive.writer.land(buffer_of([turn(0, session_id=f"s-{CANARY}"), turn(0)]), now=NOW)
    erase(archive.writer, _CANARIES, now=NOW)

    archive.publish("turns")

    assert archive.turns() == [("s-1", 0)]
    assert archive.holding(CANARY) == []


def test_words_that_grew_too_old_go(archive: Archive) -> None:
    """Retention empties them in place; the rows stay, later days as they are, earlier snapshots do not."""
    archive.writer.land(buffer_of([turn(0, content=CANARY), turn(0, content="again")]), now=NOW)
    archive.publish("turns")
    before = archive.holding(CANARY)
    retain(archive.writer, RetentionPolicy(content_days=1), now=NOW + timedelta(days=9), policy_version="1")

    done = archive.publish("turns")["turns"]
    idle = archive.publish("turns")["turns"]

    assert before
    assert archive.holding(CANARY) == []
    assert (done.rows, done.rows_deleted, done.days_rewritten) == (1, 0, 1)
    assert (idle.days_rewritten, idle.snapshot_id) == (0, done.snapshot_id)
    assert archive.differing("turns", "turns") == []


def test_old_snapshots_go_after_their_time(archive: Archive) -> None:
    """Running readers keep theirs for a while; then its files go, while the rows stay."""
    for n in range(3):
        archive.writer.land(buffer_of([turn(n)], first=n, expected=n or None), now=NOW)
        archive.publish("turns")
    kept = len(archive.table("turns").snapshots())

    archive.publish("turns", now=NOW + timedelta(days=3_650))

    assert kept == 3
    assert len(archive.table("turns").snapshots()) == 1
    assert archive.turns() == [("s-1", 0), ("s-1", 1), ("s-1", 2)]
    lists = list((archive.tables / "warehouse").rglob("turns/metadata/snap-*.avro"))
    assert len(lists) == 1


def test_a_day_of_many_small_files_is_written_anew(tmp_path: Path) -> None:
    """Publishing often does not make a file for each time for ever; no row changes."""
    archive = Archive(tmp_path, small_files_per_day=2)
    for n in range(4):
        batch = buffer_of([turn(n), turn(0, content="again")], first=2 * n, expected=2 * n or None)
        archive.writer.land(batch, now=NOW)
        last = archive.publish("turns")["turns"]

    assert len(list(archive.table("turns").scan().plan_files())) == 1
    assert (last.days_rewritten, last.rows_added, last.rows_deleted) == (1, 1, 0)
    assert archive.differing("turns", "turns") == []
    archive.writer.close()


def test_a_large_day_is_written_in_bounded_files(tmp_path: Path) -> None:
    """Memory is that of a file, not of a day."""
    archive = Archive(tmp_path, file_bytes=1024)
    archive.writer.land(buffer_of([turn(n, content="word " * 20) for n in range(5_000)]), now=NOW)

    archive.publish("turns")

    assert len(list(archive.table("turns").scan().plan_files())) > 1
    assert archive.differing("turns") == []
    archive.writer.close()


def test_another_archive_is_refused(archive: Archive, tmp_path: Path) -> None:
    """One that stands further back would be passed over without a word."""
    archive.writer.land(buffer_of([turn(0), turn(1)]), now=NOW)
    archive.publish("turns")
    other = Archive(tmp_path / "other", uri=f"sqlite:///{archive.tables / 'catalog.sqlite'}")
    other.writer.land(buffer_of([turn(0)]), now=NOW)

    with pytest.raises(ConfigurationError, match="published from another archive"):
        other.publish("turns")
    other.writer.close()


def test_a_foreign_compaction_is_no_loss(archive: Archive) -> None:
    """Others rewrite files in snapshots without our marks; an own table that nobody published is left alone."""
    archive.writer.land(buffer_of([turn(0), turn(1)]), now=NOW)
    archive.publish("turns")
    table = archive.table("turns")
    table.overwrite(table.scan().to_arrow())
    archive.writer.land(buffer_of([turn(2)], first=2, expected=2), now=NOW)
    archive.publish("turns")

    assert archive.differing("turns") == []

    archive.publish("facts")
    table = archive.table("facts")
    table.append(table.scan().to_arrow())
    with pytest.raises(ConfigurationError, match="drop the table"):
        archive.publish("facts")
