"""Topics of a turn and their frequencies over a session."""

from __future__ import annotations

import pytest

from models.text import words as words_module
from models.text.keywords import count_topics, topic_names, topics_of
from models.text.words import estimate_tokens, fold_text, utf8_bytes, words_of
from tests.support.examples import examples

RISKY = ("weapon", "hack", "bypass", "exploit")


@pytest.mark.parametrize(("word", "expected"), examples("keywords")["topics"])
def test_topic_of_a_word(word: str, expected: str) -> None:
    """Inflections of a risky stem are that stem; other words are lightly stemmed; stop words and noise are none."""
    assert expected == topic_names(RISKY)(word)


def test_remembered_words_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full vocabulary is forgotten, a pasted key never remembered; topics stay the same."""
    monkeypatch.setattr(words_module, "REMEMBERED_WORDS", 2)
    topic_of = topic_names(("remembered",))
    words = ["boats", "sails", "boats", "x" * 5_000, "paints", "remembereding", "boats"]
    actual = [topic_of(word) for word in words]
    remembered: dict[str, str] = getattr(topic_of, "__self__")  # noqa: B009 - a callable need not have one

    assert ["boat", "sail", "boat", "", "paint", "remembered", "boat"] == actual
    assert {"boats": "boat"} == remembered


def test_topics_of_a_turn() -> None:
    """Risky topics come first and beyond the limit; of the others the longest; each once."""
    words = words_of("the hacker hacked an old printer and a kitchen refrigerator with a lamp")

    assert ["hack", "refrigerator", "printer"] == topics_of(words, RISKY, 2)


def test_repeated_topics_stay_bounded_and_keep_the_frequent() -> None:
    """Beyond the limit the rarest ordinary topic goes; frequent and risky ones stay with exact counts."""
    repeated: dict[str, int] = {}
    for n in range(300):
        count_topics(repeated, ["garden", f"passing{n}"], RISKY, 8)
        if n % 10 == 0:
            count_topics(repeated, ["hack"], RISKY, 8)

    assert (300, 30, 9) == (repeated["garden"], repeated["hack"], len(repeated))


def test_folding_sees_through_disguise() -> None:
    """Case, full-width letters, invisible characters, curly quotes and non-breaking blanks make no difference."""
    actual = words_of(fold_text("H\u200bACK\u00a0\uff54he planet, don\u2019t"))

    assert ["hack", "the", "planet", "don't"] == actual


def test_sizes() -> None:
    """Four characters are a token, rounded up; bytes are UTF-8."""
    actual = (estimate_tokens(""), estimate_tokens("abcde"), utf8_bytes("aé"), utf8_bytes("ab"))

    assert (0, 2, 3, 2) == actual
