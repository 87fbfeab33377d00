"""The command line as a whole: help, failures in one line, and what commands print for people and programs."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobs.cli import COMMANDS, CommandEntry, app
from jobs.shared.output import OutputFormat, Printer, form_of
from models.errors import ConfigurationError
from models.events.topics import TURNS
from streams.archive.catalog import paths_of
from streams.archive.writer import LakeWriter
from streams.settings import load_settings
from tests.support.command_line import refused, turntide
from tests.support.golden_text import assert_text
from tests.support.lake_records import NOW, PREFIX, buffer_of, turn

_TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize("form", OutputFormat)
def test_results_in_every_form(form: OutputFormat) -> None:
    """Rows, none, columns of one name, a record; beside them an error, and what is for people only.

    JSON keeps types: numbers, null, nested values, times in UTC, bytes as base64. CSV quotes what needs it.
    """
    stream, beside = io.StringIO(), io.StringIO()
    output = Printer(form, stream=stream, beside=beside)
    odd = {"a": 'x,"y"\nz', "b": True, "c": [{"d": 0.5}], "e": _TIME, "f": b"\x00\xff", "g": None}
    output.rows("rows", [odd, {"a": 2}])
    output.rows("none", [])
    output.table("", ["id", "id"], [(1, 2)])
    output.record({"name": "x", "at": _TIME})
    output.error(ConfigurationError("what, where\x1b, do this"))
    output.message("for people only")

    assert_text(f"output-{form}", f"{stream.getvalue()}--- beside\n{beside.getvalue()}")


@pytest.mark.parametrize("text", ["\x1b[2J\x1b]0;title\x07", "a\rb", "\x9b31m", "[bold]x[/bold]", ":smile:"])
def test_a_turn_cannot_steer_the_terminal(text: str) -> None:
    """Escape sequences are shown; rich's markup is not interpreted."""
    stream = io.StringIO()
    output = Printer(OutputFormat.TABLE, stream=stream, beside=io.StringIO())
    output.rows("t", [{"content": text}])
    output.record({"content": text})

    assert {c for c in stream.getvalue() if not c.isprintable()} == {"\n"}
    if text.isprintable():
        assert stream.getvalue().count(text) == 2


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


_RUNNER = CliRunner()
_HEAVY = ("altair", "duckdb", "mcp", "polars", "qdrant_edge", "scipy")


def command_line(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as its users do."""
    return subprocess.run(  # noqa: S603 - our own command line
        [sys.executable, "-m", "jobs.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def imported(code: str, *modules: str) -> str:
    """Which of the modules a process has after the code, and what it complains of."""
    check = f"import sys\n{code}\nprint(sorted({set(modules)} & set(sys.modules)))\n"
    done = subprocess.run(  # noqa: S603 - our own check
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_help_lists_commands_without_importing_them() -> None:
    """Top-level help and version must not wait for Kafka clients, databases or settings."""
    check = (
        "import typer.testing, jobs.cli\n"
        "result = typer.testing.CliRunner().invoke(jobs.cli.app, ['--help'])\n"
        "assert all(each.path in result.stdout for each in jobs.cli.COMMANDS if ' ' not in each.path), result.stdout"
    )

    assert imported(check, "aiokafka", "numpy", "pydantic_settings", "faust", *_HEAVY) == "[]\n"


def test_a_role_starts_without_what_others_need() -> None:
    """Folding and serving load no database, no charts, and no tools of assistants before they are asked."""
    roles = "sessions", "memory", "enrich", "index", "gateway"
    check = "\n".join(f"import streams.roles.{role}" for role in roles)
    check += "\nfrom streams.api.mcp.endpoint import McpEndpoint\nMcpEndpoint()"

    assert imported(check, *_HEAVY) == "[]\n"


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.path)
def test_every_command_loads_and_has_help(entry: CommandEntry) -> None:
    """The table names what there is; each shows examples or its commands, under the name of earlier releases too."""
    result, before = (_RUNNER.invoke(app, [*words, "--help"]) for words in (entry.path.split(), [entry.alias]))

    assert result.exit_code == 0, result.output
    assert "Example" in result.stdout or "Commands" in result.stdout
    assert [line for line in before.stdout.splitlines() if "Usage" not in line] == [
        line for line in result.stdout.splitlines() if "Usage" not in line
    ]


def test_first_page_is_short() -> None:
    """Names of earlier releases work and are not listed."""
    page = _RUNNER.invoke(app, ["--help"]).stdout
    commands = re.findall(r"^│ ([a-z]+) ", page.partition("Commands")[2], re.MULTILINE)

    assert commands == [entry.path for entry in COMMANDS if " " not in entry.path]
    assert len(commands) <= 15


def test_version() -> None:
    """One line with the distribution's version."""
    done = command_line("--version")

    assert (done.returncode, done.stdout.split()[0]) == (0, "turntide")


@pytest.mark.parametrize(
    ("arguments", "variable", "told"),
    [
        ("topics plan", ("TURNTIDE_HTTP__SESSIONS_PORT", "many"), "error: settings are wrong: http.sessions_port"),
        ("topics plan", ("TURNTIDE_KAFKA", "127.0.0.1:9"), "error: Kafka at 127.0.0.1:9 does not answer"),
        ("produce x.jsonl --rate 1 --speedup 2", ("TURNTIDE_KAFKA", ""), "--rate and --speedup"),
        ("produce no-such-file.jsonl", ("TURNTIDE_KAFKA", ""), "no-such-file.jsonl"),
        ("topic", ("TURNTIDE_KAFKA", ""), "topics"),
    ],
)
def test_expected_failures_are_told(arguments: str, variable: tuple[str, str], told: str) -> None:
    """What is wrong and what to do, exit code 2; of ours one line, without what client libraries say beside it."""
    done = command_line(*arguments.split(), **dict([variable]))

    assert (done.returncode, done.stdout, told in done.stderr) == (2, "", True)
    assert not told.startswith("error") or len(done.stderr.splitlines()) == 1
