"""What the documents name exists: files, commands, metrics and tests do not drift from the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.cli import COMMANDS, command_names
from models.metrics import METRICS

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("*/README.md"),
        *ROOT.glob("deploy/*.md"),
        *ROOT.glob("deploy/*/README.md"),
        *ROOT.glob("deploy/models/*.md"),
        *ROOT.glob("deploy/decisions/*.md"),
    ]
)
PATH_IN_BACKTICKS = re.compile(r"`((?:models|streams|jobs|tests|deploy|\.ci)/[\w./-]+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"turntide ([a-z]+)")
GROUPED = re.compile(r"turntide ((?:analyse|ops|lab) [a-z]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_and_commands_exist(document: Path) -> None:
    """Each path in backticks, each relative link and each command is there."""
    text = document.read_text()
    paths = [ROOT / name for name in PATH_IN_BACKTICKS.findall(text)]
    links = [document.parent / name for name in LINK.findall(text)]

    assert [str(path) for path in [*paths, *links] if not path.exists()] == []
    assert set(COMMAND.findall(text)) - set(command_names()) == set()
    assert set(GROUPED.findall(text)) - {entry.path for entry in COMMANDS} == set()


def test_every_metric_is_exported_by_some_role() -> None:
    """A metric of the catalogue that nothing sets is a promise that nobody keeps."""
    catalogue = ROOT / "models" / "metrics"
    exporting = [
        path for room in ("models", "streams") for path in (ROOT / room).rglob("*.py") if catalogue not in path.parents
    ]
    code = "".join(path.read_text() for path in exporting)

    assert [metric.name for metric in METRICS if f'"{metric.name}"' not in code] == []
