"""Every fault of the matrix has a test that carries its id, and the page names just those, with commands that exist."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from jobs.cli import command_names

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "deploy" / "fault-matrix.md"
IDS = [f"F{n}" for n in range(1, 16)]
MARK = re.compile(r"""pytest\.mark\.fault\("(F\d+)"\)""")
ROW = re.compile(r"^\| (F\d+) \|(.+)\|$", re.MULTILINE)
PATH = re.compile(r"`(tests/[\w/]+\.py)`")
COMMAND = re.compile(r"`turntide ([a-z]+)[^`]*`")


def marked() -> dict[str, set[str]]:
    """Fault → files with a test that is marked with it."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        if file != Path(__file__):
            for fault in MARK.findall(file.read_text()):
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
    assert set(PATH.findall(tests)) == marked()[fault]
    assert set(COMMAND.findall(command)) - set(command_names()) == set()
    assert COMMAND.findall(command)


def test_every_command_of_the_page_exists() -> None:
    """The runbook too."""
    assert set(COMMAND.findall(PAGE.read_text())) - set(command_names()) == set()
