"""What a message may cost the rules, and what they never do, whatever it holds."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from timeit import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.language.facts.extraction import MAX_FACTS, Extraction, extract
from tests.support.data_files import data_file

SIZE = 256 * 1024
STUCK_SECONDS = 1.0
"""No measure of speed: a pattern that backtracks takes longer on the largest message a turn may hold, others 0.01 s."""
KEY = re.compile(r"[a-z0-9_]{1,64}")
ODD = data_file("odd_messages")
PHRASES = ODD["phrases"]


@pytest.mark.parametrize("unit", ODD["units"])
@pytest.mark.parametrize("opening", ["", "I "])
def test_no_pattern_backtracks_far(unit: str, opening: str) -> None:
    """A hostile message costs about what any long one does."""
    message = (opening + unit * SIZE)[:SIZE]

    assert min(repeat(lambda: extract(message), number=1, repeat=3)) < STUCK_SECONDS


@given(st.lists(st.sampled_from(ODD["words"]), max_size=60), st.sampled_from([" ", " ", ""]))
def test_any_words_give_valid_distinct_facts_and_the_same_each_time(words: list[str], between: str) -> None:
    """Keys are snake case, values within bounds, one fact per category and key; nothing raises."""
    message = between.join(words)
    extraction = extract(message)

    assert extract(message) == extraction
    assert [] == [fact.key for fact in extraction.facts if not KEY.fullmatch(fact.key)]
    assert [] == [fact.value for fact in extraction.facts if not 0 < len(fact.value.strip()) <= 400]
    assert [] == [fact.confidence for fact in extraction.facts if not 0.0 < fact.confidence <= 1.0]
    keys = Counter((fact.category, fact.key) for fact in extraction.facts)
    assert [] == [key for key, times in keys.items() if times > 1]


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    """Controls, unpaired quotes, other scripts."""
    assert isinstance(extract(text), Extraction)


LONG_WORDS = (
    "x" * 500, "X " * 200, "a b c d e f g h " * 40, "very " * 60 + "large thing", "Ünï çödé", "東京", "İstanbul",
    "ß" * 100, "\U0001f984" * 300, "\x00\x01", "'" * 50, "-" * 80, "_" * 10, "1" * 300, "a.b@c.de",
)  # fmt: skip


@pytest.mark.parametrize("phrase", PHRASES)
def test_keys_and_values_fit(phrase: str) -> None:
    """Snake case of at most 64 characters, 1-400 characters: `models.session.bounds` rests on it."""
    found = [extract(phrase.format(words)) for words in LONG_WORDS]
    said = [(fact.key, fact.value) for each in found for fact in each.facts]
    taken_back = [(r.key or "all", r.value or "any") for each in found for r in each.retractions]

    assert [pair for pair in said + taken_back if not (KEY.fullmatch(pair[0]) and 1 <= len(pair[1]) <= 400)] == []


def test_a_message_of_facts_alone_gives_a_bounded_number() -> None:
    """However much is pasted."""
    clauses = [phrase.format(words) for phrase, words in product(PHRASES, ("tea", "rust", "cats", "music"))]
    found = extract(". ".join(clauses * 10))

    assert 10 < len(found.facts) <= MAX_FACTS
    assert len(found.retractions) <= MAX_FACTS
