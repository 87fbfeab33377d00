"""`turntide query` and `turntide archive shell`: forms, files of one's own, and what they say when they cannot."""

import io
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from shutil import copytree
from typing import cast

import duckdb
import polars as pl
import pytest

from jobs.archive.query import QueryFormat, query
from jobs.archive.shell import Session, split
from jobs.shared.output import OutputFormat, Printer
from models.errors import ConfigurationError, StoreUnavailable
from streams.archive.catalog import open_reader
from streams.archive.maintenance import maintain
from streams.archive.writer import LakeWriter
from tests.support.data_files import data_file
from tests.support.lake_records import NOW, buffer_of, paths, turn


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with three turns of two apps, and its Parquet files settled."""
    folder = tmp_path_factory.mktemp("query")
    with closing(LakeWriter(paths(folder))) as writer:
        writer.land(buffer_of([turn(0), turn(1)]), now=NOW)
        writer.land(buffer_of([turn(2, app_id="bank")], first=2, expected=2), now=NOW)
        maintain(writer, now=NOW, keep_replaced=timedelta(0))
    return folder


@pytest.fixture
def archive(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with a copy of it."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    copytree(made, tmp_path / "archive")
    return tmp_path


@pytest.mark.parametrize(
    ("form", "read"),
    [("parquet", pl.read_parquet), ("csv", pl.read_csv), ("json", pl.read_json)],
)
def test_rows_are_written_to_a_file(archive: Path, form: QueryFormat, read: object) -> None:
    """In each form, with the values that were asked for; nothing else is left in the folder."""
    target = archive / "out" / "rows"
    target.parent.mkdir()
    query("SELECT turn, app_id FROM turns ORDER BY turn;", output=form, to=target)

    assert [(0, "support"), (1, "support"), (2, "bank")] == read(target).rows()  # type: ignore[operator]
    assert [target] == list(target.parent.iterdir())


@pytest.mark.usefixtures("archive")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT content::INTEGER FROM turns",
        "SELECT strptime(content, '%Y') FROM turns",
        "SELECT error(content) FROM turns",
    ],
)
def test_an_error_does_not_repeat_what_somebody_said(sql: str) -> None:
    """The engine's message quotes the value; errors are logged where conversations must not be."""
    with pytest.raises(ConfigurationError) as refused:
        query(sql)

    assert "what about" not in str(refused.value)


def test_failed_query_leaves_the_file_as_it_was(archive: Path) -> None:
    """It is written beside and renamed when it is whole; a terminal is no place for Parquet."""
    with pytest.raises(ConfigurationError, match="--to FILE"):
        query("FROM turns", output="parquet")
    target = archive / "rows.parquet"
    target.write_text("before", encoding="utf-8")

    with pytest.raises(ConfigurationError, match="could not compute a row"):
        query("SELECT content::INTEGER FROM turns", output="parquet", to=target)

    assert "before" == target.read_text(encoding="utf-8")
    assert [] == list(archive.glob(".rows*"))


@pytest.mark.usefixtures("archive")
def test_files_read_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A filter by app opens one of the two files; the rest of the view opens none once it is settled."""
    query("SELECT count(*) FROM raw.turns WHERE app = 'bank'", output="csv", explain=True)

    header, row = capsys.readouterr().out.splitlines()
    assert "table,files_read,of_files,filters" == header
    assert row.startswith("turns,1,2,")


@pytest.mark.parametrize("harm", ["cut", "gone"])
def test_damaged_file_is_named_with_the_way_around_it(
    archive: Path, harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which file, which day, and how to ask without it."""
    (file,) = (archive / "archive" / "data").glob("raw/turns/**/app=bank/*.parquet")
    if harm == "cut":
        file.write_bytes(file.read_bytes()[:40])
    else:
        file.unlink()

    with pytest.raises(StoreUnavailable, match="--without-damage") as told:
        query("SELECT max(content) FROM turns", output="csv")
    query("SELECT count(content) AS n FROM turns", output="csv", without_damage=True)

    assert file.name in str(told.value)
    assert "raw.turns of 2026-03-04" in str(told.value)
    assert "n\n0\n" in capsys.readouterr().out.replace("\r", "")


@pytest.mark.parametrize("sql", data_file("query")["statements"])
def test_statements_are_kept_to_the_archive(archive: Path, sql: str) -> None:
    """They neither read another file nor write one, also not in the archive's own folder; nor do they change it."""
    stranger = archive / "stranger.csv"
    stranger.write_text("a\n1\n", encoding="utf-8")
    before = set(archive.rglob("*"))

    with pytest.raises(ConfigurationError):
        query(sql.format(archive=archive, stranger=stranger))

    assert {path.name for path in set(archive.rglob("*")) - before} <= {"catalog.sqlite-shm", "catalog.sqlite-wal"}


def test_files_are_opened_when_it_is_asked_for(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A list of one's own is joined, and rows go to a file by a statement."""
    (archive / "wanted.csv").write_text("turn\n1\n", encoding="utf-8")
    wanted = f"FROM turns SEMI JOIN '{archive}/wanted.csv' USING (turn) SELECT app_id, turn"
    query(wanted, output="csv", files=True)

    assert capsys.readouterr().out.split() == ["app_id,turn", "support,1"]

    query(f"COPY (SELECT 1 AS a) TO '{archive}/out.csv'", files=True)

    assert (archive / "out.csv").read_text(encoding="utf-8").split() == ["a", "1"]


def test_no_cell_of_csv_is_run(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither by a spreadsheet nor by a terminal, printed as in a file; numbers stay what they are."""
    sql, target = "SELECT '=1+1' AS a, chr(27) || '[2J' AS b, -5 AS c, '-' AS \"=d\"", archive / "rows.csv"
    query(sql, output="csv")
    query(sql, output="csv", to=target)
    rows = [capsys.readouterr().out.splitlines()[1], target.read_text(encoding="utf-8").splitlines()[1]]

    assert rows == ["'=1+1,␛[2J,-5,'-"] * 2


class Typed:
    """A session over a small archive, and what it printed."""

    def __init__(self, session: Session, shown: io.StringIO, beside: io.StringIO) -> None:
        self.session, self.shown, self.beside = session, shown, beside

    def run(self, *lines: str) -> list[str]:
        """The result's lines."""
        self.session.run_all(iter(lines))
        return self.shown.getvalue().splitlines()


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Typed]:
    """CSV out, two turns in the archive, landed one after the other."""
    with closing(LakeWriter(paths(tmp_path))) as writer:
        writer.land(buffer_of([turn(0)]), now=NOW)
        writer.land(buffer_of([turn(1)], first=1, expected=1), now=NOW)
    shown, beside = io.StringIO(), io.StringIO()
    with closing(open_reader(paths(tmp_path))) as con:
        yield Typed(Session(con, Printer(OutputFormat.CSV, stream=shown, beside=beside)), shown, beside)


def test_semicolons_in_text_end_no_statement() -> None:
    """In quotes, names, dollars and comments; an open quote waits for its end."""
    text = """SELECT ';', "a;b", $$;$$ /* ; */ -- ;\n; SELECT 2; SELECT"""

    assert (["""SELECT ';', "a;b", $$;$$ /* ; */ -- ;\n""", " SELECT 2"], " SELECT") == split(text)
    assert ([], "SELECT 'a; b") == split("SELECT 'a; b")


def test_first_failure_ends_a_script(typed: Typed) -> None:
    """What follows may rest on it. Statements may span lines, and the last needs no semicolon, as from a file."""
    assert ["n", "2", "1", "1"] == typed.run("SELECT count(*) AS n\n", "FROM turns;\n", 'SELECT 1 AS "1"')
    shown = typed.run("SELECT 1 AS a; SELECT nothing; SELECT 2 AS b;\n")

    assert (["a", "1"], True) == (shown[4:], typed.session.failed)
    assert "the archive's engine reports" in typed.beside.getvalue()


def test_views_and_columns_are_shown(typed: Typed) -> None:
    """With their meanings."""
    shown = typed.run(".tables\n", ".schema topic_turns\n", ".nonsense\n", ".quit\n", "SELECT 1;\n")

    assert any(line.startswith('turns,"Each turn once: the first by log order') for line in shown)
    assert "topic_id,VARCHAR,,Topic of the turn.,identifier" in shown
    assert "no such command: .nonsense" in typed.beside.getvalue()
    assert "1" not in shown


class Interrupted:
    """A connection whose statement somebody ends by Ctrl-C, as DuckDB tells it."""

    def __init__(self) -> None:
        self.ended = False

    def execute(self, _sql: str) -> None:
        """Raise what DuckDB raises."""
        raise RuntimeError("Query interrupted") from KeyboardInterrupt()

    def interrupt(self) -> None:
        """Without it the engine goes on, and closing waits for it."""
        self.ended = True


def test_ctrl_c_cancels_a_statement_and_ends_it_in_the_engine() -> None:
    """No failure of a script, no traceback; what was typed of it is gone."""
    con, beside = Interrupted(), io.StringIO()
    session = Session(cast("duckdb.DuckDBPyConnection", con), Printer(OutputFormat.TABLE, beside=beside))

    assert "" == session.take("", "SELECT count(*) FROM turns;")
    assert ("cancelled\n", True, False) == (beside.getvalue(), con.ended, session.failed)
