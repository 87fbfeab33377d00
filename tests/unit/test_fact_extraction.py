"""What the rules find in a message, and what they take for said in passing, by others, or not at all."""

from __future__ import annotations

import pytest

from models.events.user import ExtractedFact, FactCategory, Retraction
from models.language.facts.extraction import Extraction, extract


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


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        (
            "Hi, I'm Anna, a nurse from Bergen",
            {"identity/name=Anna", "identity/occupation=nurse", "identity/hometown=Bergen"},
        ),
        ("Marek here, quick question", {"identity/name=Marek"}),
        ("I was born on 12 May 1988", {"identity/birthday=12 May 1988"}),
        ("I live in Oslo, Norway with my cat", {"identity/location=Oslo, Norway"}),
        ("i live in bergen btw", {"identity/location=bergen"}),
        ("As someone who lives in Porto, I walk a lot", {"identity/location=Porto"}),
        ("I live at 14 Harbour Street, Bergen", {"identity/address=14 Harbour Street, Bergen"}),
        ("you can reach me at lina@example.org", {"identity/email=lina@example.org"}),
        ("I'm Norwegian but live in Lyon", {"identity/nationality=Norwegian", "identity/location=Lyon"}),
        ("I work at Initech as a data analyst", {"identity/employer=Initech", "identity/occupation=data analyst"}),
        ("I studied physics in Ghent", {"identity/education=physics in Ghent"}),
        ("my wife Marta and our two kids", {"identity/partner_name=Marta", "identity/children=two kids"}),
        ("Can my cat Muffin eat rice?", {"identity/pet_cat=Muffin"}),
        ("Vivo en Sevilla", {"identity/location=Sevilla"}),
    ],
)
def test_identity(message: str, facts: set[str]) -> None:
    """Who the user is, with values that end where another thought begins."""
    assert facts == found(message)


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        ("I prefer vim over emacs", {"preference/editor=vim"}),
        ("I prefer metric units and short answers", {"preference/units=metric", "preference/response_length=short"}),
        ("I like kotlin more than java", {"preference/language=kotlin"}),
        ("I'm on Windows 11", {"preference/operating_system=Windows 11"}),
        ("i love hiking and jazz", {"preference/hiking=likes", "preference/jazz=likes"}),
        ("My favorite colour is green", {"preference/favourite_colour=green"}),
    ],
)
def test_preferences(message: str, facts: set[str]) -> None:
    """Likings, and things of a kind that has a key of its own."""
    assert facts == found(message)


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        ("As a strict vegetarian, I need ideas", {"constraint/diet=vegetarian"}),
        (
            "I'm allergic to peanuts and shellfish",
            {"constraint/allergy_peanuts=allergic", "constraint/allergy_shellfish=allergic"},
        ),
        ("I don't eat pork for religious reasons", {"constraint/avoids_pork=avoids"}),
        ("I no longer eat meat", {"constraint/avoids_meat=avoids"}),
        ("I'm colour blind so avoid red", {"constraint/accessibility=colour blind"}),
        ("my budget is 500 euros a month", {"constraint/budget=500 euros a month"}),
        ("My budget went up, it's 1200 now", {"constraint/budget=1200"}),
        ("I'm only free on weekends", {"constraint/availability=only free on weekends"}),
    ],
)
def test_constraints(message: str, facts: set[str]) -> None:
    """What limits the user."""
    assert facts == found(message)


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        ("From now on, answer in German.", {"instruction/answer_language=German"}),
        ("Whenever you list things, use a table", {"instruction/response_format=table"}),
        ("Could you keep your answers short?", {"instruction/response_length=short"}),
        (
            "Always run the tests before committing",
            {"instruction/run_tests_committing=run the tests before committing"},
        ),
        (
            "When I paste a log, summarise it first",
            {"instruction/summarise_first=When I paste a log, summarise it first"},
        ),
    ],
)
def test_instructions(message: str, facts: set[str]) -> None:
    """Standing orders; one without a known key is kept as said, under the words that carry it."""
    assert facts == found(message)


@pytest.mark.parametrize(
    "message",
    [
        "If I were vegan, what could I eat?",
        "Suppose I live in Tokyo. What visa do I need?",
        "Do you remember that I live in Oslo?",
        "my sister is vegan and lives in Oslo",
        '"I am a vegan," she said',
        'My boss wrote "I live in Rome" on the card',
        "Write a story where the hero says my name is Bob",
        "Translate this: I live in Madrid and I'm a teacher",
        "Here's my cover letter:\n\nDear Hiring Manager,\nI am a nurse living in Leeds.",
        "I'm currently working as a waiter",
        "I used to live in Madrid",
        "For this one, please answer in Spanish.",
        "I'm tired and hungry",
        "I love the colours in this picture",
        "I'm married to my job",
        "I have a dog in this fight",
        "we were at my old flat in Leipzig",
        "be honest, is my essay bad?",
        "write the summary in French",
        "don't be mean lol",
        "please use it from now on",
        "At work we always deploy on Tuesdays",
        "The guide says:\n- Always run make lint\n- Never push to main",
        "I'm not vegan",
        "I'm neither vegan nor vegetarian",
        "we discussed Python yesterday",
        "I prefer the second option",
        "Give me a brief summary of this article",
        "Never mind",
        "Always wanted to see Japan",
        "I'm 5 minutes late",
        "I have a dog-eared copy",
        "My dog ate my homework",
        "They are kind and always help me",
        "Never give up on your dreams!",
        "Whenever you need help, I'm here",
        "I enjoy being around people like you",
    ],
)
def test_what_is_no_fact(message: str) -> None:
    """Nothing is stored of what is not said by the user, of themselves, for good."""
    assert Extraction() == extract(message)


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("Tomasz is my name", "identity/name=Tomasz"),
        ("being a midwife, I never know when I'm home", "identity/occupation=midwife"),
        ("short answers work best for me", "preference/response_length=short"),
        ("Which gloves are fine, with my latex allergy?", "constraint/allergy_latex=allergic"),
        ("How do I stop mould in my flat in Leipzig?", "identity/location=Leipzig"),
        ("If I write in French, answer in French please", "instruction/answer_language=French"),
    ],
)
def test_other_ways_say_the_same(message: str, fact: str) -> None:
    """Put plainly, taken for granted in a question, or ordered for whenever something is so."""
    assert {fact} == found(message)


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
