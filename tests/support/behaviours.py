"""Behaviours that the project's source documents name: the tests that show each, or the reason why it is not so.

The rows are data (`tests/data/behaviours.toml`), a test names those it shows (`@pytest.mark.behaviour("risk-01")`), and
`python -m tests.support.behaviours` makes `deploy/behaviours.md` of both. Marks are read, not imported.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from msgspec import Struct, convert

from tests.support.data_files import data_file

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "deploy" / "behaviours.md"
_TESTS = ("tests", "deploy/clients/python/tests")
_HEAD = """# What the source documents name, and what shows it

Each behaviour that the five documents behind Turntide and its card name: where it is, the tests that show it, and why
it is otherwise where it is: by default only, where a setting is named. Made of the tests' marks by `python -m
tests.support.behaviours`; a behaviour with neither a test nor a reason fails the suite.
"""


class Behaviour(Struct, frozen=True, forbid_unknown_fields=True):
    """What a document names.

    Attributes:
        what: In short.
        where: The file that does it.
        why: Where it is not as the document says: why.
        setting: With which it is as the document says, although it is not by default.
    """

    what: str
    where: str
    why: str = ""
    setting: str = ""


def behaviours() -> dict[str, dict[str, Behaviour]]:
    """By document, and by id."""
    return {
        document: {f"{document}-{number}": convert(row, Behaviour) for number, row in rows.items()}
        for document, rows in data_file("behaviours").items()
    }


def marked() -> dict[str, list[tuple[Path, str]]]:
    """By id, the tests that show a behaviour: file and name."""
    found: dict[str, list[tuple[Path, str]]] = defaultdict(list)
    for file in sorted(file for folder in _TESTS for file in (ROOT / folder).rglob("test_*.py")):
        text = file.read_text("utf-8")
        if "mark.behaviour(" not in text:
            continue
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.behaviour":
                    for shown in mark.args:
                        found[ast.literal_eval(shown)].append((file.relative_to(ROOT), node.name))
    return found


def page() -> str:
    """The page."""
    tests, lines = marked(), [_HEAD]
    for document, rows in behaviours().items():
        shown = sum(each in tests for each in rows)
        title = document if document == "card" else f"{document} memory"
        by_setting = sum(bool(row.setting) for row in rows.values())
        otherwise = sum(bool(row.why) for row in rows.values()) - by_setting
        counts = f"{shown} shown by tests, {by_setting} by a setting, {otherwise} otherwise"
        lines += [f"## {title.capitalize()}", "", f"{len(rows)} behaviours: {counts}.", ""]
        lines += ["| | behaviour | where | shown by | why otherwise |", "|---|---|---|---|---|"]
        for name, row in rows.items():
            links = ", ".join(f"[{test.removeprefix('test_')}](../{file})" for file, test in tests.get(name, ()))
            why = f"By default; not with `{row.setting}`. {row.why}" if row.setting else row.why
            cells = (name, row.what, f"[{row.where}](../{row.where})", links, why)
            lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def write() -> None:
    """Write the page anew."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    write()
