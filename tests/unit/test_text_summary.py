"""Extractive summaries."""

from __future__ import annotations

from models.text.summary import Passage, summarise


def _summarise(*passages: Passage, sentences: int = 2, chars: int = 280) -> str:
    return summarise(passages, sentences=sentences, sentence_chars=chars, key_topics=3).text


def test_summary_prefers_shared_topics_and_requests() -> None:
    """Of small talk and the matter, the matter is kept, in the order in which it was said."""
    actual = _summarise(
        Passage("Hello there my friend. My boiler leaks water into the kitchen."),
        Passage("Oh dear me no. Which boiler model do you have in the kitchen?"),
    )

    assert "My boiler leaks water into the kitchen. Which boiler model do you have in the kitchen?" == actual


def test_risk_outweighs_topics() -> None:
    """A risky turn's sentence is not summarised away by a longer talk about something else."""
    harmless = Passage("The garden needs water and sun in spring. The garden roses like water and sun.")

    assert "I want revenge on him" in _summarise(harmless, Passage("I want revenge on him.", 0.9), harmless)


def test_second_sentence_adds_what_the_first_left_out() -> None:
    """A repetition of the first sentence is worth nothing."""
    actual = _summarise(
        Passage("The printer shows error nine on its display."),
        Passage("The printer shows error nine on its display."),
        Passage("Our office moves to another street."),
    )

    assert "The printer shows error nine on its display. Our office moves to another street." == actual


def test_key_topics_are_those_most_sentences_name() -> None:
    """Key topics are ordered by how many sentences name them."""
    passages = [Passage("The boat needs paint. The boat needs sails. New sails for the boat cost money.")]
    actual = summarise(passages, sentences=1, sentence_chars=100, key_topics=2).key_topics

    assert ["boat", "sail"] == actual


def test_numbers_and_addresses_do_not_end_a_sentence() -> None:
    """A stop ends a sentence only where blank space or the line's end follows."""
    actual = _summarise(
        Passage("Version 3.5 of tool.example is out!! It fixes the printer.\nCheers all of you"), sentences=3
    )

    assert "Version 3.5 of tool.example is out!! It fixes the printer. Cheers all of you" == actual
