"""The command line as a whole: quick help, examples everywhere, expected failures in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from jobs.cli import COMMANDS, CommandEntry, app

_RUNNER = CliRunner()


def turntide(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as its users do."""
    return subprocess.run(  # noqa: S603 - our own command line
        [sys.executable, "-m", "jobs.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_help_lists_commands_without_importing_them() -> None:
    """Top-level help and version must not wait for Kafka clients, databases or settings."""
    check = (
        "import sys, typer.testing, jobs.cli\n"
        "result = typer.testing.CliRunner().invoke(jobs.cli.app, ['--help'])\n"
        "assert all(each.path in result.stdout for each in jobs.cli.COMMANDS if ' ' not in each.path), result.stdout\n"
        "print(sorted({'aiokafka', 'duckdb', 'numpy', 'pydantic_settings', 'faust'} & set(sys.modules)))\n"
    )
    done = subprocess.run(  # noqa: S603 - our own check
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("[]\n", "")


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
    done = turntide("--version")

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
    done = turntide(*arguments.split(), **dict([variable]))

    assert (done.returncode, done.stdout, told in done.stderr) == (2, "", True)
    assert not told.startswith("error") or len(done.stderr.splitlines()) == 1
