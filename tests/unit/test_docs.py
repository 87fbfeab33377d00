"""What the documents name exists: files, commands, metrics and tests; the fault matrix has a test for each fault."""

from __future__ import annotations

import doctest
import importlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

from jobs.cli import COMMANDS
from models.metrics import METRICS

ROOT = Path(__file__).parents[2]
NAMES = {entry.alias for entry in COMMANDS}
"""Whatever may follow `turntide`, names of earlier releases included."""
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
    assert set(COMMAND.findall(text)) - NAMES == set()
    assert set(GROUPED.findall(text)) - {entry.path for entry in COMMANDS} == set()


def test_every_metric_is_exported_by_some_role() -> None:
    """A metric of the catalogue that nothing sets is a promise that nobody keeps."""
    catalogue = ROOT / "models" / "metrics"
    exporting = [
        path for room in ("models", "streams") for path in (ROOT / room).rglob("*.py") if catalogue not in path.parents
    ]
    code = "".join(path.read_text() for path in exporting)

    assert [metric.name for metric in METRICS if f'"{metric.name}"' not in code] == []


PAGE = ROOT / "deploy" / "fault-matrix.md"
IDS = [f"F{n}" for n in range(1, 16)]
FAULT_MARK = re.compile(r"""pytest\.mark\.fault\("(F\d+)"\)""")
ROW = re.compile(r"^\| (F\d+) \|(.+)\|$", re.MULTILINE)
TEST_PATH = re.compile(r"`(tests/[\w/]+\.py)`")
COMMAND_SHOWN = re.compile(r"`turntide ([a-z]+)[^`]*`")


def marked() -> dict[str, set[str]]:
    """Fault → files with a test that is marked with it."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        if file != Path(__file__):
            for fault in FAULT_MARK.findall(file.read_text()):
                found[fault].add(str(file.relative_to(ROOT)))
    return found


def rows() -> dict[str, list[str]]:
    """Fault → cells of its row on the page: what happens, promise, tests, command."""
    return {fault: [cell.strip() for cell in cells.split(" | ")] for fault, cells in ROW.findall(PAGE.read_text())}


def test_no_other_faults_are_known() -> None:
    """Neither in the marks nor on the page."""
    assert set(IDS) == set(marked()) == set(rows())


@pytest.mark.parametrize("fault", IDS)
def test_each_fault_is_proven(fault: str) -> None:
    """Its row is whole, and names exactly the files whose tests are marked with it."""
    happens, promise, tests, command = rows()[fault]

    assert happens
    assert promise
    assert set(TEST_PATH.findall(tests)) == marked()[fault]
    assert COMMAND_SHOWN.findall(command)


WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for top in ("models", "streams", "jobs")
    for path in sorted((ROOT / top).rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_hold(module: str) -> None:
    """Every example of a module that has one."""
    actual = doctest.testmod(importlib.import_module(module))

    assert (0, True) == (actual.failed, actual.attempted > 0)
