"""Landing rows, what readers see of them, and repeats that are written down."""

# ruff: noqa: S608 - tables and views are constants

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from msgspec.structs import replace

from models.erasure import ErasureSubject
from models.errors import ConfigurationError, Fenced, StoreUnavailable
from models.events import AlertStatus
from models.events.topics import ALERTS, COMPACTIONS, PROFILES, TURNS, WINDOWS
from models.policy.archive import RetentionPolicy
from streams.archive import catalog
from streams.archive.catalog import open_reader, reading
from streams.archive.deduplication import deduplicate
from streams.archive.erasing import erase
from streams.archive.maintenance import maintain
from streams.archive.retention import retain
from streams.archive.schema import RAW
from streams.archive.verify import verify
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, PREFIX, alert, app_window, buffer_of, copied, paths, profile, segment, turn

_TURNS = TopicPartition(TURNS.full_name(PREFIX), 0)


def ask(writer: LakeWriter, sql: str) -> list[tuple[Any, ...]]:
    """Ask the views and tables."""
    return writer.con.execute(sql).fetchall()


@pytest.mark.usefixtures("archives_made_anew")
def test_files_lie_in_folders_by_day_and_app(writer: LakeWriter) -> None:
    """A plain Parquet glob finds them, sorted by session and time, compressed with zstd."""
    writer.land(buffer_of([turn(n, session_id=f"s-{9 - n}", app_id="a/b") for n in range(9)]), now=NOW)

    files = list(Path(writer.paths.data).glob("raw/turns/date=2026-03-04/app=a_b/*.parquet"))
    sessions = writer.con.execute(f"SELECT session_id FROM read_parquet('{files[0]}')").fetchall()
    codecs = writer.con.execute("SELECT DISTINCT compression FROM parquet_metadata(?)", [str(files[0])]).fetchall()

    assert len(files) == 1
    assert sorted(sessions) == sessions
    assert codecs == [("ZSTD",)]


def test_owner_that_was_overtaken_writes_nothing(writer: LakeWriter) -> None:
    """Not even the rows of partitions it still owns: the buffer is one transaction."""
    writer.land(buffer_of([turn(0)]), now=NOW)
    other = LakeWriter(writer.paths)
    other.land(buffer_of([turn(1)], first=1, expected=1), now=NOW)
    stale = buffer_of([turn(1), turn(2)], first=1, expected=1)
    stale.moves |= buffer_of([], partition=1).moves

    with pytest.raises(Fenced, match=r"t\.turns\.v1-0"):
        writer.land(stale, now=NOW)
    other.close()

    assert ask(writer, "SELECT kafka_offset FROM raw.turns ORDER BY 1") == [(0,), (1,)]
    assert {_TURNS} == writer.offsets().keys()


def test_repeated_outputs_are_seen_once(writer: LakeWriter) -> None:
    """After a crash the same ids come again; the latest state wins where there is one."""
    profiles = [profile("p1", turns=2), profile("p2", turns=3), profile("p1", turns=2), profile("p2", turns=3)]
    writer.land(buffer_of(profiles, topic=PROFILES), now=NOW)
    alerts = [alert("c1", AlertStatus.FIRING), alert("c1", AlertStatus.FIRING), alert("c2", AlertStatus.RESOLVED)]
    writer.land(buffer_of(alerts, topic=ALERTS), now=NOW)
    writer.land(buffer_of([segment("g1", "short"), segment("g2", "better")], topic=COMPACTIONS), now=NOW)

    assert ask(writer, "SELECT turn_count FROM profiles") == [(3,)]
    assert ask(writer, "SELECT count(*) FROM profile_history") == [(2,)]
    assert ask(writer, "SELECT turn FROM risk_points ORDER BY turn") == [(0,), (1,), (2,)]
    assert ask(writer, "SELECT status FROM alerts") == [("resolved",)]
    assert ask(writer, "SELECT count(*) FROM alert_changes") == [(2,)]
    assert ask(writer, "SELECT summary FROM segments") == [("better",)]
    assert ask(writer, "SELECT count(*) FROM compactions") == [(2,)]


def test_app_window_is_the_sum_of_its_partitions(writer: LakeWriter) -> None:
    """Each partition's share counts once, a repeat does not: while nothing is settled, and afterwards."""
    shares = [
        app_window("w0", source_partition=0, turns=2),
        app_window("w1", source_partition=1, turns=3),
        app_window("w0", source_partition=0, turns=2),
    ]
    writer.land(buffer_of(shares, topic=WINDOWS), now=NOW)

    for settled in (False, True):
        found = ask(writer, "SELECT turns, turns_per_minute, risk_sum, risk_mean, risk_max, partitions FROM windows")
        assert [(5, 1.0, 1.0, 0.2, pytest.approx(0.3), 2)] == found
        assert settled or deduplicate(writer) == 1


def test_turns_have_the_days_that_they_tell_of(writer: LakeWriter) -> None:
    """Seen from when they were said; of one that names no day none."""
    texts = ("We met yesterday.", "In May 2023 it rained.", "So what?")
    writer.land(buffer_of([turn(n, content=text) for n, text in enumerate(texts)]), now=NOW)
    told = ask(writer, "SELECT timestamp::DATE - told_from, told_from, told_to FROM turns ORDER BY turn")

    assert [each[0] for each in told][::2] == [1, None]
    assert told[1][1:] == (date(2023, 5, 1), date(2023, 5, 31))


def test_foreign_file_is_refused(tmp_path: Path) -> None:
    """A file that is no catalog is named, and stays as it was; one that is being created is no archive yet."""
    place = paths(tmp_path)
    place.catalog.write_bytes(b"no catalog at all" * 100)

    with pytest.raises(StoreUnavailable, match=r"catalog\.sqlite"):
        LakeWriter(place)

    assert place.catalog.read_bytes().startswith(b"no catalog")
    place.catalog.write_bytes(b"")
    with pytest.raises(ConfigurationError, match="no archive at"):
        open_reader(place)


def test_column_of_another_type_is_refused(writer: LakeWriter) -> None:
    """Better no start than rows that cannot be read."""
    writer.con.execute("ALTER TABLE raw.turns DROP COLUMN risk")
    writer.con.execute("ALTER TABLE raw.turns ADD COLUMN risk VARCHAR")
    writer.con.execute("COMMENT ON TABLE raw.offsets IS 'an older version'")
    writer.close()

    with pytest.raises(ConfigurationError, match=r"turns\.risk is VARCHAR"):
        LakeWriter(writer.paths)


def test_archive_can_be_moved(writer: LakeWriter, tmp_path: Path) -> None:
    """The settings say where the files are, not the catalog's memory of where they were."""
    writer.land(buffer_of([turn(0)]), now=NOW)
    writer.close()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (tmp_path / "data").rename(moved / "data")
    (tmp_path / "catalog.sqlite").rename(moved / "catalog.sqlite")

    con = open_reader(paths(moved))

    assert con.execute("SELECT content FROM turns").fetchall() == [("what about 0?",)]
    con.close()


def test_the_engine_leaves_memory_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes half of what its process may, and 4 GiB at the most; the rest it spills."""
    limits: list[str] = []
    for allowed_bytes in (1 * 1024**3, 64 * 1024**3):
        monkeypatch.setattr(catalog, "memory_limit_bytes", lambda allowed=allowed_bytes: allowed)
        with closing(LakeWriter(paths(tmp_path))) as writer:
            limits += writer.con.execute("SELECT current_setting('memory_limit')").fetchone() or ()

    assert limits == ["512.0 MiB", "4.0 GiB"]


LATER = NOW + timedelta(days=30)
_MINE, _THEIRS = turn(0, content="mine"), replace(turn(0, content="theirs"), user_id="u-2")
_FIRST_USER = ErasureSubject("user", "support", "u-1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A turn of one user, a month later the same one of another user and a third time, another turn; all settled."""
    folder = tmp_path_factory.mktemp("settled")
    with closing(LakeWriter(paths(folder))) as writer:
        _land(writer, [_MINE], at=NOW, first=0)
        _land(writer, [_THEIRS, replace(_THEIRS, content="again"), replace(_THEIRS, turn=1)], at=LATER, first=1)
        maintain(writer, now=LATER, keep_replaced=timedelta(0))
    return folder


@pytest.fixture
def settled(made: Path, tmp_path: Path) -> Iterator[LakeWriter]:
    """An archive of the test's own with these."""
    with closing(copied(made, tmp_path)) as writer:
        yield writer


def _land(writer: LakeWriter, turns: list[object], *, at: datetime, first: int) -> None:
    writer.land(buffer_of(turns, first=first, expected=first or None, received=at), now=at)


def _shown(writer: LakeWriter) -> list[tuple[int, str]]:
    with reading(writer.paths) as con:
        return con.execute("SELECT turn, content FROM turns ORDER BY ALL").fetchall()


def _written_down(writer: LakeWriter) -> list[tuple[int]]:
    return writer.con.execute(f"SELECT kafka_offset FROM {RAW}.repeats WHERE rule = 'turns' ORDER BY ALL").fetchall()


@pytest.mark.parametrize(
    "go",
    [
        lambda writer: erase(writer, _FIRST_USER, now=LATER),
        lambda writer: retain(writer, RetentionPolicy(identified_days=15), now=LATER, policy_version="1"),
    ],
    ids=["erased", "too old"],
)
def test_a_first_that_goes_shows_its_repeat(settled: LakeWriter, go: Callable[[LakeWriter], object]) -> None:
    """One of the two, and no byte of the first one's words."""
    go(settled)

    assert [(0, "theirs"), (1, "theirs")] == _shown(settled)
    assert [(2,)] == _written_down(settled)
    assert [] == verify(settled.con, prefix=PREFIX, now=LATER).findings


def test_what_lands_and_is_settled_afterwards_repeats_the_one_that_stands(settled: LakeWriter) -> None:
    """Marks and what is written down go together: the last repeat is left out before and after it is settled."""
    erase(settled, _FIRST_USER, now=LATER)
    _land(settled, [replace(_THEIRS, content="late")], at=LATER, first=4)
    behind_the_marks = _shown(settled)
    maintain(settled, now=LATER, keep_replaced=timedelta(0))

    assert [(0, "theirs"), (1, "theirs")] == behind_the_marks == _shown(settled)
    assert [(2,), (4,)] == _written_down(settled)


def test_an_erased_repeat_leaves_the_first(settled: LakeWriter) -> None:
    """Nothing of the other user is left, nor a note of it."""
    erase(settled, ErasureSubject("user", "support", "u-2"), now=LATER)

    assert [(0, "mine")] == _shown(settled)
    assert [] == _written_down(settled)
