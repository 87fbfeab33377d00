"""`turntide archive shell`: statements as they are typed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import duckdb
import pytest

from jobs.archive.shell import Session, split
from jobs.shared.output import OutputFormat, Printer
from streams.archive.catalog import LAKE, open_reader
from streams.archive.writer import LakeWriter
from tests.support.lake_records import NOW, buffer_of, paths, turn


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


def test_statement_may_span_lines_and_the_last_needs_no_semicolon(typed: Typed) -> None:
    """As from a file."""
    assert ["n", "2", "1", "1"] == typed.run("SELECT count(*) AS n\n", "FROM turns;\n", 'SELECT 1 AS "1"')


def test_semicolons_in_text_end_no_statement() -> None:
    """In quotes, names, dollars and comments; an open quote waits for its end."""
    text = """SELECT ';', "a;b", $$;$$ /* ; */ -- ;\n; SELECT 2; SELECT"""

    assert (["""SELECT ';', "a;b", $$;$$ /* ; */ -- ;\n""", " SELECT 2"], " SELECT") == split(text)
    assert ([], "SELECT 'a; b") == split("SELECT 'a; b")


def test_first_failure_ends_a_script(typed: Typed) -> None:
    """What follows may rest on it."""
    shown = typed.run("SELECT 1 AS a; SELECT nothing; SELECT 2 AS b;\n")

    assert (["a", "1"], True) == (shown, typed.session.failed)
    assert "the archive's engine says" in typed.beside.getvalue()


def test_views_and_columns_are_shown(typed: Typed) -> None:
    """With their meanings."""
    shown = typed.run(".tables\n", ".schema topic_turns\n", ".nonsense\n", ".quit\n", "SELECT 1;\n")

    assert 'turns,"Every turn once, as it was said: the first by log order where one came twice."' in shown
    assert "topic_id,VARCHAR,,Topic that the turn belongs to.,identifier" in shown
    assert "no such command: .nonsense" in typed.beside.getvalue()
    assert "1" not in shown


def test_earlier_versions_can_be_asked(typed: Typed) -> None:
    """Time travel on the tables, as .help says."""
    versions = f"SELECT max(snapshot_id) - 1 FROM ducklake_snapshots('{LAKE}')"  # noqa: S608
    earlier = typed.session._con.execute(versions).fetchall()[0][0]

    assert ["n", "1"] == typed.run(f"SELECT count(*) AS n FROM raw.turns AT (VERSION => {earlier});")  # noqa: S608


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


@pytest.mark.parametrize("word", [".quit", ".exit", "quit", "exit"])
def test_leaving_by_any_shells_word(typed: Typed, word: str) -> None:
    """What follows is not run."""
    assert ["1", "1"] == typed.run("SELECT 1;", word, "SELECT 2;")
