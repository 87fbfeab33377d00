"""Readers of the user's work and education."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.language.facts import vocabulary
from models.language.facts.statements import Statement
from models.language.facts.values import IDENTITY, Finding, fact, named, phrase, place_of
from models.language.tables import PatternTables
from models.text.words import word_set

_RE = PatternTables("facts_patterns").section("work")

_WORK = 0.7
_LEARNERS = word_set("student undergrad undergraduate postgrad freshman sophomore phd postdoc")
_AT = re.compile(r"\s+(?:at|for|with)\s+(?=(?:the |an? )?(?P<v>[A-Z\u00c0-\u00de].*|\w+$))")
_FIELD = re.compile(r" (?:in|of) ((?-i:[a-z]).+)")
_FROM = re.compile(r"\bfrom (?=[A-Z\u00c0-\u00de])")
_DETERMINER = re.compile(r"^(?:an?|the|my) ", re.IGNORECASE)
_MAX_TITLE_WORDS = 6
_MIN_TITLE_CHARS = 5
_FEW_WORDS = 3
_ENDINGS = ("ologist", "ician", "grapher", "smith", "eer", "wright", "monger", "keeper", "maker")
_COMMON_ENDINGS = ("er", "or", "ist", "ant")
"""Of titles, but also of other words: only behind a word that says more."""
_DEGREES = word_set(
    "huge big bit slow fast quick good bad visual heavy light terrible great better total "
    "complete first-time long-time frequent"
)


def _occupation(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return occupation_of(match["v"], statement, known=match.groupdict().get("known") is not None)


def occupation_of(text: str, statement: Statement, *, known: bool = False) -> list[Finding]:
    """Occupation, and what stands behind it: employer or school, place, home town.

    `known` says that it is an occupation; else its last word must be the title of one.
    """
    text = phrase(text, 16)
    head = _RE.TITLE_END.split(text, maxsplit=1)[0].strip(" \"',")
    is_title = _is_title(head.lower().split(), known=known)
    found: list[Finding] = []
    if is_title:
        found += fact(IDENTITY, "occupation", head, statement, 0.9, _WORK)
        if (at := _AT.search(text)) and head.split()[-1].lower() in _LEARNERS:
            found += fact(IDENTITY, "education", text[at.start("v") :], statement, 0.85, _WORK)
        elif (field := _FIELD.search(text)) and head.split()[-1].lower() in _LEARNERS:
            found += fact(IDENTITY, "education", field[1], statement, 0.8, _WORK)
        elif at:
            found += _employer(at["v"], statement)
        if based := _RE.BASED.search(text):
            found += fact(IDENTITY, "location", place_of(text[based.end() :], statement), statement, 0.8)
    if (origin := _FROM.search(text)) and (is_title or len(head.split()) < _FEW_WORDS):
        found += fact(IDENTITY, "hometown", place_of(text[origin.end() :], statement), statement, 0.8)
    return found


def _is_title(words: list[str], *, known: bool) -> bool:
    """Whether words name an occupation, by a list and by how titles end."""
    if not 0 < len(words) <= _MAX_TITLE_WORDS:
        return False
    last = words[-1].strip(".")
    if last in vocabulary.NO_TITLES:
        return False
    if last in vocabulary.TITLES or (known and last.isalpha()):
        return True
    if len(last) < _MIN_TITLE_CHARS or words[0] in _DEGREES:
        return False
    return last.endswith(_ENDINGS) or (len(words) > 1 and last.endswith(_COMMON_ENDINGS))


def _employer(text: str, statement: Statement) -> list[Finding]:
    employer = _RE.EMPLOYER_STOP.sub("", phrase(text, 6)).strip()
    nobody = _RE.NO_EMPLOYER.match(employer) and not _RE.SOME_EMPLOYER.match(employer)
    if nobody or employer.lower() in vocabulary.PROGRAMMING_LANGUAGES:
        return []
    return [*fact(IDENTITY, "employer", _DETERMINER.sub("", employer), statement, 0.9, _WORK)]


def _works_at(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    found = _employer(match["v"], statement)
    if as_ := re.search(r"\bas (?:an? |the |their )(.+)", match["v"], re.IGNORECASE):
        found += occupation_of(as_[1], statement, known=True)
    return found


def _owns(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    return fact(IDENTITY, "occupation", f"{match['verb']}s {match['v']}", statement, 0.75, _WORK)


def _teaches(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"], 10)
    if re.match(r"(?:you|him|her|them|myself|my|people)\b", text, re.IGNORECASE):
        return []
    subject = _RE.TITLE_END.split(text, maxsplit=1)[0]
    found: list[Finding] = list(fact(IDENTITY, "occupation", f"teacher ({subject})", statement, 0.75, _WORK))
    if based := re.search(r" in (?=[A-Z])", text):
        found += fact(IDENTITY, "location", place_of(text[based.end() :], statement), statement, 0.75)
    return found


def _study(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = phrase(match["v"], 12)
    if _RE.NO_SUBJECT.match(text):
        return []
    return fact(IDENTITY, "education", re.sub(r"^(?:at|in) ", "", text), statement, 0.85, _WORK)


READERS = named(_occupation, _works_at, _owns, _teaches, _study)
