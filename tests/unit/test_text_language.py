"""Which script a text is in, and whether it can be English."""

from __future__ import annotations

import pytest

from models.text.language import is_probably_english, script_of

ENGLISH = [
    "hi",
    "Could you help me write a letter to my landlord about the heating?",
    "pizza dough recipe overnight fridge",
    "can u tell me whats the best way 2 learn guitar",
    "Ok, 12 + 4?",
    "???",
    "Jorge and his niece moved to Los Angeles last year, near La Brea.",
    "Please translate 'el perro come la comida' into English for me.",
    "The caf\u00e9's cr\u00e8me br\u00fbl\u00e9e was better than what we had in Paris.",
    "kill the process on port 8080 then restart the server",
]
OTHERS = [
    "Necesito escribir una carta a mi casero sobre la calefacci\u00f3n de mi piso.",
    "me puedes decir cual es la mejor forma de aprender a tocar la guitarra",
    "Ich m\u00f6chte meinem Vermieter einen Brief \u00fcber die Heizung in meiner Wohnung schreiben.",
    "kannst du mir sagen wie man am besten gitarre lernt",
    "Je voudrais \u00e9crire une lettre \u00e0 mon propri\u00e9taire au sujet du chauffage.",
    "tu peux me dire comment apprendre la guitare le plus vite possible",
    "Preciso escrever uma carta para o meu senhorio sobre o aquecimento de casa.",
    "Vorrei scrivere una lettera al mio padrone di casa per il riscaldamento.",
    "Ik wil graag een brief schrijven aan mijn huisbaas over de verwarming.",
    "Chc\u0119 napisa\u0107 list do w\u0142a\u015bciciela mieszkania, bo ogrzewanie nie dzia\u0142a.",
    (
        "Haluaisin kirjoittaa vuokranantajalleni kirjeen asunnon rikkin\u00e4isest\u00e4 "
        "l\u00e4mmityksest\u00e4 ennen talven tuloa"
    ),
    (
        "\u042f \u0445\u043e\u0447\u0443 \u043d\u0430\u043f\u0438\u0441\u0430\u0442\u044c "
        "\u043f\u0438\u0441\u044c\u043c\u043e"
    ),
    "\u6211\u60f3\u5199\u4e00\u5c01\u4fe1",
]


@pytest.mark.parametrize("text", ENGLISH)
def test_english_is_taken_for_english(text: str) -> None:
    """Terse, misspelt, with foreign names or quotations, or without a word at all."""
    assert is_probably_english(text)


@pytest.mark.parametrize("text", OTHERS)
def test_another_language_is_not(text: str) -> None:
    """In Latin letters or others, with and without accents and care."""
    assert not is_probably_english(text)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Only Latin, \u00e9t\u00e9", "latin"),
        ("\uff26\uff55\uff4c\uff4c width \U0001d400\U0001d401", "latin"),
        ("", "none"),
        ("12:30 \u2764\ufe0f", "none"),
        ("\u043d\u0435\u0442, iOS", "cyrillic"),
        ("\u03c0\u03b1\u03bd", "greek"),
        ("\u5c01\u4fe1", "cjk"),
        ("\u0645\u0631\u062d\u0628\u0627", "arabic"),
        ("\ud800 lone", "latin"),
    ],
)
def test_the_script_is_that_of_most_letters(text: str, script: str) -> None:
    """Signs, digits and emoji have none; styled letters are Latin."""
    assert script_of(text) == script
