"""The many ways of saying one thing, what is taken for granted in passing, and what is none of it."""

from __future__ import annotations

import pytest

from models.language.facts.extraction import Extraction, extract


def found(message: str) -> set[str]:
    """Facts as `category/key=value`."""
    return {f"{fact.category}/{fact.key}={fact.value}" for fact in extract(message).facts}


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("Tomasz is my name", "identity/name=Tomasz"),
        ("I answer to Lou", "identity/name=Lou"),
        ("Home for me is Tartu", "identity/location=Tartu"),
        ("I've called Ghent home for twelve years", "identity/location=Ghent"),
        ("Lisbon is where I live, so heat is an issue", "identity/location=Lisbon"),
        ("I hail from Oaxaca", "identity/hometown=Oaxaca"),
        ("I've just hit 50 and my doctor wants a scan", "identity/age=50"),
        ("being a midwife, I never know when I'm home", "identity/occupation=midwife"),
        ("I've been with Nordhavn Shipping for ten years", "identity/employer=Nordhavn Shipping"),
        ("I grew up speaking Basque", "identity/native_language=Basque"),
        ("I'm raising three teenagers on my own", "identity/children=three teenagers"),
        ("my food has to be halal", "constraint/diet=halal"),
        ("I get hives from strawberries", "constraint/allergy_strawberries=allergic"),
        ("dairy doesn't agree with me", "constraint/avoids_dairy=avoids"),
        ("I'm teetotal", "constraint/avoids_alcohol=avoids"),
        ("my doctor told me to avoid grapefruit", "constraint/avoids_grapefruit=avoids"),
        ("I've had epilepsy since childhood", "constraint/medical_epilepsy=yes"),
        ("500 dollars is my limit", "constraint/budget=500 dollars"),
        ("I have Fridays off", "constraint/availability=Fridays off"),
        ("Python is my language of choice", "preference/language=Python"),
        ("my laptop runs Debian", "preference/operating_system=Debian"),
        ("short answers work best for me", "preference/response_length=short"),
        ("I can't get enough of flamenco", "preference/flamenco=likes"),
        ("I'm a huge history buff", "preference/history=likes"),
        ("musicals are not my cup of tea", "preference/musicals=dislikes"),
        ("I want all your answers in Dutch", "instruction/answer_language=Dutch"),
        ("I never want to see emojis", "instruction/emojis=never"),
    ],
)
def test_other_ways_say_the_same(message: str, fact: str) -> None:
    """Each is put plainly first, so that the rules for the plain way apply."""
    assert {fact} == found(message)


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("Which gloves are fine, with my latex allergy?", "constraint/allergy_latex=allergic"),
        ("How do I stop mould in my flat in Leipzig?", "identity/location=Leipzig"),
        ("Ingrid, my wife, wants a greenhouse", "identity/partner_name=Ingrid"),
        ("Bruno, our labrador, is afraid of rain", "identity/pet_dog=Bruno"),
        ("my boss at Halden Foods is on leave", "identity/employer=Halden Foods"),
        ("drop me a line at ana.r@example.org", "identity/email=ana.r@example.org"),
        ("what helps, my asthma gets worse in winter?", "constraint/medical_asthma=yes"),
    ],
)
def test_what_is_taken_for_granted_is_said(message: str, fact: str) -> None:
    """A question may name what is so."""
    assert {fact} == found(message)


@pytest.mark.parametrize(
    "message",
    [
        "I love all the yellow leaves, it looks cozy",
        "I love the colours in this picture",
        "I love creating a safe space for everyone",
        "As I like to say, it is what it is",
        "I'm married to my job",
        "I can't eat another bite",
        "I have a dog in this fight",
        "my job is killing me",
        "we were at my old flat in Leipzig",
    ],
)
def test_reactions_and_idioms_say_nothing(message: str) -> None:
    """They only look like likings, limits and kin."""
    assert Extraction() == extract(message)


@pytest.mark.parametrize(
    "message",
    [
        "Always look on the bright side!",
        "always remember that you are loved",
        "be honest, is my essay bad?",
        "write the summary in French",
        "don't tell my wife about the surprise",
        "don't be mean lol",
        "please use it from now on",
        "At work we always deploy on Tuesdays",
        "let me know whenever you're done",
        "The guide says:\n- Always run make lint\n- Never push to main",
    ],
)
def test_cheer_one_off_wishes_and_others_rules_are_no_standing_orders(message: str) -> None:
    """What is wished a friend, asked for once, or ruled by somebody else."""
    assert Extraction() == extract(message)


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("If I write in French, answer in French please", "French"),
        ("unless I say otherwise, reply in Danish", "Danish"),
        ("whatever I ask, answer in Polish", "Polish"),
    ],
)
def test_a_condition_can_make_an_order_stand(message: str, value: str) -> None:
    """What holds whenever something is so is no wish for once."""
    assert {f"instruction/answer_language={value}"} == found(message)


@pytest.mark.parametrize(
    ("message", "taken_back"),
    [
        ("my old number is dead", [("identity", "phone")]),
        ("I outgrew my milk allergy", [("constraint", "allergy_milk")]),
        ("take my name off your records", [("identity", "name")]),
        ("forget that I'm allergic to nuts", [("constraint", "allergy_nuts")]),
        ("I quit Vexley so I don't work there anymore", [("identity", "employer")]),
        ("My wife and I separated", [("identity", "partner_name"), ("identity", "marital_status")]),
    ],
)
def test_other_ways_take_back_once(message: str, taken_back: list[tuple[str, str]]) -> None:
    """Said twice it is taken back once, and nothing is stored of it."""
    extraction = extract(message)

    assert [] == extraction.facts
    assert taken_back == [(each.category, each.key) for each in extraction.retractions]
