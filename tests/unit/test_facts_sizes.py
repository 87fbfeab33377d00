"""What rules find in any message fits the events and the state: keys, values, numbers of them."""

from __future__ import annotations

import re
from itertools import product

import pytest

from models.language.facts.extraction import MAX_FACTS, extract

PHRASES = (
    "My name is {}", "Call me {}", "I live in {}", "I'm allergic to {}", "My favourite {} is blue",
    "My favourite colour is {}", "I prefer {}", "Always {}", "Never {}", "I love {}", "I can't eat {}", "I work at {}",
    "My dog is called {}", "My email is {}", "From now on {}", "Please always answer in {}", "I'm no longer {}",
    "Forget my {}", "I moved to {}", "My timezone is {}", "Always use {} in code", "I don't eat {}",
)  # fmt: skip
WORDS = (
    "x" * 500, "X " * 200, "a b c d e f g h " * 40, "very " * 60 + "large thing", "Ünï çödé", "東京", "İstanbul",
    "ß" * 100, "\U0001f984" * 300, "\x00\x01", "'" * 50, "-" * 80, "_" * 10, "1" * 300, "a.b@c.de",
)  # fmt: skip
KEY = re.compile(r"[a-z0-9_]{1,64}")


@pytest.mark.parametrize("phrase", PHRASES)
def test_keys_and_values_fit(phrase: str) -> None:
    """Snake case of at most 64 characters, 1-400 characters: `models.session.bounds` rests on it."""
    found = [extract(phrase.format(words)) for words in WORDS]
    said = [(fact.key, fact.value) for each in found for fact in each.facts]
    taken_back = [(r.key or "all", r.value or "any") for each in found for r in each.retractions]

    assert [pair for pair in said + taken_back if not (KEY.fullmatch(pair[0]) and 1 <= len(pair[1]) <= 400)] == []


def test_a_message_of_facts_alone_gives_a_bounded_number() -> None:
    """However much is pasted."""
    clauses = [phrase.format(words) for phrase, words in product(PHRASES, ("tea", "rust", "cats", "music"))]
    found = extract(". ".join(clauses * 10))

    assert 10 < len(found.facts) <= MAX_FACTS
    assert len(found.retractions) <= MAX_FACTS
