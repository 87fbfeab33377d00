"""Tables of patterns match their examples alone; retelling, contradiction, and what ordinary sentences say."""

import re
import tomllib
from pathlib import Path

import pytest

from models import language
from models.events import Role
from models.language.contradiction import conflicts, contradicting, denies, sentences_of
from models.language.facts.extraction import extract
from models.language.facts.vocabulary import WORDS
from models.language.retelling import retold
from models.policy.user import FactPolicy
from models.text.tables import PatternRow, PatternTables
from models.text.words import words_of
from tests.support.data_files import data_file

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
        tables = re.findall(r'^(_\w+) = PatternTables\((?:[^\n]|\n[ )])*?\)\.section\(\s*"(\w+)"', code, re.MULTILINE)
        for table, section in tables:
            asked |= {f"{section}.{name}" for name in re.findall(rf"\b{table}\.([A-Z_]+)", code)}
    for file in Path(language.__path__[0], "data").glob("*_patterns.toml"):
        content = tomllib.loads(file.read_text())
        held |= {f"{section}.{name}" for section, patterns in content.items() for name in patterns}

    assert asked == held


@pytest.mark.parametrize(
    ("role", "said", "told"), [(role, *pair) for role, pairs in data_file("retelling").items() for pair in pairs]
)
def test_what_is_said_is_told_of_who_said_it(role: str, said: str, told: str) -> None:
    """With a capital and a full stop, without greetings and thanks; an assistant's "you" is the user."""
    assert told == retold(said, Role(role))


TOLD = data_file("contradiction")


@pytest.mark.parametrize(("one", "other"), TOLD["conflicting"])
def test_other_values_of_the_same_conflict(one: str, other: str) -> None:
    """Whichever of the two is the newer."""
    assert (True, True) == (conflicts(one, other), conflicts(other, one))


@pytest.mark.parametrize(("one", "other"), TOLD["compatible"])
def test_near_misses_do_not_conflict(one: str, other: str) -> None:
    """More of the same, another thing, another time, or nothing at all."""
    assert (False, False) == (conflicts(one, other), conflicts(other, one))


@pytest.mark.parametrize(("content", "expected"), TOLD["denials"])
def test_a_denial_is_in_the_main_clause(content: str, expected: bool) -> None:
    """What is denied aside is no denial of what is decided."""
    assert expected == denies(content)


@pytest.mark.parametrize(("one", "other", "expected"), TOLD["opposites"])
def test_opposites_contradict_both_ways_round(one: str, other: str, expected: bool) -> None:
    """By what is denied and by other values, not by what people say of themselves."""
    assert (expected, expected) == (contradicting(one, other), contradicting(other, one))


def test_sentences_are_cut_at_stops_only() -> None:
    """Numbers and addresses stay whole; what holds no word is none."""
    text = "It costs 2.5 euros at shop.example. Good! ... Really?"

    assert ("It costs 2.5 euros at shop.example.", "Good!", "Really?") == sentences_of(text)


SENTENCES = tomllib.loads((Path(__file__).parent / "data" / "ordinary_sentences.toml").read_text("utf-8"))["sentences"]
MOST_FALSE = 2


def stored(sentence: str) -> set[str]:
    """Facts that are sure enough to be kept, as `category/key=value`."""
    found = extract(sentence).facts
    return {
        f"{each.category}/{each.key}={each.value}" for each in found if each.confidence >= FactPolicy().min_confidence
    }


def test_ordinary_sentences_leave_hardly_a_false_fact() -> None:
    """Forty of them, written before the patterns were looked at."""
    false = {fact: sentence for sentence, *true in SENTENCES for fact in stored(sentence) - set(true)}

    assert len(SENTENCES) == 40
    assert len(false) <= MOST_FALSE, false


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I like my coffee black", set()),
        ("I like black", {"preference/black=likes"}),
        ("I prefer go karts", set()),
        ("I prefer meetings after 2pm on weekdays", {"preference/meetings=after 2pm on weekdays"}),
        ("I don't like meetings before 9am", {"preference/meetings=dislikes before 9am"}),
        ("I like Indian food", {"preference/indian_food=likes"}),
        ("I prefer mint tea", {"preference/mint_tea=likes"}),
        ("I like wooden tables", {"preference/wooden_tables=likes"}),
        ("I prefer French films", {"preference/french_films=likes"}),
        ("I like open spaces", {"preference/open_spaces=likes"}),
        ("I prefer sublime views", {"preference/sublime_views=likes"}),
        ("I like free time", {"preference/free_time=likes"}),
        ("I use pounds of butter when I bake", set()),
        ("I prefer Go", {"preference/language=Go"}),
        ("I prefer Go and Rust for tools", {"preference/language=Go and Rust"}),
        ("I prefer tabs over spaces", {"preference/coding_style=tabs"}),
        ("I use black for formatting", {"preference/coding_style=black for formatting"}),
        ("I prefer tables", {"preference/response_format=tables"}),
        ("I use Sublime Text", {"preference/editor=Sublime"}),
        ("I prefer Pacific time", {"preference/timezone=Pacific time"}),
    ],
)
def test_a_name_counts_alone(sentence: str, expected: set[str]) -> None:
    """Before another noun it is no language, tool or style, and what limits a liking is the fact."""
    assert stored(sentence) == expected
