"""Readers of what the user takes back: "forget my address", "I'm no longer vegetarian", "I moved"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from models.events.user import FactCategory, Retraction
from models.language.facts import vocabulary
from models.language.facts.kinds import KNOWN_THINGS
from models.language.facts.person import MY_NOUNS, pet_key
from models.language.facts.statements import Statement
from models.language.facts.values import (
    CONSTRAINT,
    IDENTITY,
    INSTRUCTION,
    PREFERENCE,
    Build,
    Finding,
    slug,
)

_NOUNS: dict[str, tuple[FactCategory, str]] = {
    **{noun: (IDENTITY, key) for noun, key in MY_NOUNS.items()},
    **{noun: (PREFERENCE, key) for noun, key in KNOWN_THINGS.items()},
    "name": (IDENTITY, "name"),
    "full name": (IDENTITY, "name"),
    "nickname": (IDENTITY, "name"),
    "where i live": (IDENTITY, "location"),
    "how old i am": (IDENTITY, "age"),
    "where i work": (IDENTITY, "employer"),
    "what i do": (IDENTITY, "occupation"),
    "workplace": (IDENTITY, "employer"),
    "boss": (IDENTITY, "employer"),
    "kids": (IDENTITY, "children"),
    "children": (IDENTITY, "children"),
    "partner": (IDENTITY, "partner_name"),
    "diet": (CONSTRAINT, "diet"),
    "budget": (CONSTRAINT, "budget"),
    "availability": (CONSTRAINT, "availability"),
    "schedule": (CONSTRAINT, "availability"),
    "dietary restrictions": (CONSTRAINT, "diet"),
    "dietary preferences": (CONSTRAINT, "diet"),
    "relationship status": (IDENTITY, "marital_status"),
    "place": (IDENTITY, "location"),
    "home": (IDENTITY, "address"),
    "language preference": (PREFERENCE, "language"),
    "contact details": (IDENTITY, "email"),
    **{f"{who}'s name": (IDENTITY, "partner_name") for who in vocabulary.RELATIONSHIPS},
    **dict.fromkeys(vocabulary.RELATIONSHIPS, (IDENTITY, "partner_name")),
}
_STYLE_RULES = (
    (re.compile(r"\bemojis?\b", re.IGNORECASE), "emojis"),
    (re.compile(r"\b(?:metric|imperial|units?|celsius|fahrenheit)\b", re.IGNORECASE), "units"),
    (
        re.compile(
            r"\b(?:answer\w*|reply\w*|respond\w*|speak\w*|writ\w+|talk\w*|use|using|answers)\b.*\b(?:in"
            r"|to)? ?(?:" + "|".join(sorted(vocabulary.NATURAL_LANGUAGES)) + r")\b",
            re.IGNORECASE,
        ),
        "answer_language",
    ),
    (re.compile(r"\b(?:citations?|cit(?:e|ing)|sources|references)\b", re.IGNORECASE), "citations"),
    (re.compile(r"\bcomments?\b", re.IGNORECASE), "code_comments"),
    (re.compile(r"\b(?:bullets?|bullet points|tables?|markdown|lists)\b", re.IGNORECASE), "response_format"),
    (
        re.compile(r"\b(?:short|brief|concise|long(?:er)?|detailed|length|word limit)\b", re.IGNORECASE),
        "response_length",
    ),
    (re.compile(r"\b(?:formal|casual|informal|tone)\b", re.IGNORECASE), "tone"),
)


def _forget(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return taken_back(match["v"])


def taken_back(noun_phrase: str) -> list[Finding]:
    """What "my address and my phone number" names."""
    found: list[Finding] = []
    for part in re.split(r"\s*(?:,|\band\b|\bor\b)\s*", noun_phrase)[:6]:
        noun = re.sub(
            r"^(?:my|the|where|that|your|all) (?!i )|^(?:about )?my ",
            "",
            re.sub(
                r"\s+(?:from (?:your|the|my|earlier|before) ?.*|please|entirely|completely|for good|now|"
                r"info(?:rmation)?"
                r"|details?|rule|thing|preference|for me|again|you have|on file|we (?:set|discussed|agreed).*"
                r"|i (?:gave|told|mentioned|shared|set|asked).*)$",
                "",
                part.strip(" .!\"'").lower(),
            ),
        ).strip()
        noun = re.sub(r"^(?:old|current|new|previous|saved|stored|exact) ", "", noun)
        noun = re.sub(r"^[\w-]+ (?=diet$)", "", noun)
        if noun in _NOUNS:
            category, key = _NOUNS[noun]
            found.append(Retraction(category=category, key=key))
        elif allergy := re.match(r"([\w-]+(?: [\w-]+)?) allergy$|allerg(?:y|ies) to ([\w ]+)$", noun):
            found.append(Retraction(category=CONSTRAINT, key=f"allergy_{slug(allergy[1] or allergy[2])}"))
        elif favourite := re.match(r"favourite ([\w -]+)$", noun):
            found.append(Retraction(category=PREFERENCE, key=f"favourite_{slug(favourite[1])}"))
        elif (kind := noun.removesuffix("'s name")) in vocabulary.PETS:
            found.append(Retraction(category=IDENTITY, key=pet_key(kind)))
    return found


def _rule_dropped(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return rule_named(match.groupdict().get("also") or match["v"])


def rule_named(text: str) -> list[Finding]:
    """The rule about answers that is taken back: "answers in French"."""
    for pattern, key in _STYLE_RULES:
        if pattern.search(text):
            return [Retraction(category=INSTRUCTION, key=key)]
    return []


def _left(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return [Retraction(category=IDENTITY, key="employer", value=match["v"])]


def _pet_gone(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return [Retraction(category=IDENTITY, key=pet_key(match["kind"]))]


READERS: Mapping[str, Build] = {"forget": _forget, "rule_dropped": _rule_dropped, "left": _left, "pet_gone": _pet_gone}
"""By the name that rows give."""
