"""The archive does the same wherever its catalog and its files are."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from aiokafka import TopicPartition
from pydantic import SecretStr

from models.erasure import ErasureSubject
from models.errors import ConfigurationError, Fenced, StoreUnavailable
from models.events.topics import TURNS
from streams.archive.catalog import METADATA, open_reader
from streams.archive.damage import damaged, foreign_files
from streams.archive.erasing import erase
from streams.archive.maintenance import FILES_TO_MERGE, maintain
from streams.archive.postgres import AdvisoryLock, vacuum
from streams.archive.verify import verify
from streams.archive.views.published import leave_damage_out
from streams.archive.writer import LakeWriter
from tests.support import made_archive
from tests.support.lake_places import Bucket, Database, Place, bucket, database, place
from tests.support.lake_records import NOW, PREFIX, buffer_of, land, turn
from tests.support.subjects import of_session, sessions

CANARY = "canaryfeathers"
_TURNS = TopicPartition(TURNS.full_name(PREFIX), 0)
_ROUNDS = [pytest.param(3, id="few"), pytest.param(16, marks=pytest.mark.slow, id="many")]
"""Landings beside a reader. With scans of the catalog on connections of their own most runs of 16 find a wrong read."""


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    """One PostgreSQL for all tests; each has a database of its own."""
    with database() as running:
        yield running


@pytest.fixture(scope="module")
def files() -> Iterator[Bucket]:
    """One S3 server for all tests; each has a prefix of its own."""
    with bucket() as running:
        yield running


@pytest.fixture(params=["sqlite-folder", "postgres-s3"])
def here(request: pytest.FixtureRequest, tmp_path: Path, server: Database, files: Bucket) -> Place:
    """Nothing, in each kind of catalog and of place for files."""
    return place(request.param, tmp_path, server, files)


@pytest.fixture
def writer(here: Place) -> Iterator[LakeWriter]:
    """An archive of its own."""
    writer = LakeWriter(here.paths)
    yield writer
    writer.close()


def paths_in_catalog(writer: LakeWriter) -> list[str]:
    """Files of the turns."""
    rows = writer.con.execute("SELECT data_file FROM ducklake_list_files('lake', 'turns', schema => 'raw')")
    return sorted(path for (path,) in rows.fetchall())


@pytest.mark.usefixtures("archives_made_anew")
def test_what_lands_is_read(writer: LakeWriter, here: Place) -> None:
    """By another connection, whole, where the settings say, and once: the compare-and-set of offsets holds."""
    buffer = buffer_of([turn(0), turn(1)])
    landed = writer.land(buffer, now=NOW)
    with pytest.raises(Fenced):
        writer.land(buffer, now=NOW)
    with closing(open_reader(here.paths)) as con:
        rows = con.execute("SELECT turn, content, date FROM raw.turns ORDER BY turn").fetchall()

    assert rows == [(0, "what about 0?", NOW.date()), (1, "what about 1?", NOW.date())]
    assert (landed["turns"].rows, landed["turns"].files, writer.offsets()[_TURNS].next) == (2, 1, 2)
    assert all(path.startswith(f"{here.paths.data}raw/turns/date=2026-03-04/") for path in paths_in_catalog(writer))


def test_no_archive_yet_is_said(here: Place) -> None:
    """As a sentence, not as what the engine says."""
    with pytest.raises(ConfigurationError, match="turntide worker archive"):
        open_reader(here.paths)


def test_two_writers_take_turns(writer: LakeWriter, here: Place) -> None:
    """Landing and merging at once: none fails, nothing is lost or doubled."""
    writers = [writer, LakeWriter(here.paths)]
    failures: list[Exception] = []

    def work(partition: int) -> None:
        try:
            for n in range(FILES_TO_MERGE):
                turns = [turn(n, session_id=f"s-{partition}")]
                buffer = buffer_of(turns, first=n, partition=partition, expected=n or None)
                writers[partition].land(buffer, now=NOW)
            maintain(writers[partition], now=NOW, keep_replaced=timedelta(hours=1), everything=True)
        except Exception as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(partition,)) for partition in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = verify(writer.con, prefix=PREFIX, now=NOW)
    rows = writer.con.execute("SELECT kafka_partition, count(*) FROM turns GROUP BY 1 ORDER BY 1").fetchall()
    writers[1].close()

    assert failures == []
    assert rows == [(0, FILES_TO_MERGE), (1, FILES_TO_MERGE)]
    assert found.findings == []
    assert len(paths_in_catalog(writer)) == 1


def test_merging_leaves_one_file_and_nothing_old(writer: LakeWriter, here: Place) -> None:
    """Replaced files are gone from where they were, though replaced after the time; past offsets from the catalog."""
    land(writer, range(FILES_TO_MERGE))
    old = paths_in_catalog(writer)

    done = maintain(writer, now=NOW, keep_replaced=timedelta(0))

    assert done.merged_files == FILES_TO_MERGE
    assert set(old).isdisjoint(here.files())
    assert len(paths_in_catalog(writer)) == 1
    assert verify(writer.con, prefix=PREFIX, now=NOW).findings == []
    assert writer.con.execute("SELECT count(*) FROM ducklake_snapshots('lake')").fetchall()[0][0] <= 3


def test_nothing_goes_before_its_time(writer: LakeWriter) -> None:
    """The catalog's times are compared as times."""
    land(writer, range(FILES_TO_MERGE))
    start = datetime.now(UTC)
    maintain(writer, now=start, keep_replaced=timedelta(days=1))

    kept = maintain(writer, now=start + timedelta(hours=1), keep_replaced=timedelta(hours=1))
    gone = maintain(writer, now=start + timedelta(hours=1), keep_replaced=timedelta(minutes=1))

    assert (kept.deleted_files, gone.deleted_files >= FILES_TO_MERGE) == (0, True)


@pytest.mark.parametrize("rounds", _ROUNDS)
def test_readers_do_not_notice_landings_and_merges(
    writer: LakeWriter, here: Place, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever moment a reader asks: rows and offsets of one moment, twice the same."""
    monkeypatch.setattr(duckdb, "connect", made_archive.connected)  # only threads of one engine can disagree
    done = threading.Event()
    wrong: list[object] = []
    asked: list[int] = []
    sql = (
        "SELECT (SELECT coalesce(max(next_offset), 0) FROM raw.offsets), count(*), count(DISTINCT kafka_offset), "
        "coalesce(max(kafka_offset) + 1, 0) FROM raw.turns"
    )

    def read() -> None:
        reader = open_reader(here.paths)
        while not done.is_set() or not asked:
            try:
                reader.execute("BEGIN")
                first, second = reader.execute(sql).fetchall()[0], reader.execute(sql).fetchall()[0]
                reader.execute("ROLLBACK")
            except Exception as error:  # noqa: BLE001 - shown by the test
                wrong.append(error)
                break
            if first != second or len(set(first)) != 1 or first[0] % 3:
                wrong.append((first, second))
            asked.append(first[0])
        reader.close()

    thread = threading.Thread(target=read)
    thread.start()
    for n in range(rounds):
        land(writer, range(3 * n, 3 * n + 3))
        maintain(writer, now=NOW, keep_replaced=timedelta(hours=1), everything=True)
    done.set()
    thread.join()

    assert wrong == []
    assert asked


def test_erased_bytes_are_nowhere(writer: LakeWriter, here: Place) -> None:
    """In no file, object, page of the catalog or name; what is others' stays."""
    for n in (0, 20):
        batch = [
            turn(k // 2) if k % 2 else turn(k // 2, session_id=f"s-{CANARY}", app_id=f"app-{CANARY}", content=CANARY)
            for k in range(n, n + 20)
        ]
        writer.land(buffer_of(batch, first=n, expected=n or None), now=NOW)
    maintain(writer, now=NOW, keep_replaced=timedelta(hours=1), everything=True)
    before = here.holding(CANARY)

    proof = erase(
        writer, ErasureSubject("app", f"app-{CANARY}", "", sessions(f"s-{CANARY}", app_id=f"app-{CANARY}")), now=NOW
    )

    assert any("base/" in name or "catalog" in name for name in before)
    assert here.holding(CANARY) == []
    assert [(store.store, store.removed) for store in proof if store.removed] == [("archive turns", 20)]
    assert {store.remaining for store in proof} == {0}
    assert writer.con.execute("SELECT count(*) FROM turns WHERE session_id = 's-1'").fetchall() == [(20,)]
    assert verify(writer.con, prefix=PREFIX, now=NOW).findings == []


def test_orphans_go_and_foreign_files_stay(writer: LakeWriter, here: Place) -> None:
    """What a killed writer left is told from what somebody put there by its name; not even an erasure removes that."""
    writer.land(buffer_of([turn(0)]), now=NOW)
    theirs = here.put("raw/turns/theirs.parquet", b"PAR1 of somebody else")
    ours = here.put("raw/turns/ducklake-01a2056f-1e78-7650-971a-19a9903ea37f.parquet", b"half a file")

    young = maintain(writer, now=NOW, keep_replaced=timedelta(0), everything=True)  # a landing may be under way
    done = maintain(writer, now=NOW + timedelta(days=9_000), keep_replaced=timedelta(0), everything=True)
    erase(writer, of_session("nobody"), now=NOW)

    assert (young.orphans, done.orphans) == (0, 1)
    assert foreign_files(writer.con) == [theirs]
    assert theirs in here.files()
    assert ours not in here.files()
    assert writer.con.execute("SELECT count(*) FROM turns").fetchall() == [(1,)]


def test_a_missing_file_is_named_and_the_rest_is_served(writer: LakeWriter, here: Place) -> None:
    """Which table, which day; without it the other days are read."""
    writer.land(buffer_of([turn(0)]), now=NOW)
    lost = paths_in_catalog(writer)[0]
    writer.con.execute("INSERT INTO raw.turns SELECT * REPLACE (DATE '2026-03-05' AS date, 1 AS turn) FROM raw.turns")
    here.remove(lost)
    with closing(open_reader(here.paths)) as con:
        ((found,), days) = damaged(con), leave_damage_out(con)
        rows = con.execute("SELECT turn, date FROM turns").fetchall()

    assert (found.table, found.date, found.path, found.what) == ("turns", NOW.date(), lost, "is missing")
    assert (days, rows) == ({NOW.date()}, [(1, date(2026, 3, 5))])


def test_a_wrong_password_is_told_and_not_shown(tmp_path: Path, server: Database, files: Bucket) -> None:
    """Neither the right nor the wrong one."""
    right = place("postgres-folder", tmp_path, server, files).paths
    assert right.postgres is not None
    wrong = right._replace(postgres=right.postgres._replace(password=SecretStr("sesame")))

    with pytest.raises(StoreUnavailable, match=r"archive\.catalog_password") as told:
        LakeWriter(wrong)

    assert "sesame" not in str(told.value)
    assert "sesame" not in repr(wrong)


@pytest.mark.parametrize("sql", ["FROM turns", f"FROM postgres_query('{METADATA}', 'TABLE pg_catalog.pg_namespace')"])
def test_a_writer_that_waits_does_not_keep_deleted_rows(
    sql: str, tmp_path: Path, server: Database, files: Bucket
) -> None:
    """Only another transaction does, at whatever it looks, and then it is said."""
    paths = place("postgres-folder", tmp_path, server, files).paths
    assert paths.postgres is not None
    with closing(LakeWriter(paths)) as writer:
        reader = open_reader(paths)
        reader.execute("BEGIN")
        reader.execute(sql).fetchall()
        land(writer, range(1))

    with AdvisoryLock(paths.postgres, timeout_s=1):
        busy = vacuum(paths.postgres, patience_ms=50)
        reader.execute("ROLLBACK")
        free = vacuum(paths.postgres, patience_ms=5_000)
    reader.close()

    assert "keeps deleted rows" in busy
    assert free == ""
