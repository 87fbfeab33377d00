"""Kinds of preferences that are known by their words, of likings and of orders alike."""

from __future__ import annotations

import re

from models.language.facts import vocabulary
from models.language.facts.values import bare, keys_by_noun, languages_in

UNIT = re.compile(rf"\b({'|'.join(sorted(vocabulary.UNITS, key=len, reverse=True))})\b", re.IGNORECASE)
THEME = re.compile(r"\b(dark|light|solarized|high[- ]contrast|night) (?:mode|themes?)\b", re.IGNORECASE)
LENGTH = re.compile(rf"\b({'|'.join(sorted(vocabulary.LENGTHS, key=len, reverse=True))})\b", re.IGNORECASE)
TONE = re.compile(rf"\b({'|'.join(sorted(vocabulary.TONES, key=len, reverse=True))})\b", re.IGNORECASE)
FORMAT = re.compile(rf"\b({'|'.join(vocabulary.FORMATS)})\b", re.IGNORECASE)
ANSWERS = re.compile(
    r"\b(?:answers?|repl(?:y|ies)|responses?|explanations?|tone|style|language|messages?"
    r"|summar(?:y|ies)|feedback|communication)\b",
    re.IGNORECASE,
)
CODING = re.compile(
    rf"\b(?:{'|'.join(re.escape(word) for word in sorted(vocabulary.CODING_STYLE, key=len, reverse=True))}"
    r"|type hints?|type annotations|functional (?:programming|style|code)|object[- ]oriented|single quotes"
    r"|double quotes|black(?=$| with| formatting| style|,)|list"
    r" comprehensions|early returns|small functions"
    r"|(?:\d|two|four|eight)[- ]spaces?(?: indent\w*)?|composition|line length|static typing"
    r"|strict typing|descriptive (?:variable )?names|variable names"
    r"|arrow functions|async/await|one-liners|dataclasses|pure functions|guard clauses|indentation"
    r"|trailing commas|snake case|camel case|test-driven)\b",
    re.IGNORECASE,
)
ZONE = re.compile(
    r"(?:(?:utc|gmt)\s*(?:[+-]\s*\d{1,2}(?::?\d\d)?)?|cest|cet|eest|eet|est|edt|pst|pdt|mst|mdt"
    r"|cst|cdt|bst|wet|ist|jst|kst|aest|aedt|nzst|hst|akst|sgt|hkt|msk"
    r"|(?:eastern|pacific|central|mountain|atlantic|british|indian|central european|eastern"
    r" european|east coast|west coast)(?: standard| summer| daylight)?(?: time)?"
    r"|[A-Z][a-z]+/[A-Z][A-Za-z_]+|[A-Z]\w+(?: \w+)? time)",
    re.IGNORECASE,
)
_EDITOR = re.compile(r"(?:vs ?code|visual studio(?: code)?|android studio)\b", re.IGNORECASE)
_NO_LANGUAGE = re.compile(
    r"\S+ (?:food|cuisine|music|tea|films?|movies|restaurants|wine|beer|cheese|coffee|dishes"
    r"|cooking|lessons)",
    re.IGNORECASE,
)
KNOWN_THINGS = keys_by_noun(
    {
        "language": "language programming_language coding_language language_of_choice",
        "editor": "editor code_editor text_editor ide editor_of_choice",
        "operating_system": "os operating_system distro",
        "units": "units unit_system",
        "tone": "tone",
        "theme": "theme color_theme colour_theme",
        "timezone": "timezone time_zone",
        "coding_style": "coding_style style code_style indentation",
        "response_length": "response_length answer_length",
        "response_format": "response_format format",
    }
)
"""What "my editor" or "my preferred editor" is about → key."""
_SLACK_CHARS = 6
"""So much may follow a time zone's name: " time"."""


def tone_of(word: str) -> str:
    """The tone a word asks for: "formally" asks for formal.

    >>> tone_of("Formally"), tone_of("friendly")
    ('formal', 'friendly')
    """
    tone = word.lower()
    return tone.removesuffix("ly") if tone.removesuffix("ly") in vocabulary.TONES else tone


def kind_of(said: str, about: str) -> tuple[str, str] | None:
    """Key and value of a preference, None for things of no known kind.

    Args:
        said: What is preferred.
        about: All that was said: some kinds only count of answers.
    """
    thing = bare(said)
    first = thing.split(" ")[0].lower().strip("'\"")
    if (zone := ZONE.match(thing)) and len(zone[0]) + _SLACK_CHARS >= len(thing):
        return "timezone", zone[0]
    if (names := languages_in(said)) and not _NO_LANGUAGE.match(thing):
        return "language", " and ".join(names)
    if (editor := _EDITOR.match(thing)) or first in vocabulary.EDITORS:
        return "editor", editor[0] if editor else thing.split(" ")[0]
    if first in vocabulary.OPERATING_SYSTEMS:
        return "operating_system", thing
    for key, pattern, whole, of_answers in _KINDS:
        if (found := pattern.search(said)) and (not of_answers or ANSWERS.search(about)):
            return key, said if whole else found[1]
    return None


_KINDS = (
    ("theme", THEME, False, False),
    ("response_format", FORMAT, True, False),
    ("coding_style", CODING, True, False),
    ("units", UNIT, False, False),
    ("response_length", LENGTH, False, True),
    ("tone", TONE, False, True),
)
"""Key, pattern, whether all that was said is the value, whether it must be about answers."""
