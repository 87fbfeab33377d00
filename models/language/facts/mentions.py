"""Facts that are taken for granted: a name in apposition, "my latex allergy", "with my two kids"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.events.user import ExtractedFact
from models.language.facts.attribution import supposed_from
from models.language.facts.identity import pet_key
from models.language.facts.statements import Statement
from models.language.facts.values import CONSTRAINT, IDENTITY, fact, named, reading, slug
from models.language.facts.vocabulary import WORDS
from models.language.tables import PatternTables
from models.text.words import word_set

_RE = PatternTables("facts_patterns").section("mentions")
_CONFIDENCE = 0.75
_FAMILY = 0.7
_PETS = 0.6
_HEALTH = 0.95
_NO_ALLERGY = word_set(
    "the a an any no bad severe food some this that other his her their same new and nasty terrible "
    "mild seasonal worst such"
)
_NO_NAME = word_set("and but is was who has the she he i so also then because now when where please what how can does")


def _partner_beside(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    if match["v"].lower() in _NO_NAME:
        return []
    return fact(IDENTITY, "partner_name", match["v"], statement, _CONFIDENCE, _FAMILY)


def _pet_beside(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    if match["v"].lower() in _NO_NAME:
        return []
    return fact(IDENTITY, pet_key(match["kind"]), match["v"], statement, _CONFIDENCE, _PETS)


def _allergy_beside(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    to = match["w"] or " ".join(word for word in match["v"].split() if word.lower() not in _NO_ALLERGY)
    if "'s" in to or not to:
        return []
    return fact(CONSTRAINT, f"allergy_{slug(to)}", "allergic", statement, 0.85, _HEALTH)


def _condition_beside(match: re.Match[str], statement: Statement) -> Iterable[ExtractedFact]:
    return fact(CONSTRAINT, f"medical_{slug(match['v'])}", "yes", statement, 0.8, _HEALTH)


_READERS = named(_partner_beside, _pet_beside, _allergy_beside, _condition_beside)
_TABLES = PatternTables("mentions", words=WORDS)
_READINGS = [
    (frozenset(_TABLES.words(words)), row.pattern, reading(says, _READERS))
    for row in _TABLES.rows("mentions")
    for words, says in (row.cells,)
]
"""Words of which one must be there, the pattern, and what it says."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def mentioned(text: str, words: set[str]) -> Iterable[ExtractedFact]:
    """Facts that are taken for granted: a name in apposition, what is "mine"; `words` are the text's own, folded."""
    readings = [(pattern, read) for cues, pattern, read in _READINGS if not cues.isdisjoint(words)]
    if not readings:
        return
    statement = Statement("")
    for sentence in _SENTENCE.split(text):
        meant = sentence[: supposed_from(sentence.lower())]
        matches = [(match, read) for pattern, read in readings for match in pattern.finditer(meant)]
        if matches and not _RE.TAKING_BACK.search(meant):
            for match, read in matches:
                yield from (fact for fact in read(match, statement) if isinstance(fact, ExtractedFact))
