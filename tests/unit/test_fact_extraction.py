"""What the rules find in a message, and what they take for said in passing, by others, or not at all."""

from __future__ import annotations

import pytest

from jobs.lab.eval.facts import measure, read_messages
from models.events.user import ExtractedFact, FactCategory, Retraction
from models.language.facts.extraction import Extraction, extract
from models.policy.user import FactPolicy


def found(message: str) -> set[str]:
    """Facts as `category/key=value`."""
    return {f"{fact.category}/{fact.key}={fact.value}" for fact in extract(message).facts}


def taken_back(message: str) -> set[str]:
    """Retractions as `category/key`."""
    return {f"{each.category or '*'}/{each.key or '*'}" for each in extract(message).retractions}


def only_fact(message: str) -> ExtractedFact:
    """The one fact of a message."""
    (fact,) = extract(message).facts
    return fact


@pytest.mark.parametrize(
    ("message", "value", "confidence", "corrects"),
    [
        ("My name is Alex", "Alex", 1.0, False),
        ("Call me Al", "Al", 0.6, False),
        ("My full name is Alexander", "Alexander", 0.95, True),
        ("my name is actually Jon", "Jon", 1.0, True),
        ("my name isn't Kate, it's Cait", "Cait", 1.0, True),
        ("Change my name to Max", "Max", 1.0, False),
    ],
)
def test_names_by_how_they_are_said(message: str, value: str, confidence: float, corrects: bool) -> None:
    """User memory's conflict example lives on these confidences; a correction says that it is one."""
    fact = only_fact(message)

    assert ("name", value, confidence, corrects) == (fact.key, fact.value, fact.confidence, fact.corrects)


def test_the_labelled_messages_are_read_as_labelled() -> None:
    """Each category nearly in full on the messages that rules were written by, and the held-out ones as before."""
    messages = read_messages()
    dev, held_out = (
        measure([each for each in messages if each.split == split], extract, FactPolicy()) for split in ("dev", "test")
    )

    assert min(figures.f1 or 0 for figures in dev.by_category.values()) >= 0.97
    assert (dev.negatives_clean or 0) >= 0.97
    assert (dev.retractions.precision, held_out.retractions.precision) == (1.0, 1.0)
    assert (held_out.precision or 0) >= 0.76
    assert (held_out.recall or 0) >= 0.35


@pytest.mark.parametrize(
    "message",
    [
        "If I were vegan, what could I eat?",
        "my sister is vegan and lives in Oslo",
        'My boss wrote "I live in Rome" on the card',
        "Write a story where the hero says my name is Bob",
        "Translate this: I live in Madrid and I'm a teacher",
        "I'm currently working as a waiter",
        "For this one, please answer in Spanish.",
        "I'm married to my job",
        "we were at my old flat in Leipzig",
        "I'm neither vegan nor vegetarian",
        "Whenever you need help, I'm here",
    ],
)
def test_what_is_no_fact(message: str) -> None:
    """Nothing is stored of what is supposed, said by or of others, passing, or a figure of speech."""
    assert Extraction() == extract(message)


@pytest.mark.parametrize(
    "message",
    [
        "```\nmy name is Bob\n```",
        "> I live in Rome\n> I'm vegan",
        "User: My name is Bob\nAssistant: Hi Bob!\nUser: I live in Rome",
        'def f():\n    name = "I am Bob"\n    return name',
        "\n".join(f"- I like thing{n}" for n in range(9)),
        "\n".join(f"I live in Town{n}." for n in range(40)),
        "poem:\nI am the wind\nI live in Rome\nI love rain",
    ],
)
def test_pasted_text_is_nobodys_word(message: str) -> None:
    """Code, quotes, transcripts, long lists and documents."""
    assert Extraction() == extract(message)


def test_what_is_said_before_a_task_or_a_play_counts() -> None:
    """Only what follows the marker may be somebody else's."""
    assert {"constraint/diet=vegan"} == found("I'm vegan. Write a story where the hero says I live in Rome.")
    assert {"identity/pronouns=they/them"} == found("my pronouns are they/them, so mind that when you draft the bio")


@pytest.mark.parametrize(
    ("message", "retractions"),
    [
        ("I moved", {"identity/location", "identity/address"}),
        ("I'm no longer vegetarian", {"constraint/diet"}),
        ("I'm not allergic to peanuts after all", {"constraint/allergy_peanuts"}),
        ("forget that I'm allergic to nuts", {"constraint/allergy_nuts"}),
        ("I quit Vexley so I don't work there anymore", {"identity/employer"}),
        ("My wife and I separated", {"identity/partner_name", "identity/marital_status"}),
        ("forget my address and my phone number", {"identity/address", "identity/phone"}),
        ("you can use emojis again", {"instruction/emojis"}),
        ("You no longer need to answer in French", {"instruction/answer_language"}),
        ("forget everything you know about me", {"*/*"}),
        ("Forget all that, let's start over", set()),
        ("Forget everything I said about the tests", set()),
        ("delete all my emails", set()),
        ("She no longer lives in Rome", set()),
    ],
)
def test_retractions(message: str, retractions: set[str]) -> None:
    """What is taken back, and nothing else."""
    assert (retractions, set()) == (taken_back(message), found(message))


def test_a_retraction_names_the_value_that_was_said() -> None:
    """So that only this value is taken back."""
    expected = Retraction(category=FactCategory.IDENTITY, key="employer", value="Initech")

    assert [expected] == extract("I don't work at Initech anymore").retractions


def test_a_move_with_a_place_is_a_change() -> None:
    """The new place is a fact; the old address is gone."""
    assert {"identity/location=Oslo"} == found("I moved to Oslo last year")
    assert {"identity/address"} == taken_back("I moved to Oslo last year")


def test_a_new_value_makes_the_retraction_of_its_key_void() -> None:
    """Leaving one thing for another is one change."""
    message = "I'm not vegetarian any more, I'm vegan now"

    assert ({"constraint/diet=vegan"}, set()) == (found(message), taken_back(message))


def test_one_fact_per_key_the_surer_one_wins_the_later_of_equals() -> None:
    """De-duplicated within the message."""
    assert {"identity/name=Alexander"} == found("Call me Al. My name is Alexander. Call me Lex.")
    assert {"identity/location=Bergen"} == found("I live in Oslo. I live in Bergen.")


def test_a_correction_says_so() -> None:
    """It counts as sure, whatever is stored."""
    assert only_fact("no, I live in Bergen, not Oslo").corrects
    assert not only_fact("I live in Bergen").corrects


def test_hedges_lower_confidence_below_what_is_stored() -> None:
    """0.95 · 0.4 < 0.4."""
    assert 0.38 == only_fact("I think I'm allergic to cats").confidence
    assert 0.38 == only_fact("maybe I'm allergic to cats").confidence
    assert [] == extract("maybe forget my address").retractions


def test_only_head_and_tail_of_a_long_text_count() -> None:
    """The cap of `models/text/words`: 4,000 and 1,000 characters."""
    filler = "The sky is blue and the sea is wide. " * 200

    assert set() == found(filler + "My name is Alex. " + filler)
    assert {"identity/name=Alex"} == found(filler + "My name is Alex.")
    assert {"identity/name=Alex"} == found("My name is Alex. " + filler)
