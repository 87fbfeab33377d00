"""What commands print, for people and for programs; and `turntide query` over an archive."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from jobs.shared.output import OutputFormat, Printer, form_of
from models.errors import ConfigurationError
from models.events.topics import TURNS
from streams.archive.catalog import paths_of
from streams.archive.writer import LakeWriter
from streams.settings import load_settings
from tests.support.command_line import refused, turntide
from tests.support.lake_records import NOW, PREFIX, buffer_of, turn

_TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))


def printed(form: OutputFormat) -> tuple[Printer, io.StringIO, io.StringIO]:
    """An output with both its streams."""
    stream, beside = io.StringIO(), io.StringIO()
    return Printer(form, stream=stream, beside=beside), stream, beside


def test_json_rows_are_one_array() -> None:
    """Types survive: numbers, null, nested values, times in UTC, bytes as base64."""
    output, stream, _ = printed(OutputFormat.JSON)

    output.rows("t", [{"a": 1, "b": None, "c": [{"d": 0.5}], "e": _TIME, "f": b"\x00\xff"}, {"a": 2}])

    assert json.loads(stream.getvalue()) == [
        {"a": 1, "b": None, "c": [{"d": 0.5}], "e": "2026-01-02T02:04:05Z", "f": "AP8="},
        {"a": 2, "b": None, "c": None, "e": None, "f": None},
    ]


def test_no_rows_are_an_empty_array_and_an_empty_table() -> None:
    """Programs get valid JSON, people no lonely header."""
    as_json, json_stream, _ = printed(OutputFormat.JSON)
    as_table, table_stream, _ = printed(OutputFormat.TABLE)

    as_json.rows("t", [])
    as_table.rows("t", [])

    assert (json_stream.getvalue(), table_stream.getvalue()) == ("[]\n", "")


def test_csv_can_be_read_back() -> None:
    """Commas, quotes and line breaks in values."""
    output, stream, _ = printed(OutputFormat.CSV)

    output.rows("t", [{"a": 'x,"y"\nz', "b": True, "c": None}])

    assert list(csv.reader(io.StringIO(stream.getvalue()))) == [["a", "b", "c"], ['x,"y"\nz', "true", ""]]


def test_columns_of_one_name_are_told_apart() -> None:
    """A join gives two of them; JSON objects would lose one."""
    output, stream, _ = printed(OutputFormat.JSON)

    output.table("", ["id", "id"], [(1, 2)])

    assert json.loads(stream.getvalue()) == [{"id": 1, "id_2": 2}]


@pytest.mark.parametrize("text", ["\x1b[2J\x1b]0;title\x07", "a\rb", "\x9b31m", "[bold]x[/bold]", ":smile:"])
def test_a_turn_cannot_steer_the_terminal(text: str) -> None:
    """Escape sequences are shown; rich's markup is not interpreted."""
    output, stream, _ = printed(OutputFormat.TABLE)

    output.rows("t", [{"content": text}])
    output.record({"content": text})

    assert {c for c in stream.getvalue() if not c.isprintable()} == {"\n"}
    if text.isprintable():
        assert stream.getvalue().count(text) == 2


def test_record_is_one_object_or_lines() -> None:
    """The same fields in every form."""
    fields = {"name": "x", "at": _TIME}
    as_json, json_stream, _ = printed(OutputFormat.JSON)
    as_table, table_stream, _ = printed(OutputFormat.TABLE)
    as_csv, csv_stream, _ = printed(OutputFormat.CSV)

    for output in (as_json, as_table, as_csv):
        output.record(fields)

    assert json.loads(json_stream.getvalue()) == {"name": "x", "at": "2026-01-02T02:04:05Z"}
    assert table_stream.getvalue().split() == ["name", "x", "at", "2026-01-02T02:04:05Z"]
    assert csv_stream.getvalue() == "name,at\nx,2026-01-02T02:04:05Z\n"


def test_errors_go_beside_the_result() -> None:
    """A pipe gets the result alone, a program an object it can read."""
    as_json, json_stream, json_beside = printed(OutputFormat.JSON)
    as_table, _, table_beside = printed(OutputFormat.TABLE)
    error = ConfigurationError("what, where\x1b, do this")

    as_json.error(error)
    as_table.error(error)
    as_json.message("for people only")

    assert json_stream.getvalue() == ""
    assert json.loads(json_beside.getvalue()) == {
        "error": {"type": "ConfigurationError", "message": "what, where\x1b, do this"}
    }
    assert table_beside.getvalue() == "error: what, where\u241b, do this\n"


@pytest.mark.parametrize(
    ("arguments", "form"),
    [
        (["query", "x", "--output", "json"], OutputFormat.JSON),
        (["query", "--output=csv"], OutputFormat.CSV),
        (["query", "--output"], OutputFormat.TABLE),
        (["query", "--output", "bogus"], OutputFormat.TABLE),
        ([], OutputFormat.TABLE),
    ],
)
def test_form_of_a_command_line(arguments: list[str], form: OutputFormat) -> None:
    """Errors before the options are read are printed in the form asked for."""
    assert form_of(arguments) is form


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LakeWriter]:
    """An archive with 150 turns where the commands look for it; its writer stays open, as in production."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TURNTIDE_TOPIC_PREFIX", PREFIX)
    writer = LakeWriter(paths_of(load_settings()))
    writer.land(buffer_of([turn(n) for n in range(150)]), now=datetime.now(UTC))
    yield writer
    writer.close()


@pytest.mark.usefixtures("archive")
def test_query_prints_every_form() -> None:
    """While the writer has the archive open; a table is cut, programs get all rows."""
    as_json = turntide("query", "SELECT turn, timestamp FROM turns ORDER BY turn", "--output", "json")
    as_csv = turntide("query", "SELECT turn FROM turns", "--output", "csv", "--limit", "2")
    as_table = turntide("query", "SELECT turn FROM turns")

    rows = json.loads(as_json.stdout)
    assert (len(rows), rows[1]) == (150, {"turn": 1, "timestamp": (NOW + timedelta(seconds=1)).isoformat()[:-6] + "Z"})
    assert len(as_csv.stdout.splitlines()) == 3
    assert "the first 100 rows; --limit shows more" in as_table.stderr


@pytest.mark.usefixtures("archive")
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT nothing FROM turns", "nothing"),
        ("SELECT 1 FROM nowhere", "nowhere"),
        ("DELETE FROM raw.turns", "read-only"),
        ("SELEC", "syntax error"),
    ],
)
def test_wrong_query_says_what_to_do(sql: str, said: str) -> None:
    """DuckDB's own words, since the statement is the caller's, and where to look."""
    told = refused("query", sql)

    assert said in told
    assert "SHOW TABLES" in told


def test_query_without_archive_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is created by asking."""
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path / "none"))

    assert "turntide worker archive" in refused("query", "SELECT 1")
    assert not (tmp_path / "none").exists()


def test_archive_commands(archive: LakeWriter) -> None:
    """Verify tells a whole archive from a damaged one by its exit code; status and merge print numbers."""
    whole = turntide("archive", "verify")
    archive.con.execute("DELETE FROM raw.turns WHERE kafka_offset = 5")
    damaged = turntide("archive", "verify", "--output", "json")
    status = turntide("archive", "status", "--output", "json")
    merged = turntide("archive", "merge", "--output", "json")

    place = f"{TURNS.full_name(PREFIX)}-0"
    assert whole.exit_code == 0
    assert damaged.exit_code == 1
    assert json.loads(damaged.stdout)["findings"] == [
        f"{place}: 1 offsets below 150 are neither archived nor skipped: 5-5"
    ]
    assert json.loads(status.stdout)["partitions"][0]["next_offset"] == 150
    assert set(json.loads(merged.stdout)) == {
        "merged_files",
        "deleted_files",
        "orphans",
        "expired_snapshots",
        "settled",
    }
