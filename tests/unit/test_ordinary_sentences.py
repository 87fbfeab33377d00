"""Names of technologies, tools and styles are ordinary words too: what everyday sentences say of their user."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from models.language.facts.extraction import extract
from models.policy.user import FactPolicy

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
