"""Every row of the tables of patterns matches its example, by a word that finds it, and not its counterexample."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from models import language
from models.language.facts.vocabulary import WORDS
from models.text.tables import PatternRow, PatternTables
from models.text.words import words_of

OF_FACTS = ("orders", "identity", "limits", "likings")
"""Their patterns are matched from the start, whatever the case."""
OTHERS = (("mentions",), ("wordings", "decisions", "statements"), ("notable",), ("narrative",), ("days",))
FOUND_BY = {"mentions": 0, "user": 3, "assistant": 3}
"""Cell with the words that a table's rows are found by; elsewhere the first of statements."""

ROWS = [
    pytest.param(tables, table, row, file in OF_FACTS, id=f"{file}-{table}-{number}")
    for file, tables in (
        *((name, PatternTables(name, words=WORDS, flags=re.IGNORECASE)) for name in OF_FACTS),
        *((names[-1], PatternTables(*names, words=WORDS)) for names in OTHERS),
        ("features", PatternTables("features", room="text")),
        ("scorer", PatternTables("scorer", room="risk")),
    )
    for table in tables.names()
    for number, row in enumerate(tables.rows(table))
]


@pytest.mark.parametrize(("tables", "table", "row", "from_start"), ROWS)
def test_a_row_matches_its_example_alone(tables: PatternTables, table: str, row: PatternRow, from_start: bool) -> None:
    """So each row says what it is for, and what it must leave alone."""
    found = row.pattern.match if from_start else row.pattern.search

    assert found(row.matches) is not None
    assert found(row.differs) is None
    if table in FOUND_BY:
        words = {word.partition("_")[0] for word in tables.words(row.cells[FOUND_BY[table]])}
        assert not words.isdisjoint(words_of(row.matches.lower()))


def test_every_pattern_of_a_section_is_used_by_its_module() -> None:
    """A name that a module asks for and no file has would fail at its first use; one that nobody asks for is idle."""
    asked, held = set[str](), set[str]()
    for file in Path(language.__path__[0]).rglob("*.py"):
        code = file.read_text()
        if section := re.search(r'section\("(\w+)"\)', code):
            asked |= {f"{section[1]}.{name}" for name in re.findall(r"_RE\.([A-Z_]+)", code)}
    for file in Path(language.__path__[0], "data").glob("*_patterns.toml"):
        content = tomllib.loads(file.read_text())
        held |= {f"{section}.{name}" for section, patterns in content.items() for name in patterns}

    assert asked == held
